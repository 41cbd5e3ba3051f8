"""Saved classifiers: the same predictions after loading, and refusal of anything suspicious."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression

from gdpa import CommitteeClassifier, GraphClassifier
from gdpa.estimators import GraphOptions, storage
from gdpa.estimators.base import BaseClassifier


@pytest.fixture(scope="module")
def data():
    X, truth = make_blobs(80, centers=3, random_state=0)
    return X, np.where(np.arange(80) % 5 == 0, truth, -1), truth


@pytest.mark.parametrize(
    "unfitted",
    [
        CommitteeClassifier(),
        GraphClassifier(),
        GraphClassifier(graph="full"),
        CommitteeClassifier(
            n_neighbors=6, options=GraphOptions(rescale="standard", bandwidth="median")
        ),
        GraphClassifier(method="vote", options=GraphOptions(laplacian="combinatorial")),
        GraphClassifier(class_prior="labeled", label_weight=np.inf, self_loop=0.02),
        CommitteeClassifier(class_prior=np.array([0.2, 0.3, 0.5]), abstain_below=0.6),
    ],
)
def test_loaded_classifier_predicts_the_same(data, unfitted, tmp_path):
    X, y, truth = data
    model = clone(unfitted).fit(X, y)
    other = type(model).load(model.save(tmp_path / "model.npz"))
    rows = np.random.default_rng(0).normal(0, 4, (30, 2))
    assert (other.predict_proba(rows) == model.predict_proba(rows)).all()
    assert (other.predict(rows) == model.predict(rows)).all()
    assert (other.transduction_ == model.transduction_).all()
    assert other.objective_ == model.objective_
    assert other.tuning_.setting == model.tuning_.setting
    for name, value in model.get_params(deep=False).items():
        assert np.array_equal(other.get_params(deep=False)[name], value)
    for one in (model, other):
        one.add_labels([1, 2], truth[[1, 2]])
    assert (other.transduction_ == model.transduction_).all()


@pytest.mark.parametrize("labels", [["x", "y", "z"], [1.5e9, 2.0, 3.0]])
def test_classes_and_names_survive(data, labels, tmp_path):
    X, y, _ = data
    named = np.array([None if c < 0 else labels[c] for c in y], dtype=object)
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = CommitteeClassifier(unlabeled=None).fit(frame, named)
    other = CommitteeClassifier.load(model.save(tmp_path / "m.npz"))
    assert other.classes_.tolist() == model.classes_.tolist()
    assert other.classes_.dtype == model.classes_.dtype
    assert other.feature_names_in_.tolist() == ["a", "b"]
    assert (other.predict(frame) == model.predict(frame)).all()
    with pytest.raises(ValueError, match="feature names"):
        other.predict(frame.rename(columns={"a": "c"}))


def test_sparse_features_and_precomputed_graphs(data, tmp_path):
    X, y, _ = data
    model = CommitteeClassifier().fit(sp.csr_array(X), y)
    other = CommitteeClassifier.load(model.save(tmp_path / "a.npz"))
    assert (other.predict(sp.csr_array(X + 0.1)) == model.predict(sp.csr_array(X + 0.1))).all()
    graph = GraphClassifier(graph="precomputed").fit(model.graph_, y)
    other = GraphClassifier.load(graph.save(tmp_path / "b.npz"))
    assert (other.predict(model.graph_) == graph.predict(model.graph_)).all()


def test_the_file_holds_no_objects(data, tmp_path):
    X, y, _ = data
    path = CommitteeClassifier().fit(X, y).save(tmp_path / "m.npz")
    with np.load(path, allow_pickle=False) as file:
        for name in file.files:
            assert not file[name].dtype.hasobject
        assert json.loads(str(file["json"]))["version"] == storage.VERSION
    assert [p.name for p in tmp_path.iterdir()] == ["m.npz"]


@pytest.mark.parametrize("place", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_a_damaged_file_is_refused(data, place, tmp_path):
    X, y, _ = data
    model = CommitteeClassifier().fit(X, y)
    path = model.save(tmp_path / "m.npz")
    raw = bytearray(path.read_bytes())
    at = int(place * len(raw))
    raw[at : at + 8] = bytes(b ^ 0xFF for b in raw[at : at + 8])
    path.write_bytes(raw)
    message = ""
    try:
        loaded = CommitteeClassifier.load(path)
    except ValueError as error:
        message = str(error)
    else:  # the archive's own book-keeping was hit (a date, say): the content must be intact
        assert (loaded.label_scores_ == model.label_scores_).all()
        assert (loaded.graph_.data == model.graph_.data).all()
    assert message == "" or "damaged" in message
    path.write_bytes(raw[: len(raw) // 2])
    with pytest.raises(ValueError, match="damaged"):
        CommitteeClassifier.load(path)


def test_changed_content_with_a_valid_archive_is_refused(data, tmp_path):
    X, y, _ = data
    path = CommitteeClassifier().fit(X, y).save(tmp_path / "m.npz")
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    changed = next(name for name in arrays if name.endswith("scores"))
    arrays[changed] = arrays[changed] * 2
    with path.open("wb") as out:
        np.savez(out, **arrays)
    with pytest.raises(ValueError, match="checksum"):
        CommitteeClassifier.load(path)


def test_a_newer_version_is_refused(data, tmp_path, monkeypatch):
    X, y, _ = data
    monkeypatch.setattr(storage, "VERSION", storage.VERSION + 1)
    path = CommitteeClassifier().fit(X, y).save(tmp_path / "m.npz")
    monkeypatch.undo()
    with pytest.raises(ValueError, match="format version"):
        CommitteeClassifier.load(path)


def test_an_older_version_is_refused_with_what_to_do(data, tmp_path):
    X, y, _ = data
    path = CommitteeClassifier().fit(X, y).save(tmp_path / "m.npz")
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    plain = json.loads(str(arrays["json"][()]))
    plain["version"] -= 1
    arrays["json"] = np.array(json.dumps(plain))
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match="fit and save again"):
        CommitteeClassifier.load(path)


def test_other_files_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        CommitteeClassifier.load(tmp_path / "none.npz")
    (tmp_path / "p.npz").write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(ValueError, match="not a saved classifier"):
        CommitteeClassifier.load(tmp_path / "p.npz")
    with (tmp_path / "o.npz").open("wb") as out:
        np.savez(out, json=np.array({"format": storage.FORMAT}, dtype=object))
    with pytest.raises(ValueError, match="not a saved classifier"):
        CommitteeClassifier.load(tmp_path / "o.npz")
    np.savez(tmp_path / "n.npz", a=np.arange(3))
    with pytest.raises(ValueError, match="not a saved classifier"):
        CommitteeClassifier.load(tmp_path / "n.npz")


def test_what_cannot_be_stored_is_said(data, tmp_path):
    X, y, _ = data
    model = CommitteeClassifier(models=LogisticRegression()).fit(X, y)
    with pytest.raises(ValueError, match="models cannot be stored"):
        model.save(tmp_path / "m.npz")
    options = GraphOptions(method_options={"tol": {1, 2}})
    model = GraphClassifier(method="vote").fit(X, y).set_params(options=options)
    with pytest.raises(ValueError, match="method_options"):
        model.save(tmp_path / "m.npz")


def test_a_file_of_another_estimator_is_refused(data, tmp_path):
    X, y, _ = data
    path = GraphClassifier().fit(X, y).save(tmp_path / "m.npz")
    with pytest.raises(ValueError, match="it contains 'GraphClassifier', not CommitteeClassifier"):
        CommitteeClassifier.load(path)
    assert type(BaseClassifier.load(path)) is GraphClassifier
