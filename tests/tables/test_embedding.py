"""Models of texts and pictures: functions, tiny ONNX networks made here, the cache, bad input."""

from __future__ import annotations

import dataclasses
import hashlib
import http.server
import io
import json
import pickle
import re
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import gdpa
from gdpa.tables import TableEncoder, TableError, embedding, read_table
from gdpa.tables.embedding import embed_items, find_embedder

image = pytest.importorskip("PIL.Image")
WORDS = ["[PAD]", "[UNK]", "good", "fine", "bad", "awful", "film"]
TEXTS = [f"{w} film {i}" for i, w in enumerate(["good", "fine", "bad", "awful"] * 10)]
LABELS = ["yes", "yes", "no", "no"] * 10


def graph(folder, nodes, inputs, outputs, constants=()):
    """Write an ONNX network."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    h, kinds = onnx.helper, onnx.TensorProto
    made = h.make_graph(
        [h.make_node(op, i, o, **more) for op, i, o, more in nodes],
        "tiny",
        [h.make_tensor_value_info(n, getattr(kinds, t), s) for n, t, s in inputs],
        [h.make_tensor_value_info(n, kinds.FLOAT, s) for n, s in outputs],
        [onnx.numpy_helper.from_array(a, n) for n, a in constants],
    )
    model = h.make_model(made, opset_imports=[h.make_opsetid("", 17)], ir_version=8)
    folder.mkdir(exist_ok=True)
    onnx.save(model, folder / "model.onnx")
    return folder


@pytest.fixture
def text_model(tmp_path):
    """A network whose tokens have a vector each: good and fine point one way, bad another."""
    tokenizers = pytest.importorskip("tokenizers")
    vectors = np.zeros((len(WORDS), 3), dtype=np.float32)
    vectors[2:4, 0] = vectors[4:6, 1] = vectors[6, 2] = 1.0
    folder = graph(
        tmp_path / "text-model",
        [("Gather", ["table", "input_ids"], ["hidden"], {})],
        [("input_ids", "INT64", ["n", "t"]), ("attention_mask", "INT64", ["n", "t"])],
        [("hidden", ["n", "t", 3])],
        [("table", vectors)],
    )
    ids = {word: i for i, word in enumerate(WORDS)}
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(ids, unk_token="[UNK]"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    words.save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture
def picture_model(tmp_path):
    """A network that returns the mean of each colour."""
    return graph(
        tmp_path / "picture-model",
        [("GlobalAveragePool", ["pixels"], ["means"], {})],
        [("pixels", "FLOAT", ["n", 3, 8, 8])],
        [("means", ["n", 3, 1, 1])],
    )


@pytest.fixture
def photos(tmp_path):
    """A folder with red and blue pictures: two of each labelled, eight loose."""
    folder = tmp_path / "photos"
    for i in range(12):
        colour = [(200, 10, 10), (10, 10, 200)][i % 2]
        noise = np.random.default_rng(i).integers(0, 50, (9, 11, 3))
        place = folder / ["red", "blue"][i % 2] if i < 4 else folder
        place.mkdir(parents=True, exist_ok=True)
        image.fromarray((noise + colour).astype(np.uint8)).save(place / f"{i}.png")
    return folder


class Counting:
    """A model of texts that counts what it is asked for."""

    cache_name = "counting 1"

    def __init__(self, stop_after=None):
        self.asked, self.stop_after = [], stop_after

    def __call__(self, texts):
        if self.stop_after is not None and len(self.asked) >= self.stop_after:
            raise KeyboardInterrupt
        self.asked += texts
        return [[len(text), text.count("good") + text.count("fine")] for text in texts]


# -- what a model gives ------------------------------------------------------------------------


def test_a_text_network_is_pooled_over_tokens_without_padding(text_model):
    found = find_embedder(text_model)
    vectors, unreadable = embed_items(
        ["good film", "bad", "fine good film film"], found, "text", "X"
    )
    half = np.sqrt(0.5)
    np.testing.assert_allclose(vectors, [[half, 0, half], [0, 1, 0], [half, 0, half]], atol=1e-6)
    assert (found.kind, unreadable) == ("text", {})


def test_a_picture_network_gets_its_size_and_colours(picture_model, photos):
    vectors, _ = embed_items(["4.png", "5.png"], find_embedder(picture_model), "image", str(photos))
    assert vectors[0].argmax() == 0
    assert vectors[1].argmax() == 2
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, rtol=1e-5)


def test_an_inner_tensor_of_a_classifier_is_returned_on_request(tmp_path, photos):
    nodes = [
        ("GlobalAveragePool", ["pixels"], ["means"], {}),
        ("Flatten", ["means"], ["flat"], {}),
        ("MatMul", ["flat", "weights"], ["classes"], {}),
    ]
    weights = np.array([[1, 1, 1, 1, 0]] * 3, dtype=np.float32)
    inputs, outputs = [("pixels", "FLOAT", ["n", 3, 8, 8])], [("classes", ["n", 5])]
    folder = graph(tmp_path / "classes", nodes, inputs, outputs, [("weights", weights)])
    classes, _ = embed_items(["4.png"], find_embedder(folder), "image", str(photos))
    assert classes.shape == (1, 5)
    settings = folder / "preprocessor_config.json"
    settings.write_text('{"output": "means"}')
    means, _ = embed_items(["4.png", "5.png"], find_embedder(folder), "image", str(photos))
    assert means.shape == (2, 3)
    assert means.argmax(axis=1).tolist() == [0, 2]
    settings.write_text('{"output": "%s"}' % ("no such tensor" * 20))
    with pytest.raises(ValueError, match=r"not a readable ONNX network: .*no such tensor"):
        find_embedder(folder)


def test_a_network_of_a_fixed_batch_takes_any_number(tmp_path, photos, picture_model):
    fixed = graph(
        tmp_path / "fixed",
        [("GlobalAveragePool", ["pixels"], ["means"], {})],
        [("pixels", "FLOAT", [3, 3, 8, 8])],
        [("means", [3, 3, 1, 1])],
    )
    names = [f"{i}.png" for i in range(4, 12)]
    given = [
        embed_items(names, find_embedder(f), "image", str(photos))[0]
        for f in (fixed, picture_model)
    ]
    np.testing.assert_allclose(*given, rtol=1e-6)


def test_long_and_short_texts_share_a_batch_whatever_the_tokenizer_pads_to(text_model):
    tokenizers = pytest.importorskip("tokenizers")
    words = tokenizers.Tokenizer.from_file(str(text_model / "tokenizer.json"))
    words.enable_padding(length=4, pad_id=0, pad_token="[PAD]")  # as many published ones do
    words.enable_truncation(4)
    words.save(str(text_model / "tokenizer.json"))
    texts = ["good", "good " * 6 + "bad " * 6]
    vectors, _ = embed_items(texts, find_embedder(text_model), "text", "X")
    np.testing.assert_allclose(vectors, [[1, 0, 0], [np.sqrt(0.5)] * 2 + [0]], atol=1e-6)
    (text_model / "sentence_bert_config.json").write_text('{"max_seq_length": 6}')
    vectors, _ = embed_items(texts, find_embedder(text_model), "text", "X")
    np.testing.assert_allclose(vectors, [[1, 0, 0], [1, 0, 0]], atol=1e-6)


def test_a_classifier_learns_from_a_model_and_remembers_it(text_model, tmp_path):
    y = [label if i < 8 else None for i, label in enumerate(LABELS)]
    encoder = TableEncoder(embed=str(text_model))
    model = gdpa.CommitteeClassifier(columns=encoder, unlabeled=None).fit({"review": TEXTS}, y)
    assert model.transduction_.tolist() == LABELS
    assert "features of the model" in model.columns_[0].done()
    new = {"review": ["fine film", "awful film"]}
    again = gdpa.CommitteeClassifier.load(model.save(tmp_path / "m.npz"))
    again.encoder_.set_params(embed=str(text_model))
    assert again.predict(new).tolist() == model.predict(new).tolist() == ["yes", "no"]
    copied = pickle.loads(pickle.dumps(model))
    assert copied.predict(new).tolist() == ["yes", "no"]
    (text_model / "tokenizer_config.json").write_text("{}")  # the folder's content changes
    changed = gdpa.CommitteeClassifier.load(tmp_path / "m.npz")
    changed.encoder_.set_params(embed=str(text_model))
    with pytest.raises(ValueError, match="a different model"):
        changed.predict(new)


@pytest.mark.parametrize("source", ["minilm", "the folder"])
def test_a_model_file_never_reaches_the_network_or_another_file(
    source, text_model, tmp_path, monkeypatch
):
    y = [label if i < 8 else None for i, label in enumerate(LABELS)]
    encoder = TableEncoder(embed=str(text_model))
    model = gdpa.CommitteeClassifier(columns=encoder, unlabeled=None).fit({"review": TEXTS}, y)
    plan = model.encoder_.columns_[0]
    crafted = dataclasses.replace(
        plan.encoding, source=source if source == "minilm" else str(text_model)
    )
    model.encoder_.columns_ = type(model.encoder_.columns_)(
        [dataclasses.replace(plan, encoding=crafted)]
    )
    loaded = gdpa.CommitteeClassifier.load(model.save(tmp_path / "m.npz"))

    def refuse(*args, **_):
        raise AssertionError(f"a model file must not cause this: {args}")

    monkeypatch.setattr("gdpa.tables.embedding._fetch", refuse)
    monkeypatch.setattr("gdpa.tables.embedding._session", refuse)
    monkeypatch.setattr("gdpa.tables.embedding._tokenizer", refuse)
    with pytest.raises(ValueError, match="give this model again"):
        loaded.predict({"review": ["fine film"]})


def test_the_digest_of_a_model_is_compared_before_it_is_parsed(text_model, tmp_path):
    y = [label if i < 8 else None for i, label in enumerate(LABELS)]
    encoder = TableEncoder(embed=str(text_model))
    model = gdpa.CommitteeClassifier(columns=encoder, unlabeled=None).fit({"review": TEXTS}, y)
    loaded = gdpa.CommitteeClassifier.load(model.save(tmp_path / "m.npz"))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "model.onnx").write_bytes(b"not a network: parsing it raises an error")
    loaded.encoder_.set_params(embed=str(tmp_path / "other"))
    with pytest.raises(ValueError, match="is a different model from the one of the fit"):
        loaded.predict({"review": ["fine film"]})


def test_a_function_is_shared_and_asked_for_after_loading(tmp_path):
    embed = Counting()
    del type(embed).cache_name
    try:
        encoder = TableEncoder(embed={"review": embed})
        y = [label if i < 8 else None for i, label in enumerate(LABELS)]
        model = gdpa.CommitteeClassifier(columns=encoder, unlabeled=None).fit({"review": TEXTS}, y)
        assert sorted(embed.asked) == sorted(TEXTS)  # the same object, each text once
        again = gdpa.CommitteeClassifier.load(model.save(tmp_path / "m.npz"))
        with pytest.raises(ValueError, match="give this model again"):
            again.predict({"review": ["good"]})
        again.encoder_.embed = embed
        assert again.predict({"review": ["good film 8"]}).tolist() == ["yes"]
    finally:
        Counting.cache_name = "counting 1"


# -- the cache ---------------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.setattr(embedding, "BLOCK", 7)
    (tmp_path / "t.csv").write_text("review\n" + "\n".join(TEXTS) + "\n\n")
    return read_table(tmp_path / "t.csv")


def test_a_stopped_run_goes_on_and_computes_nothing_twice(table):
    stopped = Counting(stop_after=20)
    with pytest.raises(KeyboardInterrupt):
        TableEncoder(embed=stopped).fit(table)
    seen, second = [], Counting()
    encoder = TableEncoder(embed=second, progress=lambda *done: seen.append(done)).fit(table)
    Z = encoder.transform(table)
    assert not set(stopped.asked) & set(second.asked)
    assert set(stopped.asked) | set(second.asked) == set(TEXTS)
    assert seen[-1] == (40, 40)
    third = Counting()
    again = TableEncoder(embed=third).fit(table).transform(table)
    assert third.asked == []
    assert again.tobytes() == Z.tobytes()
    assert np.isfinite(Z).all()


@pytest.mark.slow
def test_a_killed_process_leaves_what_it_had(table, tmp_path):
    program = """
import os, signal, sys
from gdpa.tables import TableEncoder, embedding, read_table
embedding.BLOCK, asked = 7, []
def embed(texts):
    if len(asked) >= 21:
        os.kill(os.getpid(), signal.SIGKILL)
    asked.extend(texts)
    return [[len(text), text.count("good") + text.count("fine")] for text in texts]
embed.cache_name = "counting 1"
TableEncoder(embed=embed).fit(read_table(sys.argv[1]))
"""
    ended = subprocess.run([sys.executable, "-c", program, str(tmp_path / "t.csv")], check=False)
    assert ended.returncode == -signal.SIGKILL
    again = Counting()
    Z = TableEncoder(embed=again).fit_transform(table)
    assert len(again.asked) == len(TEXTS) - 21
    assert Z.shape == (40, 2)


def test_a_damaged_or_forbidden_cache_costs_time_only(table, tmp_path, monkeypatch):
    TableEncoder(embed=Counting()).fit(table)
    (folder,) = (tmp_path / "t.csv.embeddings").iterdir()
    files = sorted(folder.iterdir())
    assert len(files) == 6
    files[0].write_bytes(files[0].read_bytes()[:50])
    counting = Counting()
    with pytest.warns(UserWarning, match="damaged"):
        TableEncoder(embed=counting).fit(table)
    assert len(counting.asked) in (5, 7)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(embedding, "write_npz", full)
    (tmp_path / "u.csv").write_text("review\n" + "\n".join(TEXTS))
    with pytest.warns(UserWarning, match="not cached .* No space left"):
        Z = TableEncoder(embed=Counting()).fit_transform(read_table(tmp_path / "u.csv"))
    assert Z.shape == (40, 2)


# -- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda texts: [[1.0]], "for 40 items"),
        (lambda texts: np.zeros(len(texts)), r"shape \(40, width\) are needed"),
        (lambda texts: [["a"]] * len(texts), "type"),
        (lambda texts: np.full((len(texts), 2), np.nan), "not finite"),
    ],
)
def test_a_function_must_return_a_row_of_numbers_for_each(returned, message):
    with pytest.raises(ValueError, match=message):
        TableEncoder(embed=returned).fit({"review": TEXTS})


def test_folders_that_hold_no_model_are_named(tmp_path, text_model, picture_model, photos):
    with pytest.raises(ValueError, match="has 0 ONNX files"):
        find_embedder(tmp_path)
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "model.onnx").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="not a readable ONNX network"):
        find_embedder(broken)
    (picture_model / "tokenizer.json").write_text("{}")
    with pytest.raises(ValueError, match=r"a text model takes .*input_ids"):
        find_embedder(picture_model)
    (text_model / "tokenizer.json").unlink()
    with pytest.raises(ValueError, match="one input of rank 4"):
        find_embedder(text_model)
    flat = graph(
        tmp_path / "flat",
        [("ReduceMean", ["pixels"], ["y"], {"axes": [1, 2, 3], "keepdims": 0})],
        [("pixels", "FLOAT", ["n", 3, "h", "w"])],
        [("y", ["n"])],
    )
    (flat / "preprocessor_config.json").write_text('{"size": {"height": 5, "width": 5}}')
    with pytest.raises(ValueError, match=r"an array of shape \(1,\)"):
        embed_items(["4.png"], find_embedder(flat), "image", str(photos))


def test_a_model_must_suit_its_column(text_model, picture_model, photos):
    with pytest.raises(TableError, match="has no image column for embed="):
        TableEncoder(embed=picture_model).fit({"review": TEXTS})
    with pytest.raises(TableError, match="has no text column"):
        TableEncoder(embed=text_model).fit(read_table(photos).without(["label"]))
    with pytest.raises(ValueError, match="is for image, the column has text"):
        TableEncoder(embed={"review": picture_model}).fit({"review": TEXTS})
    with pytest.raises(TableError, match="no column 'reviews'; did you mean 'review'"):
        TableEncoder(embed={"reviews": text_model}).fit({"review": TEXTS})


def test_empty_texts_and_unreadable_pictures_are_in_the_middle(text_model, picture_model, photos):
    rows = {"review": [*TEXTS, "", None, "  "]}
    Z = TableEncoder(embed=text_model).fit_transform(rows)
    assert (Z[-3:] == 0).all()
    assert np.abs(Z[:-3].mean(axis=0)).max() < 1e-6
    (photos / "4.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 50)
    table = read_table(photos).without(["label"])
    bad = table.column("file").cells().index("4.png")
    for encoder in (TableEncoder(embed=picture_model), TableEncoder()):
        with pytest.warns(UserWarning, match="1 cells are unreadable pictures"):
            Z = encoder.fit(table).transform(table)
        assert (Z[bad] == 0).all()
        assert np.isfinite(Z).all()
    for path in photos.rglob("*.png"):
        path.write_bytes(b"no picture")
    for encoder in (TableEncoder(embed=picture_model), TableEncoder()):
        with pytest.raises(TableError, match=r"not a PNG"):
            encoder.fit(table)


# -- names -------------------------------------------------------------------------------------


@pytest.fixture
def named(tmp_path, monkeypatch, text_model):
    """A list of models with one entry, whose files are beside it."""
    pytest.importorskip("pooch")
    home = tmp_path / "models"
    home.mkdir()
    monkeypatch.setenv("GDPA_MODELS", str(home))
    files = {
        name: {
            "url": f"http://127.0.0.1:9/{name}",  # nobody listens
            "sha256": hashlib.sha256((text_model / name).read_bytes()).hexdigest(),
        }
        for name in ("model.onnx", "tokenizer.json")
    }
    (home / "models.json").write_text(json.dumps({"tiny": {"licence": "MIT", "files": files}}))
    return home


def test_a_named_model_is_taken_from_the_cache(named, text_model):
    with pytest.raises(ValueError, match=r"missing and offline is set"):
        find_embedder("tiny", offline=True)
    with pytest.raises(ValueError, match=r"127\.0\.0\.1:9/model\.onnx .* cannot be used"):
        find_embedder("tiny")
    text_model.rename(named / "tiny")
    found = find_embedder("tiny", offline=True)
    assert (found.source, found.kind) == ("tiny", "text")
    (named / "tiny" / "tokenizer.json").write_text("{}")
    with pytest.raises(ValueError, match="does not match the SHA-256"):
        find_embedder("tiny", offline=True)


def test_a_named_model_is_fetched_once_and_checked(named, text_model):
    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *given):
            super().__init__(*given, directory=str(text_model))

        def log_message(self, *_):
            asked.append(self.path)

    asked: list[str] = []
    listed = named / "models.json"
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        text = listed.read_text().replace("127.0.0.1:9/", f"127.0.0.1:{server.server_port}/")
        entry = json.loads(text)
        sha256 = entry["tiny"]["files"]["tokenizer.json"]["sha256"]
        listed.write_text(text.replace(sha256, "0" * 64))
        with pytest.raises(ValueError, match=r"tokenizer\.json .* cannot be used: SHA256 hash"):
            find_embedder("tiny")
        assert not (named / "tiny" / "tokenizer.json").exists()
        listed.write_text(text)
        found = find_embedder("tiny")
        assert asked == ["/model.onnx", "/tokenizer.json", "/tokenizer.json"]
        assert find_embedder("tiny") == found
        server.shutdown()
    assert len(asked) == 3
    assert find_embedder("tiny", offline=True).digest == found.digest


def test_names_that_are_not_listed_are_refused(named):
    with pytest.raises(ValueError, match=r"or in .*models\.json; did you mean 'tiny'"):
        find_embedder("tinny")
    listed = named / "models.json"
    for content in ("[]", "{", '{"tinny": {"files": {"a": 1}}}', '{"tinny": 3}'):
        listed.write_text(content)
        with pytest.raises(ValueError, match=r"models\.json"):
            find_embedder("tinny")
    outside = {"files": {"../../x": {"url": "http://127.0.0.1:9/x", "sha256": "0" * 64}}}
    listed.write_text(json.dumps({"tinny": outside, "..": outside}))
    for name in ("tinny", ".."):
        with pytest.raises(ValueError, match=r"must stay in their folder|ONNX"):
            find_embedder(name)


def test_the_models_of_the_package_are_pinned_and_permissive(named):
    listed = json.loads(Path(embedding.__file__).with_name("models.json").read_text())
    assert sorted(listed) == ["dinov2", "minilm", "mobilenet"]
    for name, about in listed.items():
        assert about["licence"] in ("Apache-2.0", "MIT", "BSD-3-Clause")
        assert "model.onnx" in about["files"]
        for path, file in about["files"].items():
            if "content" not in file:
                assert re.fullmatch(
                    r"https://huggingface\.co/.*/resolve/[0-9a-f]{40}/.*", file["url"]
                )
                assert file["url"].endswith((path, ".onnx"))
                assert re.fullmatch("[0-9a-f]{64}", file["sha256"])
        with pytest.raises(ValueError, match=r"model\.onnx .* is missing and offline is set"):
            find_embedder(name, offline=True)
        (named / name).mkdir(exist_ok=True)
        (named / name / "model.onnx").write_bytes(b"another model")
        with pytest.raises(ValueError, match=f"does not match the SHA-256 of '{name}'"):
            find_embedder(name)
    with pytest.raises(ValueError, match="did you mean 'mobilenet'"):
        find_embedder("mobilnet")


def test_settings_of_a_list_are_written_beside_the_network(named, picture_model, photos):
    """A list of the user goes before that of the package, and may hold settings of its own."""
    network = (picture_model / "model.onnx").read_bytes()
    (named / "mobilenet").mkdir()
    (named / "mobilenet" / "model.onnx").write_bytes(network)
    model = {"url": "http://127.0.0.1:9/x", "sha256": hashlib.sha256(network).hexdigest()}
    for size in (3, 4):
        files = {"model.onnx": model, "preprocessor_config.json": {"content": {"size": size}}}
        (named / "models.json").write_text(json.dumps({"mobilenet": {"files": files}}))
        found = find_embedder("mobilenet", offline=True)
        written = (named / "mobilenet" / "preprocessor_config.json").read_text()
        assert json.loads(written) == {"size": size}
    with pytest.raises(ValueError, match="does not accept the input"):  # it takes 8 x 8
        embed_items(["4.png"], found, "image", str(photos))


# -- pictures without a model, folders ---------------------------------------------------------


def test_pictures_have_features_of_their_own(photos, tmp_path):
    table = read_table(photos)
    assert table.names == ("file", "label")
    assert sorted(set(table.column("label").cells())) == ["", "blue", "red"]
    y = [label or None for label in table.column("label").cells()]
    model = gdpa.CommitteeClassifier(unlabeled=None).fit(table.without(["label"]), y)
    truth = [["red", "blue"][int(f.split("/")[-1][:-4]) % 2] for f in table.column("file").cells()]
    assert model.transduction_.tolist() == truth
    assert any("features of photographs are weak" in note for note in model.encoder_.notes_)
    again = gdpa.CommitteeClassifier.load(model.save(tmp_path / "m.npz"))
    assert (again.predict(table) == model.predict(table)).all()


def test_a_picture_is_read_whatever_its_mode(tmp_path):
    for mode in ("1", "L", "P", "RGBA", "CMYK", "I;16"):
        name = f"{mode}.jpg" if mode == "CMYK" else f"{mode}.png"
        file = tmp_path / name.replace(";", "")
        image.new(mode, (40, 30)).save(file)
    names = sorted(p.name for p in tmp_path.iterdir())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Z = TableEncoder(columns={"file": "image"}).fit_transform(
            read_table(tmp_path).without(["label"])
        )
    assert Z.shape[0] == len(names)
    assert np.isfinite(Z).all()


def test_a_folder_of_text_files_is_a_table(tmp_path):
    for name, text in {
        "yes/a.txt": "good",
        "no/b.txt": "bad",
        "c.txt": "",
        "d.md": "\ufefffine",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / ".hidden.txt").write_text("x")
    (tmp_path / "notes.csv").write_text("a\n1\n")
    table = read_table(tmp_path, target="kind")
    assert [c.cells() for c in table.columns] == [
        ["c.txt", "d.md", "no/b.txt", "yes/a.txt"],
        ["", "fine", "bad", "good"],
        ["", "", "no", "yes"],
    ]
    assert table.names == ("file", "text", "kind")
    assert table.notes == (
        f"ignored 1 other files in {tmp_path}",
        "1 of 4 text files are empty",
    )
    image.new("L", (3, 3)).save(tmp_path / "e.png")
    with pytest.raises(TableError, match="1 pictures and 4 text files; accepted are"):
        read_table(tmp_path)


def test_png_of_any_kind_of_bytes_is_refused_or_read():
    from gdpa.tables.pictures import ImageError, open_picture

    whole = io.BytesIO()
    image.new("RGB", (20, 20)).save(whole, "PNG")
    large = io.BytesIO()
    image.new("RGB", (1000, 700)).save(large, "PNG")
    assert open_picture(large.getvalue(), 100).size == (143, 100)
    for cut in (0, 8, 30, len(whole.getvalue()) - 20):
        with pytest.raises(ImageError):
            open_picture(whole.getvalue()[:cut], 16)
