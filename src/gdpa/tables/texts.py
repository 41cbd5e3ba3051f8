"""Many different texts in little memory: numbered as they come, kept compressed.

A million sentences as Python objects take 100 MB and as many again while they are numbered; here
about 20. Up to `MANY` different texts a list is a list and nothing is packed.
"""

from __future__ import annotations

import marshal
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from .words import is_missing_text

__all__ = [
    "Growing",
    "PackedTexts",
    "TextNumbers",
    "code_texts",
    "number_text",
    "settle_texts",
    "text_of",
]

MANY = 2**16
BLOCK_CHARACTERS = 2**16  # that are compressed together
LEVEL = 3


class PackedTexts(Sequence[str]):
    """A sequence of texts that grows at its end, compressed in blocks.

    Read in order it is nearly as quick as a list; a text far from the last one read costs its
    block, a fraction of a millisecond.

    Parameters
    ----------
    texts : iterable of str
        The first texts.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._blocks: list[bytes] = []
        self._starts = array("q")
        self._last: list[str] = []  # not compressed yet
        self._size = self._characters = 0
        self._open: tuple[int, list[str]] = (-1, [])
        for text in texts:
            self.append(text)
        self.close()

    def append(self, text: str) -> None:
        """Add a text."""
        self._last.append(text)
        self._size += 1
        self._characters += len(text) + 2
        if self._characters > BLOCK_CHARACTERS:
            self.close()

    def close(self) -> None:
        """Compress the last texts too: a few objects left lying keep much memory from its owner."""
        if self._last:
            self._starts.append(self._size - len(self._last))
            # Python's own plain format: short, quick, and these bytes never leave the process.
            self._blocks.append(zlib.compress(marshal.dumps(self._last), LEVEL))
            self._last, self._characters, self._open = [], 0, (-1, [])

    def __len__(self) -> int:
        return self._size

    def _block(self, number: int) -> list[str]:
        if number == len(self._blocks):
            return self._last
        held = self._open
        if held[0] != number:
            texts: list[str] = marshal.loads(zlib.decompress(self._blocks[number]))
            held = self._open = (number, texts)
        return held[1]

    def __iter__(self) -> Iterator[str]:
        for number in range(len(self._blocks) + 1):
            yield from self._block(number)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(self._size))]
        i = int(place) + (self._size if place < 0 else 0)
        if not 0 <= i < self._size:
            raise IndexError(f"text {place} of {self._size}")
        compressed = self._size - len(self._last)
        if i >= compressed:
            return self._last[i - compressed]
        number = bisect_right(self._starts, i) - 1
        return self._block(number)[i - self._starts[number]]


class Growing:
    """Numbers that come a block at a time, in one array with room for as many as are expected.

    Memory that is asked for once and not used yet costs nothing; arrays that move as they grow
    leave holes behind.

    Parameters
    ----------
    kind : str
        Their dtype.
    """

    def __init__(self, kind: str) -> None:
        self._room = np.empty(0, dtype=kind)
        self.size = 0

    def extend(self, values: NDArray[Any], expected: int = 0) -> None:
        """Append values; `expected` is how many there will be in all, as far as is known."""
        end = self.size + values.size
        wider = np.promote_types(self._room.dtype, values.dtype)
        if end > self._room.size or wider != self._room.dtype:
            room = np.empty(max(expected, end + self.size // 2), dtype=wider)
            room[: self.size] = self.values()
            self._room = room
        self._room[self.size : end] = values
        self.size = end

    def values(self) -> NDArray[Any]:
        """What has come so far."""
        return self._room[: self.size]


class TextNumbers:
    """Numbers the different texts of a column while its cells come.

    Up to `MANY` are looked up in a dictionary. Beyond, texts are packed as they come and known by
    128 bits of hash in sorted arrays: 20 bytes for each instead of 170, and nothing in small
    pieces, which would not be given back.
    """

    def __init__(self) -> None:
        self._codes = Growing("i1")
        self._place: dict[str, int] = {}
        self._packed: PackedTexts | None = None
        self._waiting: list[str] = []
        # Hashes in order, other hashes and numbers of the texts that have them.
        self._known: tuple[NDArray[Any], ...] = tuple(np.empty(0, kind) for kind in "qqi")

    def add(self, cells: Sequence[str], expected: int = 0) -> None:
        """Number some more cells, of about so many in all."""
        if self._packed is not None:
            self._waiting += cells
            if len(self._waiting) > max(MANY // 4, len(self._packed) // 32):
                self._number_waiting()
            return
        place = self._place
        codes = np.array([place.setdefault(cell, len(place)) for cell in cells], dtype=np.int32)
        self._codes.extend(narrow(codes, len(place)), expected)
        if len(place) > MANY:
            self._place, self._packed = {}, PackedTexts()
            settled, texts = settle_texts(self._codes.values(), list(place))
            self._codes = Growing("i4")
            self._codes.extend(settled, expected)
            self._add_new(list(texts), *_hashes(texts))

    def _number_waiting(self) -> None:
        place: dict[str, int] = {}
        rows = [place.setdefault(cell.strip(), len(place)) for cell in self._waiting]
        self._waiting, texts = [], list(place)
        hashes, others = _hashes(texts)
        known, more, numbers = self._known
        at = np.minimum(np.searchsorted(known, hashes), known.size - 1)
        codes = np.where((known[at] == hashes) & (more[at] == others), numbers[at], -1)
        new = [i for i in np.flatnonzero(codes < 0).tolist() if not is_missing_text(texts[i])]
        codes[new] = self._add_new([texts[i] for i in new], hashes[new], others[new])
        self._codes.extend(codes[rows])

    def _add_new(
        self, texts: list[str], hashes: NDArray[np.int64], others: NDArray[np.int64]
    ) -> NDArray[np.int32]:
        """Keep texts that are new, and return their numbers."""
        assert self._packed is not None
        numbers = np.arange(len(self._packed), len(self._packed) + len(texts), dtype=np.int32)
        for text in texts:
            self._packed.append(text)
        order = np.argsort(hashes)
        at = np.searchsorted(self._known[0], hashes[order])
        added: tuple[NDArray[Any], ...] = (hashes[order], others[order], numbers[order])
        both = zip(self._known, added, strict=True)
        self._known = tuple(_inserted(old, at, new) for old, new in both)
        return numbers

    def settle(self) -> tuple[NDArray[Any], Sequence[str]]:
        """Codes and texts, as :func:`settle_texts` gives them."""
        if self._packed is not None:
            self._number_waiting()
            self._packed.close()
            self._known = ()
            return self._codes.values(), self._packed
        return settle_texts(self._codes.values(), list(self._place))


def _inserted(old: NDArray[Any], at: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
    found: NDArray[Any] = np.insert(old, at, new)
    return found


def _hashes(texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Two hashes of each text, as Python computes them: others in every process."""
    n = len(texts)
    first = np.fromiter(map(hash, texts), np.int64, n)
    return first, np.fromiter((hash(text + "\0") for text in texts), np.int64, n)


def narrow(codes: NDArray[Any], n_texts: int) -> NDArray[Any]:
    """Codes in the fewest bytes that hold them, and one more than them."""
    kind = next(k for k in (np.int8, np.int16, np.int32) if n_texts < np.iinfo(k).max)
    return codes.astype(kind, copy=False)


def settle_texts(codes: NDArray[Any], cells: Sequence[Any]) -> tuple[NDArray[Any], Sequence[str]]:
    """Let different spellings of one text meet: spaces around it, None and "".

    Parameters
    ----------
    codes : ndarray of int
        Which of the cells each row has, -1 where it has none.
    cells : sequence
        Different cells, in order of appearance.

    Returns
    -------
    codes : ndarray of int8, int16 or int32
        Which text each row has, -1 where it has none.
    texts : sequence of str
        The different texts, stripped, in order of appearance; packed if they are many.
    """
    texts = cells
    if not all(isinstance(c, str) and c.strip() == c and not is_missing_text(c) for c in cells):
        final: dict[str, int] = {}
        meaning = np.full(len(cells) + 1, -1, dtype=np.int32)
        for i, cell in enumerate(cells):
            text = cell.strip() if isinstance(cell, str) else text_of(cell)
            meaning[i] = -1 if is_missing_text(text) else final.setdefault(text, len(final))
        codes, texts = meaning[codes], list(final)
    if len(texts) > MANY and not isinstance(texts, PackedTexts):
        texts = PackedTexts(texts)
    return narrow(codes, len(texts)), texts


def code_texts(cells: Iterable[Any]) -> tuple[NDArray[Any], Sequence[str]]:
    """Number the different texts of some cells; missing ones are -1.

    Parameters
    ----------
    cells : iterable
        Texts; None and other objects are taken by their text.

    Returns
    -------
    codes, texts
        As :func:`settle_texts` gives them.
    """
    place: dict[Any, int] = {}
    raw = np.fromiter(
        (place.setdefault(cell, len(place)) for cell in cells), dtype=np.int32, count=-1
    )
    return settle_texts(raw, list(place))


def text_of(cell: Any) -> str:
    """Text of one cell of a frame; empty where it is missing."""
    if cell is None or cell != cell:  # NaN and NaT are not themselves
        return ""
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "replace").strip()
    if isinstance(cell, float):
        return number_text(cell)
    if isinstance(cell, np.datetime64):
        return str(cell)
    return str(cell).strip()


def number_text(value: float) -> str:
    """A number as text: whole ones without a point, NaN empty."""
    if value != value:
        return ""
    return str(int(value)) if value.is_integer() and abs(value) < 2**63 else repr(value)
