"""Archives: what is declared is compared with what is there before anything is inflated."""

from __future__ import annotations

import io
import tracemalloc
import zipfile

import numpy as np
import pytest

from gdpa.npz import read_npz, write_npz


def archive(members, compression=zipfile.ZIP_DEFLATED) -> io.BytesIO:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as file:
        for name, content in members:
            file.writestr(name, content)
    stream.seek(0)
    return stream


def npy(array) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def refused_within(source, match, n_bytes=4 * 10**6):
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=match):
            read_npz(source)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < n_bytes


def test_reads_what_numpy_wrote(tmp_path):
    arrays = {"a": np.arange(6.0).reshape(2, 3), "t": np.array("text"), "e": np.empty((0, 4))}
    for save in (np.savez, np.savez_compressed):
        stream = io.BytesIO()
        save(stream, **arrays)
        stream.seek(0)
        found = read_npz(stream)
        assert list(found) == list(arrays)
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[name], array)


def test_a_bomb_is_refused_before_it_is_inflated():
    zeros = np.zeros(16 * 10**6)  # 128 MB of zeros, packed to a thousandth
    bomb = archive([("a.npy", npy(zeros))])
    del zeros
    refused_within(bomb, "would expand to")


def test_our_own_zeros_are_no_bomb(tmp_path):
    path = tmp_path / "a.npz"
    write_npz(path, {"a": np.zeros(9 * 10**6)})
    assert not read_npz(path)["a"].any()


def test_a_header_that_declares_more_than_there_is():
    content = npy(np.zeros(4)).replace(b"(4,), }        ", b"(400000000,), }")
    assert content.count(b"400000000") == 1
    assert len(content) == len(npy(np.zeros(4))), "else the header's own length is wrong"
    refused_within(archive([("a.npy", content)]), "declares 3200000128 bytes but has 160")


def test_names_number_objects_and_packing():
    one = npy(np.zeros(1))
    refused_within(archive([("a.txt", b"x")]), "not an array")
    refused_within(archive([("a.npy", npy(np.array([{}, 1], dtype=object)))]), "Python objects")
    refused_within(archive([("a.npy", one)], zipfile.ZIP_LZMA), "is not supported")
    refused_within(archive([(f"{i}.npy", one) for i in range(1001)]), "1001 arrays")
    with pytest.warns(UserWarning, match="Duplicate"):
        twice = archive([("a.npy", one), ("a.npy", one)])
    refused_within(twice, "a duplicate")


def test_every_flip_and_cut_is_a_value_error_or_harmless():
    stream = io.BytesIO()
    np.savez_compressed(stream, a=np.arange(20.0), b=np.array("text"))
    whole = stream.getvalue()
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(400):
        damaged = bytearray(whole)
        if rng.random() < 0.3:
            del damaged[int(rng.integers(len(whole))) :]
        else:
            damaged[int(rng.integers(len(whole)))] ^= 1 << int(rng.integers(8))
        try:
            found = read_npz(io.BytesIO(bytes(damaged)))
        except ValueError:
            refused += 1
        else:
            assert all(isinstance(array, np.ndarray) for array in found.values())
    assert refused > 200
