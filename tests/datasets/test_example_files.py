"""The files of ``gdpa example``: real data, the same every time, readable by the package."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from gdpa.datasets import example_files
from gdpa.datasets.example_files import EXAMPLES, png


def rows(name, file):
    return list(csv.DictReader(io.StringIO(example_files(name)[file].decode())))


@pytest.mark.parametrize("name", EXAMPLES)
def test_files_are_small_and_the_same_every_time(name):
    files = example_files(name)
    assert files == example_files(name)
    assert sum(map(len, files.values())) < 300_000


def test_the_numbers_that_the_page_states():
    plants = rows("plants", "plants.csv")
    assert len(plants) == 120
    assert sum(row["species"] != "" for row in plants) == 30
    assert len(rows("plants", "new-plants.csv")) == 30
    assert sum(row["mood"] != "" for row in rows("reviews", "reviews.csv")) == 24
    photos = rows("photos", "photos.csv")
    assert (len(photos), sum(row["digit"] != "" for row in photos)) == (200, 60)
    papers = rows("papers", "papers.csv")
    assert sum(row["author"] != "" for row in papers) == 45
    assert len(papers) + len(rows("papers", "new-papers.csv")) == 85
    borders = example_files("cut")["borders.txt"].decode().split()
    assert len(borders) == 2 * 105
    assert len(set(borders)) == 48


def test_labelled_pictures_are_in_the_folder_of_their_class():
    files = example_files("photos")
    for row in rows("photos", "photos.csv"):
        assert row["file"] in files
        parts = row["file"].split("/")
        assert parts[1:-1] == ([row["digit"]] if row["digit"] else [])


def test_pictures_are_read_by_pillow():
    image = pytest.importorskip("PIL.Image")
    pixels = np.arange(12.0).reshape(3, 4) * 20
    found = np.asarray(image.open(io.BytesIO(png(pixels, 2))))
    np.testing.assert_array_equal(found[::2, ::2], pixels)
    np.testing.assert_array_equal(found[1::2, 1::2], pixels)


def test_an_unknown_example_is_refused():
    with pytest.raises(ValueError, match="'plant' is no example; did you mean 'plants'"):
        example_files("plant")
