"""The plan of a spread: which nodes are labelled, the classes, and the parts of the nodes."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import NDArray
from ..estimators.labels import stratified_folds
from ..system.left_out import LARGE_FOLDS
from ..tables import TableError
from .edges import EdgeColumns, choose_layout, save_names
from .folder import Folder
from .ids import Keys, Names, check_present, integer_keys, is_text, text_keys
from .inputs import Inputs
from .manifest import Output
from .plan import check_classes, text_labels

# Where the names of labelled nodes are stored, besides those of the pieces of edges.
LABEL_NAMES = "plan/labels"


@dataclass(frozen=True)
class NodeLabels:
    """The given labels.

    Parameters
    ----------
    keys : ndarray of int
        Keys of the labelled nodes, ascending.
    codes : ndarray of int
        Class of each.
    classes : tuple of str
        The classes, sorted.
    names : Names or None
        Names of the labelled nodes, if identifiers are text.
    """

    keys: Keys
    codes: NDArray[np.int32]
    classes: tuple[str, ...]
    names: Names | None


def read_labels(
    inputs: Inputs, columns: EdgeColumns, node: str, label: str, unlabeled: str | None
) -> NodeLabels:
    """Read the labels of nodes; rows without a label are ignored."""
    source = inputs.paths[0]
    kind = inputs.column_type(node, "column of nodes")
    inputs.column_type(label, "column of labels")
    if is_text(kind) != columns.text:
        edges = "text" if columns.text else "integers"
        raise TableError(
            f"column {node!r} of {source} is {kind}, but the nodes of the edges are {edges}; store "
            "both in the same way"
        )
    keys = []
    texts = []
    names = []
    for piece in inputs.pieces:
        table = piece.read(list(dict.fromkeys([node, label])))
        check_present(table.column(node), piece, node)
        rows, own = text_labels(table.column(label), unlabeled)
        nodes = table.column(node).take(rows)
        if columns.text:
            found, its_names = text_keys(nodes, piece, node, columns.hash_seed)
            names.append(its_names)
        else:
            found = integer_keys(nodes, piece, node)
        keys.append(found)
        texts += own
    classes = sorted(set(texts))
    check_classes(classes, len(texts), f"{source}, column {label!r}", "node")
    place = {text: code for code, text in enumerate(classes)}
    key = np.concatenate(keys)
    code = np.array([place[text] for text in texts], dtype=np.int32)
    known = _joined(names).unique() if columns.text else None
    order = np.lexsort((code, key))
    key = key[order]
    code = code[order]
    same = key[1:] == key[:-1]
    conflict = np.flatnonzero(same & (code[1:] != code[:-1]))
    if conflict.size:
        at = int(conflict[0])
        who: object = int(key[at])
        if known is not None:
            who = known.arrow()[int(np.searchsorted(known.keys, key[at]))].as_py()
        raise TableError(
            f"{source}: node {who!r} is labelled {classes[code[at]]!r} and "
            f"{classes[code[at + 1]]!r}; a node can have one label"
        )
    kept = np.append(True, ~same)
    return NodeLabels(key[kept], code[kept], tuple(classes), known)


def _joined(names: list[Names]) -> Names:
    """Return the names of all pieces together."""
    sizes = np.concatenate([np.diff(own.ends) for own in names])
    content = [own.content[own.ends[0] : own.ends[-1]] for own in names]
    return Names(
        np.concatenate([own.keys for own in names]),
        np.concatenate(content),
        np.concatenate([[0], np.cumsum(sizes)]),
    )


def make_spread_plan(
    output: Output,
    *,
    labels: NodeLabels,
    n_pieces: int,
    stride: int,
    n_parts: int,
    hub_entries: int,
) -> dict[str, Any]:
    """Choose the parts of the nodes, and write them and the labels."""
    folder = output.folder
    samples = [folder.read_array(f"sample/{i:06d}.ends.npy") for i in range(n_pieces)]
    layout = choose_layout(np.concatenate(samples), stride, n_parts, hub_entries)
    output.save(
        "plan/plan",
        bounds=layout.bounds,
        hubs=layout.hubs,
        label_keys=labels.keys,
        codes=labels.codes,
        folds=stratified_folds(labels.codes, LARGE_FOLDS).astype(np.int32),
    )
    output.json("plan/plan.json", {"classes": labels.classes, "key": uuid.uuid4().hex})
    name_ends: list[int] = []
    if labels.names is not None:
        name_ends = save_names(output, LABEL_NAMES, labels.names, layout)
    counts = np.bincount(labels.codes, minlength=len(labels.classes)).tolist()
    return {
        "n_parts": layout.n_parts,
        "n_hubs": int(layout.hubs.size),
        "classes": dict(zip(labels.classes, counts, strict=True)),
        "name_ends": name_ends,
    }


def read_classes(folder: Folder) -> tuple[str, ...]:
    """Return the classes of a plan."""
    return tuple(folder.read_json("plan/plan.json")["classes"])
