"""The extent of a reproduction."""

from __future__ import annotations

from dataclasses import dataclass

from .datasets import card
from .methods import check_methods
from .protocol import N_SPLITS


@dataclass(frozen=True, kw_only=True)
class Config:
    """Extent of a reproduction.

    Parameters
    ----------
    full : bool, default=False
        All ten splits of a fold and 100 noise draws per cell of Table 1; otherwise one and 20.
    methods : tuple of str, optional
        Methods to run, instead of each experiment's own list.
    datasets : tuple of str, optional
        Data sets to run, instead of all.
    max_size : int, optional
        Largest problem of the cod-rna experiment; by default all 488,565 samples if `full`, else
        97,713.

    Raises
    ------
    ValueError
        If a name is not known (with the nearest one), or a list is empty.
    """

    full: bool = False
    methods: tuple[str, ...] | None = None
    datasets: tuple[str, ...] | None = None
    max_size: int | None = None

    def __post_init__(self) -> None:
        """Check names before any work."""
        for option in ("methods", "datasets"):
            value = getattr(self, option)
            if value is not None and (isinstance(value, str) or len(value) == 0):
                raise ValueError(f"{option}={value!r} is not accepted; a tuple of names is needed")
        if self.methods is not None:
            object.__setattr__(self, "methods", check_methods(self.methods))
        if self.datasets is not None:
            names = tuple(card(name).name for name in self.datasets)
            object.__setattr__(self, "datasets", names)
        if self.max_size is not None and self.max_size < 4:
            raise ValueError(f"max_size={self.max_size} is not accepted; 4 or more is")

    @property
    def splits(self) -> tuple[int, ...]:
        """Splits per fold."""
        return tuple(range(1, N_SPLITS + 1)) if self.full else (1,)

    def pick_datasets(self, available: tuple[str, ...]) -> tuple[str, ...]:
        """Return those of `available` that are asked for."""
        return tuple(n for n in available if self.datasets is None or n in self.datasets)

    def pick_methods(self, available: tuple[str, ...], default: tuple[str, ...]) -> tuple[str, ...]:
        """Return those of `available` that are asked for, else `default`."""
        if self.methods is None:
            return default
        return tuple(name for name in available if name in self.methods)
