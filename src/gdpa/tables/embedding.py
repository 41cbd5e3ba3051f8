"""Embed texts and pictures with a model: a function, an ONNX network in a folder, or a name.

Embeddings are cached next to the table, keyed by the content of the item and of the model, in files
of up to 128 vectors. An interrupted run continues where it stopped, and nothing is computed twice.
Only models requested by name are downloaded.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..arrays import SingleArray
from ..codec import check_numbers, storable
from ..errors import MissingExtraError, nearest_name, require
from ..npz import read_npz, write_npz
from .pictures import ImageError, PictureEncoding, open_picture, picture_folder, read_picture
from .table import Column, TableError

Progress: TypeAlias = Callable[[int, int], object] | None
# A function from a list of texts or pictures to an array, a folder, or a name.
Embedding: TypeAlias = Callable[[list[Any]], Any] | str | os.PathLike[str]

BLOCK = 128  # items per cache file
BATCH = 32  # items per call of a network


@dataclass(frozen=True)
class Embedder:
    """A model that turns texts or pictures into vectors.

    Parameters
    ----------
    name : str
        Name for messages.
    run : callable
        Function from a list of texts or Pillow images to an array with one row per item.
    kind : {"text", "image"} or None
        Kind of the items; None if unknown.
    source : str
        Folder or name of the model, to load it again; empty for a function.
    digest : str
        Digest of the model; empty if unknown, in which case no files are written.
    memory : dict
        Vectors by content, if there are no cache files.
    """

    name: str
    run: Callable[[list[Any]], Any]
    kind: str | None = None
    source: str = ""
    digest: str = ""
    memory: dict[bytes, SingleArray] = field(default_factory=dict, repr=False, compare=False)


@storable("embedding-encoding")
@dataclass(frozen=True)
class EmbeddingEncoding:
    """Encode texts or pictures by embeddings, centred and scaled to unit total variance.

    Parameters
    ----------
    name, source, digest : str
        The model; see :class:`Embedder`.
    shift : ndarray of float32 of shape (n_features,)
        Mean vector.
    scale : float
        Divisor.
    """

    name: str
    source: str
    digest: str
    shift: SingleArray
    scale: float

    def __post_init__(self) -> None:
        check_numbers("shift", self.shift, (None,))
        if not 0 < self.scale < np.inf:
            raise ValueError(f"scale={self.scale} must be positive")

    @classmethod
    def fit(cls, embedder: Embedder, vectors: SingleArray) -> EmbeddingEncoding:
        """Fit to a sample of vectors."""
        shift = vectors.mean(axis=0, dtype=np.float64)
        scale = float(np.sqrt(((vectors - shift) ** 2).sum(axis=1).mean())) or 1.0
        about = (embedder.name, embedder.source, embedder.digest)
        return cls(*about, shift.astype(np.float32), scale)

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Suffixes of the feature names."""
        return tuple(f" embedding {k + 1}" for k in range(self.shift.size))

    def place(self, vectors: SingleArray) -> SingleArray:
        """Return the features of vectors."""
        if vectors.shape[1] != self.shift.size:
            raise ValueError(
                f"embed={self.name} returns {vectors.shape[1]} numbers per item; the encoder was "
                f"fitted with {self.shift.size}"
            )
        return np.asarray((vectors - self.shift) / np.float32(self.scale))


# -- features of a column -----------------------------------------------------------------------


def encode_items(
    encoding: EmbeddingEncoding | PictureEncoding, column: Column, out: NDArray[Any], *about: Any
) -> int:
    """Write features into `out`; return the number of cells with an unreadable picture.

    These cells and missing cells get the mean, zero. `about` are the other arguments of
    :func:`embed_items`.
    """
    Z = np.zeros((len(column.texts or ()) + 1, out.shape[1]), dtype=np.float32)
    bad: list[int] = []
    if column.texts:
        vectors, unreadable = embed_items(column.texts, *about)
        Z[:-1], bad = encoding.place(vectors), list(unreadable)
        Z[bad] = 0.0
    out[:] = Z[column.values]
    return int(np.isin(column.values, bad).sum())


def embed_items(
    items: Sequence[str], embedder: Embedder, kind: str, source: str, progress: Progress = None
) -> tuple[SingleArray, dict[int, str]]:
    """Return the embeddings of distinct texts or picture files.

    Parameters
    ----------
    items : sequence of str
        Texts or file names.
    embedder : Embedder
        The model.
    kind : {"text", "image"}
        Kind of the items.
    source : str
        File or folder of the table; the cache is written next to it.
    progress : callable, optional
        Called with the number of embedded items and their total number.

    Returns
    -------
    vectors : ndarray of float32 of shape (n_items, n_features)
        The vectors; zeros for unreadable pictures.
    unreadable : dict of int to str
        Reasons why pictures are unreadable.

    Raises
    ------
    ValueError
        If the model is for another kind of items, or does not return finite numbers.
    """
    if embedder.kind not in (None, kind):
        raise ValueError(f"embed={embedder.name} is for {embedder.kind}, the column has {kind}")
    store = _Store(embedder, source)
    folder = picture_folder(source)
    out = np.zeros((len(items), 0), dtype=np.float32)
    unreadable = dict[int, str]()
    for start in range(0, len(items), BLOCK):
        keys: dict[int, bytes] = {}
        new: dict[bytes, Any] = {}
        for i, item in enumerate(items[start : start + BLOCK], start):
            content = item.encode("utf-8", "surrogatepass")
            try:
                if kind == "image":
                    content = read_picture(folder, item)[0]
                key = hashlib.blake2b(content, digest_size=16).digest()
                if key not in store.vectors and key not in new:
                    new[key] = item if kind == "text" else open_picture(content, 384)
                keys[i] = key
            except ImageError as error:
                unreadable[i] = str(error)
        if new:
            store.add(list(new), _run(embedder, list(new.values())))
        if keys:
            vectors = np.stack([store.vectors[key] for key in keys.values()])
            out = out if out.shape[1] else np.zeros((len(items), vectors.shape[1]), np.float32)
            out[list(keys)] = vectors
        if progress is not None:
            progress(min(start + BLOCK, len(items)), len(items))
    if len(embedder.memory) > 1000:
        embedder.memory.clear()
    if not out.shape[1]:
        raise TableError(f"{source}: no {kind} can be read ({next(iter(unreadable.values()), '')})")
    return out, unreadable


def _run(embedder: Embedder, batch: list[Any]) -> SingleArray:
    """Call the model and check the result."""
    vectors = np.asarray(embedder.run(batch))
    if vectors.ndim != 2 or len(vectors) != len(batch) or vectors.dtype.kind not in "fiu":
        raise ValueError(
            f"embed={embedder.name} returned an array of shape {vectors.shape} and type "
            f"{vectors.dtype} for {len(batch)} items; numbers of shape ({len(batch)}, width) are "
            "needed"
        )
    vectors = vectors.astype(np.float32)
    if not np.isfinite(vectors).all():
        raise ValueError(f"embed={embedder.name} returned numbers that are not finite")
    return vectors


class _Store:
    """Cache of vectors by content: in files next to the table, or in memory."""

    def __init__(self, embedder: Embedder, source: str) -> None:
        path = Path(source).absolute()
        self.folder: Path | None = None
        self.vectors = embedder.memory
        if not embedder.digest or not path.exists():
            return
        self.vectors = {}
        self.folder = path.with_name(f"{path.name}.embeddings") / embedder.digest[:16]
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            self._forget(error)
            return
        for file in sorted(self.folder.glob("*.npz")):
            try:
                block = read_npz(file)
                keys = block["keys"]
                vectors = block["vectors"]
                check_numbers("vectors", vectors, (len(keys), None))
                self.vectors.update(zip(map(bytes, keys), vectors, strict=True))
            except (OSError, ValueError, KeyError):
                warnings.warn(f"{file} is damaged; its items are embedded again", stacklevel=2)

    def add(self, keys: list[bytes], vectors: SingleArray) -> None:
        """Add vectors to the cache."""
        self.vectors.update(zip(keys, vectors, strict=True))
        if self.folder is None:
            return
        name = hashlib.blake2b(b"".join(keys), digest_size=16).hexdigest()
        try:
            raw = np.frombuffer(b"".join(keys), dtype=np.uint8).reshape(-1, 16)
            write_npz(self.folder / f"{name}.npz", {"keys": raw, "vectors": vectors})
        except OSError as error:
            self._forget(error)

    def _forget(self, error: OSError) -> None:
        """Warn, and continue without files."""
        message = f"embeddings are not cached in {self.folder}: {error.strerror or error}"
        warnings.warn(message, stacklevel=3)
        self.folder = None


# -- models ------------------------------------------------------------------------------------


def find_embedders(
    model: Embedding | Mapping[str, Embedding],
    kinds: Mapping[str, str],
    source: str,
    *,
    offline: bool = False,
    digests: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Embedder]:
    """Return the models by column, given the kind of each column.

    A single model is used for all text columns or all image columns. `digests` are those of the
    models that a fitted encoder was fitted with, by column; another model raises ValueError.
    """
    if isinstance(model, Mapping):
        return {
            name: find_embedder(each, offline=offline, digest=digests.get(name))
            for name, each in model.items()
        }
    needed = set(digests.values())
    found = find_embedder(model, offline=offline, digest=needed.pop() if len(needed) == 1 else None)
    takes = {found.kind} if found.kind else {"text", "image"} & set(kinds.values())
    if len(takes) > 1:
        raise ValueError(
            f"embed={found.name} is a function, but {source} has text and image columns; name the "
            "column: embed={column: function}"
        )
    if not takes & set(kinds.values()):
        wanted = found.kind or "text or image"
        raise TableError(f"{source} has no {wanted} column for embed={found.name}")
    return {name: found for name, kind in kinds.items() if kind in takes}


def find_embedder(
    model: Embedding, *, offline: bool = False, digest: str | None = None
) -> Embedder:
    """Return the model for a function, a folder or a name.

    Parameters
    ----------
    model : callable, path or str
        A function, a folder with an ONNX network, or a name: "minilm" (texts), "mobilenet" or
        "dinov2" (pictures), or one in the user's list of models. For texts, the folder contains
        ``tokenizer.json``. For pictures, the size is in the network or in
        ``preprocessor_config.json``.
    offline : bool, default=False
        Whether a named model must already be in the cache.
    digest : str, optional
        Digest that the model must have. It is compared before any file of the model is parsed.

    Returns
    -------
    Embedder
        The model. The vectors of a function are cached only if it has an attribute
        ``cache_name``, which must change with the model.

    Raises
    ------
    ValueError
        If there is no such folder or name, or the model has unexpected inputs or checksums.
    """
    if callable(model):
        name = getattr(model, "__qualname__", type(model).__name__)
        kept = str(getattr(model, "cache_name", ""))
        found = kept and hashlib.sha256(kept.encode()).hexdigest()
        _check_digest(name, found, digest)
        return Embedder(name, model, digest=found)
    folder = Path(model) if Path(model).is_dir() else _fetch(str(model), offline)
    file = _network_file(folder)
    parts = file.parent.glob(f"{file.name}*")  # weights may be in a second file
    files = (*sorted(parts), *sorted(folder.rglob("*.json")))
    found = hashlib.sha256("".join(map(_sha256, files)).encode()).hexdigest()
    _check_digest(str(model), found, digest)
    network = OnnxNetwork(str(folder.resolve()))
    source = str(folder.resolve()) if Path(model).is_dir() else str(model)
    return Embedder(str(model), network, network.kind, source, found)


def _check_digest(name: str, found: str, needed: str | None) -> None:
    """Raise ValueError if a model is not the one that an encoder was fitted with."""
    if needed is not None and found != needed:
        raise ValueError(f"embed={name} is a different model from the one of the fit")


def _network_file(folder: Path) -> Path:
    """Return the ONNX file in a folder."""
    usual = [*folder.glob("model.onnx"), *folder.glob("onnx/model.onnx")]
    files = usual[:1] or sorted(folder.glob("*.onnx"))
    if len(files) != 1:
        raise ValueError(f"{folder} has {len(files)} ONNX files; one or model.onnx is needed")
    return files[0]


def _sha256(file: Path) -> str:
    """Return the SHA-256 of a file."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _fetch(name: str, offline: bool) -> Path:
    """Return the folder of a named model; missing files are downloaded and verified."""
    home = Path(os.environ.get("GDPA_MODELS", Path.home() / ".cache" / "gdpa" / "models"))
    folder = (home / name).resolve()
    listed = home / "models.json"
    known = dict[str, Any]()
    for source in (Path(__file__).with_name("models.json"), listed):
        try:
            known |= json.loads(source.read_text(encoding="utf-8")) if source.exists() else {}
            files = known[name]["files"] if name in known else {}
            urls = {k: (v["url"], v["sha256"]) for k, v in files.items() if "content" not in v}
        except (OSError, KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(
                f"{source} must be a JSON object such as "
                '{"name": {"licence": ..., "files": {"model.onnx": {"url": ..., "sha256": ...}}}} '
                f"({error!r})"
            ) from error
    if not files:
        raise ValueError(
            f"embed={name!r} is neither a folder nor a model of the package or in {listed}; "
            f"{nearest_name(name, list(known))}"
        )
    for path in files:
        file = (folder / path).resolve()
        if not file.is_relative_to(folder) or folder.parent != home.resolve():
            raise ValueError(f"{listed}: {name!r} and {path!r} must stay in their folder")
        if path not in urls:  # settings that the list itself holds
            content = json.dumps(files[path]["content"]).encode()
            if not file.exists() or file.read_bytes() != content:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
            continue
        url, sha256 = urls[path]
        if file.exists():
            if _sha256(file) != sha256.lower():
                raise ValueError(f"{file} does not match the SHA-256 of {name!r}; delete the file")
        elif offline:
            raise ValueError(f"{file} of the model {name!r} is missing and offline is set")
        else:
            pooch = require("pooch", "text")
            try:
                pooch.retrieve(url, f"sha256:{sha256}", fname=file.name, path=file.parent)
            except Exception as error:  # no network, a wrong checksum, a full disk
                raise ValueError(f"{url} for the model {name!r} cannot be used: {error}") from error
    return folder


@dataclass(frozen=True)
class OnnxNetwork:
    """An ONNX network in a folder; it returns normalised embeddings of texts or pictures.

    Parameters
    ----------
    folder : str
        Folder with one ONNX file (or ``onnx/model.onnx``) and, for texts, ``tokenizer.json``.
    """

    folder: str

    def __post_init__(self) -> None:
        shapes = {each.name: each.shape for each in self.session.get_inputs()}
        tokens = {"input_ids", "attention_mask", "token_type_ids"}
        if self.kind == "text" and not ("input_ids" in shapes and shapes.keys() <= tokens):
            raise ValueError(f"{self.file} has the inputs {shapes}; a text model takes {tokens}")
        if self.kind == "image" and [len(shape) for shape in shapes.values()] != [4]:
            raise ValueError(
                f"{self.file} has the inputs {shapes}; a picture model has one input of rank 4, "
                "a text model needs a file tokenizer.json"
            )

    @property
    def kind(self) -> str:
        """Kind of the items: "text" or "image"."""
        return "text" if (Path(self.folder) / "tokenizer.json").exists() else "image"

    @property
    def file(self) -> Path:
        """The ONNX file."""
        return _network_file(Path(self.folder))

    @property
    def session(self) -> Any:
        """The loaded network."""
        output = self._settings("preprocessor_config.json").get("output", "")
        return _session(self.file, self.file.stat().st_mtime_ns, self.kind, str(output))

    def _settings(self, name: str) -> dict[str, Any]:
        """Return the content of a JSON file; empty if it does not exist."""
        file = Path(self.folder) / name
        try:
            return dict(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else {}
        except (ValueError, TypeError) as error:
            raise ValueError(f"{file} is not a JSON object: {error}") from error

    def __call__(self, items: list[Any]) -> SingleArray:
        """Return a vector for each text or picture."""
        run = self._texts if self.kind == "text" else self._pictures
        step = self.session.get_inputs()[0].shape[0]
        n = len(items)
        if isinstance(step, int):  # the network takes so many at once
            items = items + items[-1:] * (-n % step)
        else:
            step = BATCH
        vectors = np.concatenate([run(items[i : i + step]) for i in range(0, n, step)])[:n]
        length = np.linalg.norm(vectors, axis=-1, keepdims=True)
        return np.asarray(vectors / np.where(length > 0, length, 1.0))

    def _infer(self, inputs: Mapping[str, NDArray[Any]]) -> SingleArray:
        """Run the network."""
        try:
            output = self._settings("preprocessor_config.json").get("output")
            names = [str(output)] if output else None
            return np.asarray(self.session.run(names, dict(inputs))[0], dtype=np.float32)
        except Exception as error:  # onnxruntime has its own kinds of errors
            raise ValueError(f"{self.file} does not accept the input: {error}") from error

    def _texts(self, texts: list[str]) -> SingleArray:
        """Embed texts; token vectors are pooled."""
        most = self._settings("sentence_bert_config.json").get("max_seq_length")
        most = most or self._settings("tokenizer_config.json").get("model_max_length")
        most = most if isinstance(most, int) and most <= 8192 else 256
        file = Path(self.folder) / "tokenizer.json"
        encoded = _tokenizer(file, file.stat().st_mtime_ns, most).encode_batch(texts)
        mask = np.array([e.attention_mask for e in encoded], dtype=np.int64)
        given = {
            "input_ids": np.array([e.ids for e in encoded], dtype=np.int64),
            "attention_mask": mask,
            "token_type_ids": np.array([e.type_ids for e in encoded], dtype=np.int64),
        }
        wanted = {i.name for i in self.session.get_inputs()}
        output = self._infer({name: array for name, array in given.items() if name in wanted})
        if output.ndim != 3:
            return output
        if self._settings("1_Pooling/config.json").get("pooling_mode_cls_token"):
            return np.asarray(output[:, 0])
        weights = mask[:, :, None].astype(np.float32)
        return np.asarray((output * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1))

    def _pictures(self, pictures: list[Any]) -> SingleArray:
        """Embed pictures; feature maps are averaged."""
        (taken,) = self.session.get_inputs()
        settings = self._settings("preprocessor_config.json")
        last = taken.shape[3] == 3  # channels last
        size = settings.get("crop_size") or settings.get("size")
        if isinstance(size, dict):
            size = size.get("height") or size.get("shortest_edge")
        size = size or taken.shape[1 if last else 2]
        if not isinstance(size, int):
            raise ValueError(
                f"{self.folder}: the picture size is neither in the network nor in "
                'preprocessor_config.json, as {"size": 224}'
            )
        mean = np.array(settings.get("image_mean", (0.485, 0.456, 0.406)), dtype=np.float32)
        deviation = np.array(settings.get("image_std", (0.229, 0.224, 0.225)), dtype=np.float32)
        fit = require("PIL.ImageOps", "image").fit
        pixels = np.stack([np.asarray(fit(p, (size, size), method=3)) for p in pictures])
        scaled = (pixels.astype(np.float32) / 255.0 - mean) / deviation
        output = self._infer({taken.name: scaled if last else scaled.transpose(0, 3, 1, 2)})
        if output.ndim == 4:  # a feature map
            return np.asarray(output.mean(axis=(1, 2) if last else (2, 3)))
        return np.asarray(output.mean(axis=1)) if output.ndim == 3 else output


@lru_cache(maxsize=4)
def _session(file: Path, changed: int, extra: str, output: str) -> Any:
    """Load an ONNX network, again if the file has changed; `output` names an inner tensor."""
    runtime = require("onnxruntime", extra)
    options = runtime.SessionOptions()
    options.log_severity_level = 4  # raise errors instead of printing them
    try:
        network: str | bytes = str(file)
        if output:  # is appended: readers merge a second ModelProto.graph.output.name (7, 12, 1)
            added = output.encode()
            for number in (1, 12, 7):
                size = bytes([len(added) & 127 | 128, len(added) >> 7])
                added = bytes([8 * number + 2]) + size + added
            network = file.read_bytes() + added
        return runtime.InferenceSession(network, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has its own kinds of errors
        raise ValueError(f"{file} is not a readable ONNX network: {error}") from error


@lru_cache(maxsize=4)
def _tokenizer(file: Path, changed: int, most: int) -> Any:
    """Load the tokenizer of a text model, with truncation and padding."""
    try:
        tokenizer = require("tokenizers", "text").Tokenizer.from_file(str(file))
    except MissingExtraError:
        raise
    except Exception as error:  # tokenizers raises bare Exception
        raise ValueError(f"{file} cannot be read: {error}") from error
    tokenizer.enable_truncation(most)
    tokenizer.enable_padding(**{**(tokenizer.padding or {}), "length": None})
    return tokenizer
