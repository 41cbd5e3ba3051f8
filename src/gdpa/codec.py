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
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .npz import read_npz, write_npz

T = TypeVar("T")
Arrays = dict[str, NDArray[Any]]

_CLASSES: dict[str, type] = {}
MAX_DEPTH = 32
MAX_OBJECTS = 10_000
# Accepted types of arrays: numbers, text and dates, but not Python objects or records.
_KINDS = {np.floating: "f", np.integer: "iu", np.bool_: "b", np.str_: "U"}
_ANY_KIND = "biufcUSmM"
_JSON = (NoneType, bool, int, float, str)
_LIMITS = {bool: 2, int: 2**63, float: math.inf}


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


def _is_storable(value: Any) -> bool:
    return _CLASSES.get(getattr(type(value), "__stored_name__", "")) is type(value)


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
        If a value could only be stored by pickle.
    """
    if not _is_storable(obj):
        raise ValueError(f"{type(obj).__name__} cannot be stored without pickle")
    packer = _Packer()
    packer.encode(obj, "")
    return packer.arrays, {"objects": packer.objects}


class _Packer:
    """The arrays and objects packed so far."""

    def __init__(self) -> None:
        self.arrays: Arrays = {}
        self.objects: list[list[Any]] = []
        self._names: dict[int, tuple[Any, Any]] = {}  # keeps values alive, so that ids stay unique

    def encode(self, value: Any, where: str, depth: int = 0) -> Any:
        """Return `value` as JSON, with references to arrays and objects."""
        if depth > MAX_DEPTH:
            raise ValueError(f"{where} is nested deeper than {MAX_DEPTH} levels")
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, int) and abs(value) < 2**63:
            return int(value)
        if isinstance(value, float) and not math.isnan(value):
            return float(value) if math.isfinite(value) else {"$float": str(float(value))}
        if isinstance(value, list | tuple):
            items = [self.encode(v, f"{where}[{i}]", depth + 1) for i, v in enumerate(value)]
            return items if isinstance(value, list) else {"$tuple": items}
        if isinstance(value, Mapping):
            if not all(isinstance(key, str) and not key.startswith("$") for key in value):
                raise ValueError(f"{where} has a key that is not a string, or starts with $")
            return {key: self.encode(v, f"{where}[{key!r}]", depth + 1) for key, v in value.items()}
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if isinstance(value, sp.csr_array):
            if not value.has_canonical_format:
                value = value.copy()
                value.sum_duplicates()
            parts = [self._array(getattr(value, p), where) for p in ("data", "indices", "indptr")]
            return {"$csr": [*parts, *map(int, value.shape)]}
        if _is_storable(value):
            if id(value) not in self._names:
                name = value.__stored_name__
                stored = {
                    f: self.encode(getattr(value, f), f"{name}.{f}", depth + 1)
                    for f in _field_types(type(value))
                }
                self._names[id(value)] = value, {"$object": len(self.objects)}
                self.objects.append([name, stored])
            return self._names[id(value)][1]
        kind = type(value).__name__
        raise ValueError(f"{where} is {kind} {value!r:.50}, which only pickle could store")

    def _array(self, value: NDArray[Any], where: str) -> dict[str, str]:
        if id(value) not in self._names:
            array, tag = np.asarray(value), "$array"
            if array.dtype.kind == "O" and all(isinstance(v, str) for v in array.flat):
                array, tag = array.astype(str), "$strings"
                if array.astype(object).tolist() != value.tolist():
                    raise ValueError(f"{where} has text that ends in a NUL character")
            if array.dtype.kind not in _ANY_KIND:
                raise ValueError(f"{where} has dtype {array.dtype}, which only pickle could store")
            name = f"{len(self.arrays)}.{where.partition('[')[0]}"
            self.arrays[name] = array
            self._names[id(value)] = value, {tag: name}
        return self._names[id(value)][1]  # type: ignore[no-any-return]


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
    unpacker = _Unpacker(arrays)
    for entry in listed:
        unpacker.add(entry)
    root = unpacker.objects[-1]
    if not isinstance(root, cls):
        raise ValueError(f"expected {cls.__name__}, got {type(root).__name__}")
    if unused := {*arrays, *range(len(listed) - 1)} - unpacker.used:
        raise ValueError(f"array or object {unused.pop()!r} is not used")
    return root


class _WrongTypeError(ValueError):
    """Raised if a stored value does not have the annotated type; the message is its type."""


class _Unpacker:
    """The objects read so far, and the used arrays and objects."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays
        self.objects: list[Any] = []
        self.used: set[Any] = set()

    def add(self, entry: Any) -> None:
        """Read the next object."""
        if not (isinstance(entry, list) and len(entry) == 2 and isinstance(entry[1], dict)):
            raise ValueError("an object must have a name and fields")
        name, stored = entry
        if not isinstance(name, str) or name not in _CLASSES:
            raise ValueError(f"{name!r:.50} is not a storable class")
        cls = _CLASSES[name]
        types = _field_types(cls)
        if wrong := sorted(types.keys() ^ stored.keys()):
            what = "lacks" if wrong[0] in types else "has an unknown"
            raise ValueError(f"{name} {what} field {wrong[0]!r:.50}")
        values = {}
        for field, hint in types.items():
            try:
                values[field] = self.decode(stored[field], hint)
            except _WrongTypeError as error:
                wanted = hint.__name__ if isinstance(hint, type) else str(hint)
                wanted = wanted.removeprefix("typing.")
                raise ValueError(f"{name}.{field} must be {wanted}, got {error}") from error
            except ValueError as error:
                raise ValueError(f"{name}.{field}: {error}") from error
        try:
            self.objects.append(cls(**values))
            if check := getattr(cls, "check_stored", None):
                check(self.objects[-1])
        except MemoryError:
            raise
        except Exception as error:  # inconsistent values can cause any error
            raise ValueError(f"{name}: {error}") from error

    def decode(self, value: Any, hint: Any, depth: int = 0) -> Any:
        """Return the value that :meth:`_Packer.encode` encoded, if its type matches `hint`.

        The annotation Any accepts JSON data, without arrays and objects.
        """
        if depth > MAX_DEPTH:
            raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
        kind, args = get_origin(hint) or hint, get_args(hint)
        each = partial(self.decode, depth=depth + 1)
        tag = next(iter(value)) if isinstance(value, dict) and len(value) == 1 else None
        content = value if tag is None else value[tag]
        if kind in (Union, UnionType):
            for arg in args:
                with suppress(_WrongTypeError):
                    return self.decode(value, arg, depth)
        elif kind is Literal and any(type(value) is type(a) and value == a for a in args):
            return value
        elif kind in (list, Any) and isinstance(value, list):
            return [each(item, args[0] if args else Any) for item in value]
        elif kind in (tuple, Any) and tag == "$tuple" and isinstance(content, list):
            if not args or args[1:] == (Ellipsis,):
                args = (args or (Any,))[:1] * len(content)
            if len(args) == len(content):
                return tuple(map(each, content, args))
        elif kind in (float, Any) and tag == "$float" and content in ("inf", "-inf"):
            return float(content)
        elif kind is np.ndarray and tag in ("$array", "$strings"):
            return self._array(content, tag, args)
        elif kind is sp.csr_array and tag == "$csr" and isinstance(content, list):
            return self._csr(content)
        elif tag == "$object" and type(content) is int and 0 <= content < len(self.objects):
            expected = isinstance(kind, type) and kind is not Any
            if expected and isinstance(self.objects[content], kind):
                self.used.add(content)
                return self.objects[content]
        elif kind in (dict, Mapping, Any) and isinstance(value, dict):
            if not any(str(key).startswith("$") for key in value):
                return {key: each(item, args[1] if args else Any) for key, item in value.items()}
        elif type(value) in {float: (float, int), Any: _JSON}.get(kind, {kind}.intersection(_JSON)):
            if isinstance(value, int | float) and not abs(value) < _LIMITS[type(value)]:
                raise ValueError(f"the number {str(value)[:50]} is out of range")
            return value
        raise _WrongTypeError(f"{type(value).__name__} {value!r:.40}")

    def _array(self, name: Any, tag: str, args: tuple[Any, ...]) -> NDArray[Any]:
        """Read an array of an accepted type."""
        array = self.arrays.get(name) if isinstance(name, str) else None
        if not isinstance(array, np.ndarray) or array.dtype.kind not in _ANY_KIND:
            raise ValueError(f"refers to the missing array {name!r:.50}")
        self.used.add(name)
        scalar = (get_args(args[1]) or (Any,))[0] if args else Any
        kinds = (k for t, k in _KINDS.items() if isinstance(scalar, type) and issubclass(scalar, t))
        text = tag == "$strings"
        if array.dtype.kind not in next(kinds, _ANY_KIND) or (text and array.dtype.kind != "U"):
            raise _WrongTypeError(f"an array of {array.dtype}")
        return array.astype(object) if text else array

    def _csr(self, parts: list[Any]) -> sp.csr_array:
        """Read a sparse matrix: data, indices, indptr and the shape."""
        if len(parts) != 5:
            raise _WrongTypeError("not a sparse matrix")
        data, indices, indptr = (self.decode(part, np.ndarray) for part in parts[:3])
        check_csr_parts(data, indices, indptr, parts[3:])
        A = sp.csr_array((data, indices, indptr), shape=tuple(parts[3:]))
        if not A.has_canonical_format or not np.isfinite(A.data).all():
            raise ValueError("entries are duplicate, unsorted or not finite")
        return A


def check_csr_parts(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    shape: Sequence[int],
    *,
    square: bool = False,
) -> None:
    """Raise an error unless three arrays are a valid sparse matrix of real numbers.

    SciPy's compiled code would follow an index out of range.

    Parameters
    ----------
    data, indices, indptr : ndarray
        The parts.
    shape : sequence of int
        Shape of the matrix.
    square : bool, default=False
        Whether the matrix must be square.

    Raises
    ------
    ValueError
        If the arrays are not a valid matrix.
    """
    if not (
        len(shape) == 2
        and all(type(size) is int and 0 <= size < 2**31 for size in shape)
        and (shape[0] == shape[1] or not square)
        and data.ndim == indices.ndim == indptr.ndim == 1
        and data.dtype.kind in "fiub"
        and indices.dtype.kind == indptr.dtype.kind == "i"
        and indptr.size == shape[0] + 1
        and indptr[0] == 0
        and indptr[-1] == indices.size == data.size
        and bool((np.diff(indptr) >= 0).all())
        and (not indices.size or 0 <= indices.min() <= indices.max() < shape[1])
    ):
        raise ValueError("the parts of a sparse matrix are inconsistent")


def save(path: str | os.PathLike[str], obj: Any, *, kind: str, version: int) -> Path:
    """Write a storable object with its format, version and checksum, completely or not at all.

    Parameters
    ----------
    path : path-like
        NPZ file to write.
    obj : dataclass
        The object; an error is raised if :func:`load` would reject it.
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
    unpack(type(obj), arrays, plain)
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
    try:
        arrays = read_npz(source)
        plain = json.loads(str(arrays["json"][()]))
        stored = str(arrays.pop("checksum")[()])
    except MemoryError:
        raise
    except Exception as error:  # a damaged archive or deeply nested JSON can cause any error
        raise ValueError(f"{source} is damaged or not a saved {kind}: {error}") from error
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
    try:
        return unpack(cls, arrays, plain)
    except ValueError as error:
        raise ValueError(f"{source} is not a valid saved {kind}: {error}") from error


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
