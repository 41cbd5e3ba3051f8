"""Texts by the thousand: numbered by Arrow as by Python, and encoded in any order."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from gdpa.tables import TableEncoder, read_table, table_of
from gdpa.tables.features import TextEncoding
from gdpa.tables.table import (
    MISSING,
    ArrowTexts,
    clean_labels,
    clean_texts,
    intern_arrow,
    intern_texts,
    is_blank,
    is_missing_text,
    to_numpy,
)
from gdpa.tables.texts import _nearest

arrow = pytest.importorskip("pyarrow")


@pytest.fixture
def many(monkeypatch):
    """More than fifty different texts are many."""
    monkeypatch.setattr("gdpa.tables.table.MAX_TEXT_LIST", 50)


@pytest.mark.parametrize("different", [3, 60, 130, 700, 3000])
def test_arrow_numbers_texts_as_python_does(many, different):
    rng = np.random.default_rng(different)
    forms = ("w{}", " w{}", "w{} ", "", "NA", "\u00fc\n{}", "\0{}")
    cells = [
        forms[k].format(v)
        for k, v in zip(rng.integers(0, 7, 4000), rng.integers(0, different, 4000), strict=True)
    ]
    blocks = arrow.chunked_array([cells[:10], cells[10:1000], cells[1000:]])
    codes, texts = intern_arrow(blocks)
    wanted, words = intern_texts(cells)
    assert (codes.tolist(), list(texts)) == (wanted.tolist(), words)
    assert codes.dtype == wanted.dtype
    assert isinstance(texts, ArrowTexts) == (len(texts) > 50)


def test_arrow_numbers_are_numpy_numbers():
    cells = arrow.array([1.5, None, -2.0, None, 0.0])
    for part in (cells, cells[1:4], cells[1:2], cells[:0]):
        wanted = [np.nan if v is None else v for v in part.to_pylist()]
        np.testing.assert_array_equal(to_numpy(part, np.float64, np.nan), wanted)
    codes = to_numpy(arrow.array([3, None, 1], arrow.int32()), np.int32, -1)
    assert (codes.dtype, codes.tolist()) == (np.int32, [3, -1, 1])


@pytest.mark.parametrize("labels", [False, True])
def test_arrow_finds_missing_texts_as_python_does(labels):
    words = [
        *MISSING,
        *(f" {word.upper()} " for word in MISSING),
        *(f"{word}x" for word in MISSING),
    ]
    cells = [*words, "\u017f", "n\na", "na\nb", "\u00fc ", None]
    clean, missing = (clean_labels, is_blank) if labels else (clean_texts, is_missing_text)
    found = clean(arrow.array([*cells, "", " \t"], arrow.large_string())).to_pylist()
    for cell, text in zip([*cells, "", " \t"], found, strict=True):
        if cell is None or missing(cell):
            assert text is None
        else:
            assert text == (cell if labels else cell.strip())


def test_arrow_texts_are_a_sequence():
    given = [f"{i} " * (i % 7) for i in range(30_000)]
    texts = ArrowTexts(arrow.array(given))
    assert len(texts) == 30_000
    assert list(texts) == given
    assert (texts[17], texts[-1]) == (given[17], given[-1])
    assert texts[250:10:-7] == given[250:10:-7]
    assert texts.index(given[8]) == given.index(given[8])
    assert list(pickle.loads(pickle.dumps(texts))) == given
    for beyond in (30_000, -30_001):
        with pytest.raises(IndexError):
            texts[beyond]


def test_features_of_texts_do_not_depend_on_how_they_are_kept(many, monkeypatch, tmp_path):
    rng = np.random.default_rng(0)
    words = rng.choice([f"word{i}" for i in range(30)], (400, 4))
    rows = [" ".join(w) for w in words[rng.integers(0, 400, 900)]]
    rows[7] = ""
    data = {"note": rows, "n": rng.normal(size=900).tolist()}
    (tmp_path / "t.csv").write_text(
        "note,n\n" + "".join(f"{a},{b!r}\n" for a, b in zip(*data.values(), strict=True))
    )
    table = read_table(tmp_path / "t.csv")
    assert isinstance(table.column("note").texts, ArrowTexts)
    monkeypatch.setattr("gdpa.tables.texts.TEXT_BLOCK", 37)
    in_blocks = TableEncoder().fit_transform(table)
    monkeypatch.setattr("gdpa.tables.texts.TEXT_BLOCK", 10_000)
    whole = table_of(data)
    assert isinstance(whole.column("note").texts, list)
    assert in_blocks.tobytes() == TableEncoder().fit_transform(whole).tobytes()
    encoding = TextEncoding.fit(["ab", "cd"], np.array([1, 1]), 1, 0)
    out = np.full((3, len(encoding.suffixes)), np.nan)
    encoding.encode([], np.full(3, -1, dtype=np.int8), out)
    assert (out == 0).all()


def encoded(encoding, texts):
    out = np.empty((len(texts), len(encoding.suffixes)))
    encoding.encode(texts, np.arange(len(texts)), out)
    return out


def topics(n, seed):
    """Texts of two topics: a few of the many words of a topic, among words of both."""
    letters = np.random.default_rng(0).integers(97, 123, (240, 6)).tolist()
    words = np.array([bytes(word).decode() for word in letters])
    rng = np.random.default_rng(seed)
    topic = rng.integers(0, 2, n)
    own = 80 * topic[:, None] + rng.integers(0, 80, (n, 4))
    chosen = words[np.hstack([own, rng.integers(160, 240, (n, 6))])]
    return [" ".join(row) for row in chosen], topic


def test_similar_texts_make_features_of_new_texts_less_noisy():
    texts, topic = topics(600, 0)
    encoding = TextEncoding.fit(texts, np.ones(600, dtype=int), 32, 0)
    alone = replace(encoding, means=np.zeros_like(encoding.means))
    more, wanted = topics(300, 1)
    right = []
    for which in (encoding, alone):
        search = NearestNeighbors(n_neighbors=5).fit(encoded(which, texts))
        near = topic[search.kneighbors(encoded(which, more), return_distance=False)]
        right.append((near == wanted[:, None]).mean())
    assert right[0] > right[1] + 0.03
    # A text of the sample is not its own neighbour, so it is encoded like a new text.
    P = _nearest(encoding.anchors, encoding.anchors)
    assert not P.diagonal().any()
    assert np.allclose(P.sum(axis=1), 1.0)


@pytest.mark.parametrize(
    "texts", [["a"], ["a", "b"], ["!", "?"], ["x y"] * 3, ["same"] * 2 + ["other"], ["", "a b c"]]
)
def test_a_few_texts_get_finite_features(texts):
    encoding = TextEncoding.fit(texts, np.ones(len(texts), dtype=int), 8, 0)
    Z = encoded(encoding, [*texts, "", "something new"])
    assert np.isfinite(Z).all()
    assert np.abs(Z).max() < 1e3


def test_stored_texts_encode_the_same_and_damaged_ones_are_refused():
    texts, _ = topics(100, 2)
    encoder = TableEncoder(columns={"t": "text"}).fit({"t": texts})
    plain = encoder.to_plain()
    again = TableEncoder.from_plain(plain)
    assert again.transform({"t": texts}).tobytes() == encoder.transform({"t": texts}).tobytes()
    encoding = encoder.columns_[0].encoding
    for wrong in ({"means": encoding.means[1:]}, {"anchors": -encoding.anchors}):
        with pytest.raises(ValueError, match="anchors"):
            replace(encoding, **wrong)


def test_parquet_is_read_column_by_column(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    data = arrow.table(
        {"a.b": [1, 2, 3], "a": ["x", None, "y"], "flag": [True, None, False], "": [0.5, None, 1]}
    )
    parquet.write_table(data, tmp_path / "t.parquet", row_group_size=2)
    table = read_table(tmp_path / "t.parquet")
    assert table.names == ("a.b", "a", "flag", "column 4")
    cells = [column.cells() for column in table.columns]
    assert cells == [["1", "2", "3"], ["x", "", "y"], ["True", "", "False"], ["0.5", "", "1"]]
