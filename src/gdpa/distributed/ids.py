"""Keys of identifiers: a 64-bit integer for every node.

An integer is its own key, so nodes with neighbouring numbers stay together. Text is hashed. A run
compares the texts that share a key, so two names are never taken for one node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import NDArray
from ..tables import TableError
from .inputs import Piece

if TYPE_CHECKING:
    import pyarrow as pa

Keys = NDArray[np.int64]

# Constants of the finaliser of splitmix64 (Steele, Lea, Flood 2014).
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)


def mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return a one-to-one map of 64-bit numbers that changes about half of the bits."""
    with np.errstate(over="ignore"):
        values = (values ^ (values >> np.uint64(30))) * MIX_1
        values = (values ^ (values >> np.uint64(27))) * MIX_2
    return np.asarray(values ^ (values >> np.uint64(31)))


def hash_bytes(
    content: NDArray[np.uint8], ends: NDArray[np.int64], seed: int = 0
) -> NDArray[np.uint64]:
    """Return a hash of each text, given all bytes and where each text starts and ends.

    Parameters
    ----------
    content : ndarray of uint8
        The bytes of all texts.
    ends : ndarray of int of shape (n_texts + 1,)
        Text i is ``content[ends[i]:ends[i + 1]]``.
    seed : int, default=0
        Other seeds give other hashes.
    """
    length = np.diff(ends)
    with np.errstate(over="ignore"):
        found = mix(length.astype(np.uint64) + GOLDEN * np.uint64(seed + 1))
    padded = np.concatenate([content, np.zeros(8, dtype=np.uint8)])
    words = np.lib.stride_tricks.sliding_window_view(padded, 8)
    active = np.flatnonzero(length > 0)
    done = 0
    while active.size:
        word = words[ends[active] + done].view("<u8")[:, 0].astype(np.uint64)
        missing = np.maximum(8 - (length[active] - done), 0).astype(np.uint64)
        word &= np.uint64(2**64 - 1) >> (np.uint64(8) * missing)
        with np.errstate(over="ignore"):
            found[active] = mix(found[active] ^ word) + GOLDEN
        done += 8
        active = active[length[active] > done]
    return found


def is_text(type_name: str) -> bool:
    """Return whether an Arrow type holds text; raise an error if it holds no identifiers."""
    if "string" in type_name:
        return True
    if type_name.startswith(("int", "uint")):
        return False
    raise TableError(f"identifiers must be text or integers, not {type_name}")


def check_present(column: pa.ChunkedArray, piece: Piece, name: str) -> None:
    """Raise an error that names the first row without an identifier."""
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise TableError(f"{piece.place(row)}: the identifier in column {name!r} is missing")


def integer_keys(column: pa.ChunkedArray, piece: Piece, name: str) -> Keys:
    """Return the keys of integers."""
    check_present(column, piece, name)
    values = column.to_numpy()
    if values.dtype == np.uint64 and values.size and values.max() >= 2**63:
        row = int(np.argmax(values))
        raise TableError(
            f"{piece.place(row)}: identifier {values[row]} in column {name!r} is larger than "
            "2^63 - 1; store the identifiers as text"
        )
    return np.asarray(values.astype(np.int64))


class Names:
    """Texts and their keys.

    Parameters
    ----------
    keys : ndarray of int
        Key of each text.
    content, ends : ndarray
        The bytes of all texts; text i is ``content[ends[i]:ends[i + 1]]``.
    """

    def __init__(self, keys: Keys, content: NDArray[np.uint8], ends: NDArray[np.int64]) -> None:
        self.keys = keys
        self.content = content
        self.ends = ends

    @classmethod
    def of(cls, texts: pa.Array, seed: int) -> Names:
        """Return the names in an Arrow array without missing values."""
        import pyarrow as pa

        array = texts.cast(pa.large_string())
        _, offsets, data = array.buffers()
        if offsets is None or data is None:
            content = np.empty(0, dtype=np.uint8)
            ends = np.zeros(len(array) + 1, dtype=np.int64)
        else:
            content = np.frombuffer(data, dtype=np.uint8)
            ends = np.frombuffer(offsets, dtype=np.int64)[array.offset :][: len(array) + 1]
        return cls(hash_bytes(content, ends, seed).view(np.int64), content, ends)

    def take(self, places: NDArray[np.integer[Any]]) -> Names:
        """Return some of the names."""
        texts = self.arrow().take(places)
        _, offsets, data = texts.buffers()
        content = np.frombuffer(data or b"", dtype=np.uint8)
        ends = np.frombuffer(offsets, dtype=np.int64)[: places.size + 1]
        return Names(self.keys[places], content, ends)

    def arrow(self) -> pa.Array:
        """Return the names as an Arrow array of text."""
        import pyarrow as pa

        buffers = [None, pa.py_buffer(self.ends), pa.py_buffer(self.content)]
        return pa.Array.from_buffers(pa.large_string(), self.keys.size, buffers)

    def unique(self) -> Names:
        """Return each name once, sorted by key; raise an error if two names share a key."""
        order = np.argsort(self.keys, kind="stable")
        keys = self.keys[order]
        same = np.flatnonzero(keys[1:] == keys[:-1]) + 1
        if same.size:
            texts = self.arrow()
            different = texts.take(order[same]).to_numpy(zero_copy_only=False) != texts.take(
                order[same - 1]
            ).to_numpy(zero_copy_only=False)
            if different.any():
                at = int(same[np.argmax(different)])
                raise TableError(
                    f"the identifiers {texts[int(order[at - 1])].as_py()!r} and "
                    f"{texts[int(order[at])].as_py()!r} have the same hash; run again with "
                    "another hash_seed and an empty work folder"
                )
        return self.take(np.delete(order, same))


def text_keys(column: pa.ChunkedArray, piece: Piece, name: str, seed: int) -> tuple[Keys, Names]:
    """Return the keys of a column of text, and its distinct names."""
    import pyarrow as pa

    check_present(column, piece, name)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    encoded = column.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    names = Names.of(encoded.dictionary, seed)
    return names.keys[encoded.indices.to_numpy()], names
