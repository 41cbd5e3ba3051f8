"""gdpa fit and predict on folders of pictures and texts, with and without a model."""

from __future__ import annotations

import csv

import numpy as np
import pytest

image = pytest.importorskip("PIL.Image")


@pytest.fixture
def photos(tmp_path):
    """Red and blue pictures: three of each labelled by their folder, ten loose."""
    for i in range(16):
        place = tmp_path / "photos" / (["red", "blue"][i % 2] if i < 6 else "")
        place.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(i).integers(0, 50, (12, 12, 3), dtype=np.uint8)
        pixels[..., 2 * (i % 2)] += 180
        image.fromarray(pixels).save(place / f"{i}.png")
    return tmp_path / "photos"


def rows(path):
    with path.open(newline="") as file:
        return {row["file"]: row["prediction"] for row in csv.DictReader(file)}


def test_a_folder_of_pictures_is_fitted_and_predicted(command, photos, tmp_path):
    ended = command("fit", "photos", "-o", "p.csv", "--model", "m.npz", "--report", "r.html")
    assert ended.code == 0, ended.err
    predicted = rows(tmp_path / "p.csv")
    assert len(predicted) == 16
    assert all(predicted[f"{i}.png"] == ["red", "blue"][i % 2] for i in range(6, 16))
    assert "features of photographs are weak" in ended.err
    assert "features of photographs are weak" in (tmp_path / "r.html").read_text()
    (tmp_path / "new").mkdir()
    (photos / "7.png").rename(tmp_path / "new" / "x.png")
    ended = command("predict", "m.npz", "new", "-o", "q.csv")
    assert ended.code == 0, ended.err
    assert rows(tmp_path / "q.csv") == {"x.png": "blue"}


def test_a_table_names_picture_files(command, photos, tmp_path):
    lines = [f"{p.relative_to(tmp_path)},{p.parent.name}" for p in photos.rglob("*.png")]
    text = "\n".join(["photo,colour", *lines]).replace(",photos", ",")
    (tmp_path / "t.csv").write_text(text)
    ended = command("fit", "t.csv", "-t", "colour", "-o", "p.csv")
    assert ended.code == 0, ended.err
    assert "'photo': image, " in ended.err


def test_a_folder_of_texts_is_fitted(command, tmp_path):
    for i in range(40):
        place = tmp_path / "mail" / (["ham", "spam"][i % 2] if i < 12 else "")
        place.mkdir(parents=True, exist_ok=True)
        words = ["see you at lunch tomorrow", "win a free prize now"][i % 2]
        (place / f"{i}.txt").write_text(f"{words} {i}")
    ended = command("fit", "mail", "-o", "p.csv")
    assert ended.code == 0, ended.err
    predicted = rows(tmp_path / "p.csv")
    assert all(predicted[f"{i}.txt"] == ["ham", "spam"][i % 2] for i in range(12, 40))
    assert "'file': left out" in ended.err


def test_what_is_no_folder_or_model_is_refused(refused, command, photos, tmp_path):
    (tmp_path / "empty").mkdir()
    refused(command("fit", "empty"), "accepted are a table file", "of pictures (.png")
    refused(command("fit", "photos", "--embed", "empty"), "has 0 ONNX files")
    refused(
        command("fit", "photos", "--embed", "nosuch", "--offline"), "neither a folder nor a model"
    )
