"""Model files: newer, damaged, forged ones are refused; predict needs the columns of fit."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from gdpa import codec
from gdpa.npz import read_npz, write_npz

ROWS = "".join(f"{i},{i % 7},{'ab'[i % 2] if i < 10 else ''}\n" for i in range(30))


GOOD = "u,v,y\n" + ROWS


@pytest.fixture
def model(command, table):
    assert command("fit", table, "-t", "answer", "--id", "name", "--model", "m.npz", "-q").code == 0
    return table.parent / "m.npz"


def rewritten(path, change):
    """Change the arrays or the JSON of a model, and give it a valid checksum."""
    arrays = read_npz(path)
    plain = json.loads(str(arrays.pop("json")[()]))
    del arrays["checksum"]
    change(arrays, plain)
    content = {**arrays, "json": np.array(json.dumps(plain))}
    write_npz(path, content | {"checksum": np.array(codec._checksum(content))})


def stored(plain, name):
    """Return the fields of the first stored object of a class."""
    return next(fields for kind, fields in plain["objects"] if kind == name)


def test_a_model_of_a_newer_version_is_refused(refused, command, model, table):
    rewritten(model, lambda arrays, plain: plain.update(version=99))
    refused(command("predict", model, table), "version 99", "use the version that wrote it")


def test_a_damaged_model_is_refused(refused, command, model, table):
    raw = bytearray(model.read_bytes())
    raw[len(raw) // 2] ^= 0xFF
    model.write_bytes(bytes(raw))
    refused(command("query", model), "damaged")


class Bomb:
    """What a hostile pickle would hold: it runs code when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (str(self.path),))


def test_a_model_file_cannot_run_code(refused, command, table, tmp_path):
    np.savez(tmp_path / "evil.npz", json=np.array([Bomb(tmp_path / "ran")], dtype=object))
    refused(command("predict", "evil.npz", table), "evil.npz")
    import pickle

    (tmp_path / "pickle.npz").write_bytes(pickle.dumps(Bomb(tmp_path / "ran")))
    refused(command("query", "pickle.npz"), "pickle.npz")
    assert not (tmp_path / "ran").exists()


def of_table(plain):
    return stored(plain, "estimator")["extra"]["table"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        lambda arrays, plain: next(
            a for a in arrays.values() if a.dtype.kind == "i" and a.size > 30
        ).__setitem__(0, 10**6),
        lambda arrays, plain: arrays.pop(next(iter(arrays))),
        lambda arrays, plain: stored(plain, "estimator").update(encoder='{"columns": []}'),
        lambda arrays, plain: stored(plain, "estimator").update(encoder="[" * 10**5),
        lambda arrays, plain: of_table(plain).update(ids=["one"]),
        lambda arrays, plain: of_table(plain).update(sure=7),
        lambda arrays, plain: stored(plain, "estimator")["extra"].update(table=[]),
        lambda arrays, plain: stored(plain, "estimator").pop("params"),
    ],
)
def test_a_forged_model_is_refused_not_followed(refused, command, model, table, change):
    rewritten(model, change)
    refused(command("predict", model, table), "m.npz")


def test_predict_needs_the_columns_of_fit(refused, command, model, tmp_path):
    (tmp_path / "new.csv").write_text("width,colour\n1,red\n")
    refused(command("predict", model, "new.csv"), "no column 'height'")
    (tmp_path / "new.csv").write_text("width,height,colour\n1,tall,red\n")
    refused(command("predict", model, "new.csv"), "column 'height', row 1", "'tall'")


def test_an_unseen_category_is_said(command, model, tmp_path):
    (tmp_path / "new.csv").write_text("width,height,colour\n0,0,green\n")
    ended = command("predict", model, "new.csv")
    assert ended.code == 0
    assert "an unknown category" in ended.err
