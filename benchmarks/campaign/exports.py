"""Exports of a labelling session: every label of every row, in every format."""

from __future__ import annotations

import csv
import io
import json
import tempfile
import unicodedata
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from gdpa.labeling.tables import TableSource, open_table

from .outcome import RIGHT, generator, must, quiet, refused
from .written import WORDS

CLASSES = [
    "C+", "C#", "c#", "C:", "C?", "..", ".", "nul", "a/b", "a\\b", "x.", "caf\u00e9", "cafe\u0301",
    "=1+1", "@x", "-3", "<b>", "a,b", 'q"t', "\u202e", "con.txt", "a b", "a  b", "~", "0", "007",
    199 * "x" + ". y", 199 * "x" + ". z", 90 * "\u732b", "\U0001f600", "None", "NA", "l1\nl2",
]  # fmt: skip


def picture_name(rng: np.random.Generator, i: int) -> str:
    """A name, sometimes in a folder that is called like a picture."""
    folders = ["", "a/", "b/", "a.png/", "A/", "\u00e4/", "x y/"]
    return f"{rng.choice(folders)}{rng.choice(['p', 'P', 'q #'])}{i // 2}.png"


def run(seed: int) -> str:
    """One session."""
    rng = generator("exports", seed)
    pictures = rng.random() < 0.4
    n = int(rng.integers(8, 24))
    with quiet(), tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        rows = picture_rows(rng, place, n) if pictures else text_rows(rng, n)
        names = ["file", "kind"] if pictures else ["id", "text", "number", "kind"]
        with (place / "t.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([names, *rows])
        source = TableSource(str(place / "t.csv"), "kind", image="file" if pictures else None)
        try:
            controller, exporter, _ = open_table(source, log=None)
        except ValueError as error:
            return refused(error)
        few = [str(c) for c in rng.choice(CLASSES, size=int(rng.integers(2, 7)), replace=False)]
        given: dict[int, str] = {}
        for row in rng.permutation(n)[: int(rng.integers(2, n))].tolist():
            value = str(rng.choice(few))
            controller.answer("label", str(rng.choice(["", "ann", "=b"])), row, value)
            given[row] = value
        if len(set(given.values())) > 1:
            controller.session.refresh()
        check_table(exporter, names, rows, given)
        check_records(exporter, given, n)
        if pictures:
            check_folders(exporter, place, rows, given)
    return RIGHT


def text_rows(rng: np.random.Generator, n: int) -> list[list[str]]:
    """Rows with hostile cells, none of them labelled."""
    cells = rng.choice(WORDS, size=n)
    numbers = [f"{v:.3f}" for v in rng.normal(size=n)]
    return [[str(i), str(cells[i]), numbers[i], ""] for i in range(n)]


def picture_rows(rng: np.random.Generator, place: Path, n: int) -> list[list[str]]:
    """Pictures of one colour each, in folders."""
    from PIL import Image

    rows = []
    for i in range(n):
        name = picture_name(rng, i)
        path = place / name
        if not path.exists() and not any(p.is_file() for p in path.parents):
            path.parent.mkdir(parents=True, exist_ok=True)
            colour = tuple(int(v) for v in rng.integers(0, 255, 3))
            Image.new("RGB", (4, 4), colour).save(path)
            rows.append([name, ""])
    while len(rows) < n:
        name = f"extra{len(rows)}.png"
        Image.new("RGB", (4, 4), (len(rows), 9, 9)).save(place / name)
        rows.append([name, ""])
    return rows


def check_table(
    exporter: Any, names: list[str], rows: list[list[str]], given: dict[int, str]
) -> None:
    """CSV: the cells of the file, and the labels."""
    content = exporter.make("table", who=True)[0].decode()
    found = list(csv.DictReader(io.StringIO(content, newline="")))
    must(len(found) == len(rows), "rows of the table")
    for i, (line, row) in enumerate(zip(found, rows, strict=True)):
        must([line[name] for name in names[:-1]] == row[:-1], "a cell of the input is changed")
        must(line["kind"] == given.get(i, ""), "a label of the table")


def check_records(exporter: Any, given: dict[int, str], n: int) -> None:
    """JSON lines, Parquet and Label Studio."""
    lines = [json.loads(line) for line in exporter.make("jsonl")[0].decode().split("\n")[:-1]]
    must([line["kind"] for line in lines] == [given.get(i) for i in range(n)], "JSON lines")
    import pyarrow.parquet as pq

    table = pq.read_table(io.BytesIO(exporter.make("parquet")[0]))
    must(table.column("kind").to_pylist() == [given.get(i) for i in range(n)], "Parquet")
    for i, task in enumerate(json.loads(exporter.make("labelstudio")[0])):
        choices = [a["result"][0]["value"]["choices"] for a in task["annotations"]]
        must(choices == ([[given[i]]] if i in given else []), "Label Studio")


def check_folders(exporter: Any, place: Path, rows: list[list[str]], given: dict[int, str]) -> None:
    """The archive, unpacked: a folder per class, the right pictures in it."""
    archive = zipfile.ZipFile(io.BytesIO(exporter.make("folders")[0]))
    names = archive.namelist()
    must(len({unicodedata.normalize("NFC", n).casefold() for n in names}) == len(names), "names")
    out = place / "out"
    archive.extractall(out)
    text = archive.read("manifest.csv").decode()
    manifest = list(csv.DictReader(io.StringIO(text, newline="")))
    folder_of: dict[str, str] = {}
    for i, (line, row) in enumerate(zip(manifest, rows, strict=True)):
        must(line["name"] == row[0], "the order of the manifest")
        must((out / line["file"]).read_bytes() == (place / row[0]).read_bytes(), "a picture")
        kind, folder = line["file"].split("/")[:2]
        must((kind == "labelled") == (i in given), "a picture is in the wrong part")
        if i in given:
            must(line["label"] == given[i], "a label of the manifest")
            must(folder_of.setdefault(given[i], folder) == folder, "a class in two folders")
    must(len(set(folder_of.values())) == len(folder_of), "two classes in one folder")
