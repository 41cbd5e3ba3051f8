"""Files on the controller: tables, texts, pictures, arrays, saved models; what the page is told."""

from __future__ import annotations

import csv
import zlib
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from gdpa.cli.models import load_model
from gdpa.labeling.images import ArrayImages, png
from gdpa.labeling.rows import RowView
from gdpa.labeling.tables import TableSource, open_table
from gdpa.tables import Column, TableError
from gdpa.tables.table import intern_texts


def controller_of(tmp_path, **options):
    options.setdefault("target", "kind")
    return open_table(TableSource(**options), log=tmp_path / "log")


def write(path, header, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return str(path)


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    rows = []
    for i in range(60):
        kind = i % 2
        known = ["cat", "dog"][kind] if i < 6 else ""
        rows.append([f"n{i}", f"{rng.normal():.3f}", f"{4 * kind + rng.normal():.3f}", known])
    return write(tmp_path / "t.csv", ["name", "noise", "size", "kind"], rows)


def test_output_columns_of_an_earlier_run_are_no_features(table, tmp_path):
    _, exporter, notes = controller_of(tmp_path, data=table, id_column="name")
    assert not any("earlier run" in note for note in notes)
    exporter.session.refresh()
    earlier = tmp_path / "earlier.csv"
    earlier.write_bytes(exporter.make("table", who=True)[0])
    (tmp_path / "second").mkdir()
    controller, exporter, notes = controller_of(
        tmp_path / "second", data=str(earlier), id_column="name"
    )
    assert [p.name for p in exporter.encoder.columns_] == ["noise", "size"]
    assert [c["name"] for c in controller.item(0)["cells"]] == ["noise", "size"]
    assert any("earlier run: 'kind_predicted', 'kind_probability'" in note for note in notes)


def test_labels_of_the_table_are_where_it_starts(table, tmp_path):
    controller, exporter, _ = controller_of(tmp_path, data=table, id_column="name")
    state = controller.state("me")
    assert (state["rows"], state["labelled"]) == (60, 6)
    assert [c["value"] for c in state["classes"]] == ["cat", "dog"]
    assert controller.item(0)["name"] == "n0"
    assert controller.item(0)["label"] == "cat"
    assert [c["name"] for c in controller.item(0)["cells"]] == ["noise", "size"]
    controller.session.refresh()
    controller._order_columns()
    assert [c["name"] for c in controller.item(0)["cells"]] == [
        "size",
        "noise",
    ]
    rows = list(csv.DictReader(exporter.make("table")[0].decode().splitlines()))
    assert set(rows[0]) == {
        "name",
        "noise",
        "size",
        "kind",
        "kind_predicted",
        "kind_probability",
        "kind_skipped",
    }
    assert sum(r["kind_predicted"] == ["cat", "dog"][i % 2] for i, r in enumerate(rows)) > 50


def test_a_saved_model_is_where_it_starts(table, tmp_path):
    controller, exporter, _ = controller_of(tmp_path, data=table, id_column="name")
    controller.session.label(30, "cat")
    (tmp_path / "m.npz").write_bytes(exporter.make("model")[0])
    fitted = load_model(str(tmp_path / "m.npz"))
    assert fitted.about["target"] == "kind"
    bare = write(
        tmp_path / "bare.csv",
        ["name", "noise", "size"],
        [line.split(",")[:3] for line in Path(table).read_text().splitlines()[1:]],
    )
    codes = fitted.model.ensemble_.labels
    labels = [None if c < 0 else str(codes.classes[c]) for c in codes.codes]
    again, _, notes = open_table(
        TableSource(data=bare, target="kind", id_column="name"),
        log=None,
        encoder=fitted.encoder,
        labels=labels,
    )
    assert again.session.labels == controller.session.labels
    np.testing.assert_array_equal(again.session.predictions(), controller.session.predictions())
    assert any("no column 'kind'" in note for note in notes)
    with pytest.raises(ValueError, match="60 rows, the model was fitted on 3"):
        open_table(TableSource(data=bare, target="kind"), log=None, labels=[None] * 3)


def test_texts_are_read_and_learned_from(tmp_path):
    good, bad = "a wonderful bright film", "terrible boring waste of time"
    rows = [[f"{(good, bad)[i % 2]} {i}", i % 3] for i in range(40)]
    data = write(tmp_path / "r.csv", ["review", "stars"], rows)
    controller, _, _ = controller_of(tmp_path, data=data, text="review", target="mood")
    item = controller.item(3)
    assert item["text"].startswith(bad)
    assert [c["name"] for c in item["cells"]] == ["stars"]
    for row in range(6):
        controller.answer("label", "me", row, ["good", "bad"][row % 2])
    predicted = controller.session.predictions()
    assert np.mean(predicted == np.array(["good", "bad"] * 20)) > 0.9


def test_pictures_beside_the_table_are_learned_from(tmp_path):
    pytest.importorskip("PIL")
    (tmp_path / "img").mkdir()
    rng = np.random.default_rng(1)
    rows = []
    for i in range(30):
        pixels = rng.integers(0, 90, (20, 20, 3), dtype=np.uint8)
        pixels[..., i % 2] += 150
        (tmp_path / "img" / f"{i}.png").write_bytes(png(pixels))
        rows.append([f"img/{i}.png" if i else "img/none.png"])
    data = write(tmp_path / "p.csv", ["file"], rows)
    controller, exporter, notes = controller_of(tmp_path, data=data, image="file")
    assert any("1 cells are unreadable pictures" in note for note in notes)
    assert any("weak" in note and "--embed" in note for note in notes)
    assert controller.item(1)["picture"]
    assert controller.rows.images.get(1)[1] == "image/png"
    for row in range(1, 7):
        controller.answer("label", "me", row, ["red", "green"][row % 2])
    predicted = controller.session.predictions()[1:]
    assert np.mean(predicted == np.array([["red", "green"][i % 2] for i in range(1, 30)])) > 0.9
    assert exporter.make("report")[0].startswith(b"<!")
    assert exporter.make("model")[0].startswith(b"PK")


def test_arrays_of_pixels_are_pictures(tmp_path):
    X, y = load_digits(return_X_y=True)
    np.savez(tmp_path / "d.npz", X=X[:200])
    controller, _, _ = controller_of(
        tmp_path, data=str(tmp_path / "d.npz"), target="digit", shape=(8, 8)
    )
    content, kind = controller.rows.images.get(7)
    assert kind == "image/png"
    assert controller.item(7)["cells"] == []
    image = pytest.importorskip("PIL.Image")
    import io

    pixels = np.asarray(image.open(io.BytesIO(content)))
    np.testing.assert_array_equal(pixels, np.round(X[7].reshape(8, 8) / X.max() * 255))
    for row in controller.session.next(20):
        controller.answer("label", "me", int(row), str(y[row]))
    assert len(controller.guess(int(controller.session.next()[0]))) == 0
    controller.session.refresh()
    assert len(controller.guess(0)) == 3
    with pytest.raises(ValueError, match="needs 63 number columns"):
        controller_of(tmp_path, data=str(tmp_path / "d.npz"), shape=(7, 9))


def test_png_is_what_decoders_expect():
    pixels = np.array([[0, 128], [255, 7]], dtype=np.uint8)
    content = png(pixels)
    body = content.partition(b"IDAT")[2]
    raw = zlib.decompressobj().decompress(body)
    assert raw == bytes([0, 0, 128, 0, 255, 7])
    flat = ArrayImages(np.full((1, 2, 2), 3.0)).get(0)[0]
    assert flat.startswith(b"\x89PNG")


def test_long_cells_are_cut_with_a_word_about_it():
    text = Column(*intern_texts(["y" * 200_000]))
    items = RowView(["a"], [Column(*intern_texts(["x" * 5000]))], text=text)
    shown = items.describe(0)
    assert shown["cells"][0]["value"].endswith("(5,000 characters)")
    assert len(shown["text"]) < 60_000
    many = RowView([str(j) for j in range(90)], [Column(np.array([1.5]))] * 90)
    assert len(many.describe(0)["cells"]) == 60
    assert many.describe(0)["more"] == 30


def test_the_page_is_told_what_it_needs(table, tmp_path):
    controller, _, _ = controller_of(tmp_path, data=table, classes=("eel",))
    assert [c["value"] for c in controller.state()["classes"]] == ["eel", "cat", "dog"]
    controller.start()
    try:
        rows = [item["row"] for item in controller.next("me", 2)]
        assert controller.answer("label", "me", rows[0], "ant") == rows[0]
        # A new class takes the last place: the keys of the others stay.
        order = [c["value"] for c in controller.state("me")["classes"]]
        assert order == [
            "eel",
            "cat",
            "dog",
            "ant",
        ]
        assert controller.labels()[0]["value"] == "ant"
        assert controller.answer("undo", "me", None) == rows[0]
        assert controller.answer("undo", "me", None) is None
        controller.answer("skip", "me", rows[0])
        assert controller.labels()[0]["value"] is None
        for _ in range(300):
            if controller.map()["ready"] and not controller.state()["following"]:
                break
            controller._end.wait(0.1)
        places = controller.map()
        assert sorted(places["rows"]) == list(range(60))
        assert all(0 <= v <= 1 for v in (*places["x"], *places["y"]))
        colours = controller.colours()
        assert len(colours["classes"]) == len(colours["sure"]) == 60
        assert sum(colours["known"]) == 6
        assert controller.state()["trouble"] == ""
    finally:
        controller.stop()


def test_numbers_stay_numbers(tmp_path):
    from gdpa import LabelingSession
    from gdpa.labeling.controller import Controller

    session = LabelingSession(np.arange(20.0)[:, None], [1, 2] + [None] * 18)
    controller = Controller(session, RowView(), title="t", target="k")
    controller.answer("label", "me", 5, "2")
    controller.answer("label", "me", 6, "3")
    with pytest.raises(ValueError, match="integers"):
        controller.answer("label", "me", 7, "3.5")
    assert [session.labels.get(r) for r in (5, 6, 7)] == [2, 3, None]
    with pytest.raises(ValueError, match="is a text"):
        controller.answer("label", "me", 8, "four")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"text": "revue"}, "no column 'revue'"),
        ({"image": "file"}, "no column 'file'"),
        ({"id_column": "nam"}, "no column 'nam'"),
        ({"drop": ("x",)}, "no column 'x'"),
        ({"target": "noise"}, "look like numbers"),
    ],
)
def test_columns_that_are_not_there_are_named(table, tmp_path, options, message):
    with pytest.raises(TableError, match=message):
        controller_of(tmp_path, data=table, **options)


def test_a_folder_of_pictures_or_texts_starts_at_once(tmp_path):
    pytest.importorskip("PIL")
    for folder in ("photos/red", "texts/yes"):
        (tmp_path / folder).mkdir(parents=True)
    for i in range(8):
        pixels = np.full((9, 9, 3), 20 * i, dtype=np.uint8)
        where = tmp_path / "photos" / ("red" if i < 2 else "") / f"{i}.png"
        where.write_bytes(png(pixels))
        where = tmp_path / "texts" / ("yes" if i < 2 else "") / f"{i}.txt"
        where.write_text(f"a text about {i} things", encoding="utf-8")
    controller, _, notes = controller_of(tmp_path, data=str(tmp_path / "photos"), target="label")
    assert controller.item(0)["picture"]
    assert controller.item(0)["name"].endswith(".png")
    assert "--embed" in controller.item(0)["note"]
    assert sorted(controller.session.labels.values()) == ["red", "red"]
    assert any("weak" in note for note in notes)
    controller, exporter, _ = controller_of(
        tmp_path / "photos", data=str(tmp_path / "texts"), target="label"
    )
    assert controller.item(7)["text"].startswith("a text about")
    assert sorted(controller.session.labels.values()) == ["yes", "yes"]
    assert exporter.make("table")[0].decode().startswith("file,text")
