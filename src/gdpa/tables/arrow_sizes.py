"""Sizes that an Arrow message declares, before its content is decompressed.

The metadata of a message is a FlatBuffers table (see "Encapsulated message format" of the Apache
Arrow columnar format). PyArrow does not show the sizes, and reading the batch would allocate them.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

_RECORD_BATCH = 3
_DICTIONARY_BATCH = 2
# Positions of fields in their tables (format/Message.fbs).
_HEADER_TYPE = 1
_HEADER = 2
_DICTIONARY_DATA = 1
_LENGTH = 0
_BUFFERS = 2
_COMPRESSION = 3


class BatchSizes(NamedTuple):
    """Number of rows of a batch, and bytes of its buffers when decompressed."""

    rows: int
    n_bytes: int


def batch_sizes(metadata: bytes, body: Any) -> BatchSizes:
    """Return the declared sizes of a record batch or dictionary batch.

    Parameters
    ----------
    metadata : bytes
        Metadata of the message.
    body : pyarrow.Buffer or None
        Its body. A compressed buffer begins with its decompressed size.

    Returns
    -------
    BatchSizes
        The sizes; zero for other messages.

    Raises
    ------
    ValueError
        If the metadata are damaged.
    """
    try:
        (root,) = struct.unpack_from("<I", metadata, 0)
        place = _field(metadata, root, _HEADER_TYPE)
        kind = metadata[place] if place else 0
        batch = _table(metadata, root, _HEADER)
        rows_count = 1
        if kind == _DICTIONARY_BATCH:
            batch = _table(metadata, batch, _DICTIONARY_DATA)
            rows_count = 0  # the entries of a dictionary are not rows
        elif kind != _RECORD_BATCH:
            return BatchSizes(0, 0)
        length = _field(metadata, batch, _LENGTH)
        rows = struct.unpack_from("<q", metadata, length)[0] if length else 0
        return BatchSizes(rows_count * max(0, rows), _buffer_bytes(metadata, batch, body))
    except (struct.error, IndexError) as error:
        raise ValueError(f"damaged Arrow message: {error}") from error


def _buffer_bytes(metadata: bytes, batch: int, body: Any) -> int:
    """Return the bytes of all buffers of a batch when decompressed."""
    vector = _table(metadata, batch, _BUFFERS)
    if not vector or body is None:
        return 0
    (count,) = struct.unpack_from("<I", metadata, vector)
    compressed = bool(_field(metadata, batch, _COMPRESSION))
    total = 0
    for k in range(count):
        offset, length = struct.unpack_from("<qq", metadata, vector + 4 + 16 * k)
        size = length
        if compressed and length >= 8:
            (declared,) = struct.unpack("<q", body.slice(offset, 8).to_pybytes())
            size = length if declared == -1 else declared  # -1: stored without compression
        total += max(0, size)
    return total


def _field(data: bytes, table: int, number: int) -> int:
    """Return the position of a field of a FlatBuffers table; 0 if it is absent."""
    (back,) = struct.unpack_from("<i", data, table)
    (size,) = struct.unpack_from("<H", data, table - back)
    if 4 + 2 * number >= size:
        return 0
    (offset,) = struct.unpack_from("<H", data, table - back + 4 + 2 * number)
    return table + offset if offset else 0


def _table(data: bytes, table: int, number: int) -> int:
    """Return the position of a table or vector that a field refers to; 0 if it is absent."""
    place = _field(data, table, number)
    if not place:
        return 0
    (offset,) = struct.unpack_from("<I", data, place)
    return int(place + offset)
