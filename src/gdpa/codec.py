"""Save frozen dataclasses, such as models and graphs, as arrays and JSON, and load them.

A class is stored under the short name given to :func:`storable`; no name in a file is ever
imported. A file holds a list of objects. Each refers only to earlier objects, so there are no
cycles, and shared objects stay shared. Every field is checked against its annotation. A class
checks shapes, ranges and finite numbers in ``__post_init__``, and expensive conditions in a method
``check_stored``, which is called only for objects from files.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .errors import any_error_as_value_error
from .npz import read_npz, write_npz

T = TypeVar("T")
Arrays = dict[str, NDArray[Any]]

_CLASSES: dict[str, type] = {}
MAX_DEPTH = 32
MAX_OBJECTS = 10_000
_KINDS = "biufcUSmM"  # arrays of numbers, text and dates, but not of Python objects or records
_SCALARS = {np.floating: "f", np.integer: "iu", np.bool_: "b"}
_JSON = None | bool | int | float | str | list[Any] | tuple[Any, ...] | dict[str, Any]


def storable(name: str) -> Callable[[type[T]], type[T]]:
    """Register a dataclass under its name in files.

    Fields with ``init=False`` or ``metadata={"stored": False}`` are not stored and take their
    defaults. Annotations may be ndarray, csr_array, int, float, bool, str, None, Literal, list,
    tuple, dict with string keys, storable classes (or a base or runtime-checkable protocol of
    them), unions of these, and Any for JSON data.
    """

    def register(cls: type[T]) -> type[T]:
        known = _CLASSES.get(name)
        if not is_dataclass(cls) or (known and known.__qualname__ != cls.__qualname__):
            raise TypeError(f"{cls.__name__} is not a dataclass, or {name!r} is taken")
        _CLASSES[name] = cls
        cls.__stored_name__ = name  # type: ignore[attr-defined]
        return cls

    return register


def _field_types(cls: type) -> dict[str, Any]:
    hints = get_type_hints(cls)
    return {f.name: hints[f.name] for f in fields(cls) if f.init and f.metadata.get("stored", True)}


def pack(obj: Any) -> tuple[Arrays, dict[str, Any]]:
    """Convert a storable object to arrays and JSON data.

    Parameters
    ----------
    obj : dataclass
        An object of a class that is registered by :func:`storable`.

    Returns
    -------
    arrays : dict of str to ndarray
        Its arrays, each stored once.
    plain : dict
        Everything else, as JSON data.

    Raises
    ------
    ValueError
        If a value could only be stored by pickle, or :func:`unpack` would reject the object.
    """
    packer = _Packer()
    packer.pack_object(obj, "obj")
    plain = {"objects": packer.objects}
    unpack(type(obj), packer.arrays, plain)
    return packer.arrays, plain


class _Packer:
    """The arrays and objects packed so far."""

    def __init__(self) -> None:
        self.arrays: Arrays = {}
        self.objects: list[list[Any]] = []
        self._names: dict[int, tuple[Any, Any]] = {}  # keeps values alive, so that ids stay unique

    def encode(self, value: Any, where: str, depth: int = 0) -> Any:
        """Return the value of the field `where` as JSON, with references to arrays and objects."""
        if depth > MAX_DEPTH:
            raise ValueError(f"{where} is nested deeper than {MAX_DEPTH} levels")
        each = partial(self.encode, where=where, depth=depth + 1)
        match value.item() if isinstance(value, np.generic) else value:
            case float() as number if math.isinf(number):
                return {"$float": str(number)}
            case None | bool() | int() | float() | str() as plain:
                return plain
            case list() as items:
                return [each(item) for item in items]
            case tuple() as items:
                return {"$tuple": [each(item) for item in items]}
            case Mapping() as items:
                return {k: each(item, where=f"{where}[{k!r}]") for k, item in items.items()}
            case sp.csr_array() as A:
                A = A if A.has_canonical_format else A.copy()
                A.sum_duplicates()
                return {"$csr": [each(part) for part in (A.data, A.indices, A.indptr, *A.shape)]}
        if id(value) not in self._names:
            store = self.pack_array if isinstance(value, np.ndarray) else self.pack_object
            self._names[id(value)] = value, store(value, where, depth)
        return self._names[id(value)][1]

    def pack_array(self, value: NDArray[Any], where: str, _depth: int) -> dict[str, str]:
        array = np.asarray(value)
        tag = "$array"
        if array.dtype.kind == "O" and all(isinstance(item, str) for item in array.flat):
            array = array.astype(str)
            tag = "$strings"
            if array.astype(object).tolist() != value.tolist():
                raise ValueError(f"{where} has text that ends in a NUL character")
        if array.dtype.kind not in _KINDS:
            raise ValueError(f"{where}: {array.dtype} cannot be stored without pickle")
        name = f"{len(self.arrays)}.{where.partition('[')[0]}"
        self.arrays[name] = array
        return {tag: name}

    def pack_object(self, value: Any, where: str, depth: int = 0) -> dict[str, int]:
        name = getattr(value, "__stored_name__", None)
        if name is None or _CLASSES[name] is not type(value):
            kind = type(value).__name__
            raise ValueError(f"{where} is {value!r:.50}; {kind} cannot be stored without pickle")
        stored = {
            field: self.encode(getattr(value, field), f"{name}.{field}", depth + 1)
            for field in _field_types(type(value))
        }
        self.objects.append([name, stored])
        return {"$object": len(self.objects) - 1}


def unpack(cls: type[T], arrays: Arrays, plain: Any) -> T:
    """Rebuild an object from the result of :func:`pack`.

    Parameters
    ----------
    cls : type
        Expected class, or a base of it.
    arrays, plain : dict
        Results of :func:`pack`, which need not be trusted.

    Returns
    -------
    object of type `cls`
        The object.

    Raises
    ------
    ValueError
        If a field is missing, unknown or of the wrong type, a class is unknown, an array or object
        is not used, or a class rejects its values.
    """
    listed = plain.get("objects") if isinstance(plain, dict) and len(plain) == 1 else None
    if not isinstance(listed, list) or not 0 < len(listed) <= MAX_OBJECTS:
        raise ValueError(f"expected a list of 1 to {MAX_OBJECTS} objects")
    if any(array.dtype.kind not in _KINDS for array in arrays.values()):
        raise ValueError("an array has Python objects or records")
    unpacker = _Unpacker(arrays)
    for entry in listed:
        unpacker.add(entry)
    root = unpacker.objects[-1]
    if not isinstance(root, cls):
        raise ValueError(f"expected {cls.__name__}, got {type(root).__name__}")
    if unused := {*arrays, *range(len(listed) - 1)} - unpacker.used:
        raise ValueError(f"array or object {unused.pop()!r} is not used")
    return root


class _Unpacker:
    """The objects read so far, and the used arrays and objects."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays
        self.objects: list[Any] = []
        self.used: set[Any] = set()

    def add(self, entry: Any) -> None:
        """Read the next object."""
        match entry:
            case [str(name), dict(stored)] if name in _CLASSES:
                cls = _CLASSES[name]
            case [name, *_]:
                raise ValueError(f"{name!r:.50} is not a storable class with its fields")
            case _:
                raise ValueError("an object must have a name and fields")
        types = _field_types(cls)
        if wrong := sorted(types.keys() ^ stored.keys()):
            what = "lacks" if wrong[0] in types else "has an unknown"
            raise ValueError(f"{name} {what} field {wrong[0]!r:.50}")
        values = {}
        for field, hint in types.items():
            values[field] = value = self.decode(stored[field], f"{name}.{field}")
            if not _matches(value, hint):
                wanted = hint.__name__ if isinstance(hint, type) else str(hint)
                got = f"{type(stored[field]).__name__} {stored[field]!r:.40}"
                if isinstance(value, np.ndarray):
                    got = f"an array of {value.dtype}"
                raise ValueError(
                    f"{name}.{field} must be {wanted.removeprefix('typing.')}, got {got}"
                )
        with any_error_as_value_error(name):  # inconsistent values can cause any error
            self.objects.append(cls(**values))
            if check := getattr(cls, "check_stored", None):
                check(self.objects[-1])

    def decode(self, value: Any, where: str, depth: int = 0) -> Any:
        """Return what :meth:`_Packer.encode` encoded; its type is checked later."""
        if depth > MAX_DEPTH:
            raise ValueError(f"{where} is nested deeper than {MAX_DEPTH} levels")
        each = partial(self.decode, where=where, depth=depth + 1)
        match value:
            case None | bool() | str():
                return value
            case int() | float() if abs(value) < (2**63 if isinstance(value, int) else math.inf):
                return value
            case list():
                return [each(item) for item in value]
            case dict() if all(isinstance(key, str) and key[:1] != "$" for key in value):
                return {key: each(item) for key, item in value.items()}
            case dict() if len(value) > 1:
                pass
            case {"$float": "inf" | "-inf" as number}:
                return float(number)
            case {"$tuple": list(items)}:
                return tuple(each(item) for item in items)
            case {"$csr": [_, _, _, _, _] as parts}:
                A = csr_of_untrusted_parts(where, list(map(each, parts)))
                if A.has_canonical_format and np.isfinite(A.data).all():
                    return A
            case {"$array": str(name)} | {"$strings": str(name)} if name in self.arrays:
                self.used.add(name)
                array = self.arrays[name]
                return array.astype(str).astype(object) if "$strings" in value else array
            case {"$object": int(number)} if 0 <= number < len(self.objects):
                self.used.add(number)
                return self.objects[number]
        raise ValueError(f"{where}: {value!r:.50} is unknown, out of range or not finite")


def csr_of_untrusted_parts(name: str, parts: Sequence[Any]) -> sp.csr_array:
    """Return a sparse matrix of parts from a file, if they are consistent.

    SciPy's compiled code would follow an index out of range, and its own check overlooks pointers
    that overflow.

    Parameters
    ----------
    name : str
        Name of the matrix in error messages.
    parts : sequence
        Data, indices, index pointers, number of rows and number of columns.

    Returns
    -------
    csr_array
        The matrix; its entries may be unsorted, duplicate or not finite.

    Raises
    ------
    ValueError
        If the parts are inconsistent.
    """
    data, indices, indptr, *shape = parts
    if not (
        len(shape) == 2
        and all(type(size) is int and 0 <= size < 2**31 for size in shape)
        and all(isinstance(part, np.ndarray) and part.ndim == 1 for part in (data, indices, indptr))
        and data.dtype.kind in "fiub"
        and indices.dtype.kind == indptr.dtype.kind == "i"
        and indptr.size == shape[0] + 1
        and indptr[0] == 0
        and indptr[-1] == indices.size == data.size
        and (indptr[:-1] <= indptr[1:]).all()
        and (not indices.size or 0 <= indices.min() <= indices.max() < shape[1])
    ):
        raise ValueError(f"{name}: the parts of a sparse matrix are inconsistent")
    return sp.csr_array((data, indices, indptr), shape=shape)


def _matches(value: Any, hint: Any) -> bool:
    """Whether a decoded value has the annotated type; Any stands for JSON data."""
    hint = _JSON if hint is Any else hint
    kind = get_origin(hint) or hint
    args = get_args(hint)
    if kind in (Union, UnionType):
        return any(_matches(value, arg) for arg in args)
    if kind is Literal:
        return any(type(value) is type(arg) and value == arg for arg in args)
    if kind is float:
        return type(value) in (float, int)
    if is_dataclass(value) or type(value) is not kind:
        return is_dataclass(value) and isinstance(value, kind)
    if kind is np.ndarray:
        scalar = get_args(args[1])[0]
        families = [kinds for base, kinds in _SCALARS.items() if issubclass(scalar, base)]
        return all(value.dtype.kind in kinds for kinds in families)
    if kind is tuple and args[1:] != (Ellipsis,):
        return len(args) == len(value) and all(map(_matches, value, args))
    if kind in (list, tuple):
        return all(_matches(item, args[0]) for item in value)
    return kind is not dict or all(_matches(item, args[1]) for item in value.values())


def save(path: str | os.PathLike[str], obj: Any, *, kind: str, version: int) -> Path:
    """Write a storable object with its format, version and checksum, completely or not at all.

    Parameters
    ----------
    path : path-like
        NPZ file to write.
    obj : dataclass
        The object.
    kind : str
        Name of the format; the same as in :func:`load`.
    version : int
        Version of the format.

    Returns
    -------
    Path
        The file.
    """
    arrays, plain = pack(obj)
    text = json.dumps({"format": kind, "version": version, **plain}, allow_nan=False)
    content = {**arrays, "json": np.array(text)}
    write_npz(path, content | {"checksum": np.array(_checksum(content))})
    return Path(path)


def load(path: str | os.PathLike[str], cls: type[T], *, kind: str, version: int) -> T:
    """Load an object that :func:`save` wrote; never runs code from the file.

    Parameters
    ----------
    path : path-like
        The file.
    cls : type
        Expected class.
    kind, version
        As in :func:`save`.

    Returns
    -------
    object of type `cls`
        The object.

    Raises
    ------
    ValueError
        If the file is damaged, has another format or version, or `cls` rejects its values.
    """
    source = Path(path)
    if not source.exists():
        raise FileNotFoundError(f"there is no file {source}")
    with any_error_as_value_error(f"{source} is damaged or not a saved {kind}"):
        arrays = read_npz(source)
        plain = json.loads(str(arrays["json"][()]))
        stored = str(arrays.pop("checksum")[()])
    if not isinstance(plain, dict) or plain.pop("format", None) != kind:
        raise ValueError(f"{source} is not a saved {kind}")
    if (stored_version := plain.pop("version", None)) != version or type(stored_version) is not int:
        raise ValueError(
            f"{source} has format version {stored_version!r:.20}, but this version of gdpa reads "
            f"{version}; use the version that wrote it, or fit and save again"
        )
    if _checksum(arrays) != stored:
        raise ValueError(f"{source} is damaged: its checksum does not match its content")
    del arrays["json"]
    with any_error_as_value_error(f"{source} is not a valid saved {kind}"):
        return unpack(cls, arrays, plain)


def _checksum(arrays: Arrays) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name}:{array.dtype.str}:{array.shape};".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def check_numbers(
    name: str,
    array: NDArray[Any],
    shape: tuple[int | None, ...],
    *,
    at_least: float = -math.inf,
    at_most: float = math.inf,
) -> None:
    """Raise an error unless an array has finite numbers of the given shape and range.

    Parameters
    ----------
    name : str
        Name of the array in error messages.
    array : ndarray
        The array.
    shape : tuple of int or None
        Expected shape; None accepts any length.
    at_least, at_most : float
        Accepted range of values.

    Raises
    ------
    ValueError
        If the array has another shape, type or range.
    """
    fits = array.ndim == len(shape) and all(
        want is None or want == have for want, have in zip(shape, array.shape, strict=True)
    )
    if not fits or array.dtype.kind not in "fiub" or not np.isfinite(array).all():
        wanted = str(shape).replace("None", "any")
        raise ValueError(
            f"{name} must be finite numbers of shape {wanted}, got {array.dtype} of {array.shape}"
        )
    if array.size and not at_least <= array.min() <= array.max() <= at_most:
        raise ValueError(
            f"{name} must lie between {at_least:g} and {at_most:g}, "
            f"got {array.min():g} to {array.max():g}"
        )
