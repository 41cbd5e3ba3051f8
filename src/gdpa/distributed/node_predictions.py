"""Write the predictions of nodes, one Parquet file per part."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from ..arrays import FloatArray
from ..estimators.probabilities import to_shares
from ..solvers.poisson import positive_scores
from .components import NO_LABEL
from .edge_rows import read_node_ids
from .folder import Folder
from .manifest import Output
from .predictions import class_values
from .solve import score_file
from .spread_plan import read_classes


def write_nodes(
    output: Output,
    *,
    part: int,
    solves: list[str],
    filled: str | None,
    threshold: float,
    deviation: float | None,
    keep_labels: bool,
    out: str,
    text: bool,
    node_column: str,
    target_type: str,
    probabilities: bool,
    scores: bool,
) -> dict[str, Any]:
    """Write the predictions of the nodes of a part.

    Parameters
    ----------
    output : Output
        The work folder.
    part : int
        The part.
    solves : list of str
        Names of the solves with the scores, in the order of the classes.
    filled : str or None
        Name of the shares of nodes too far from any label.
    threshold : float
        Sum of scores below which a node is too far.
    deviation : float or None
        Standard deviation of potentials, which are turned into positive scores by the exponential
        function; None if scores are positive.
    keep_labels : bool
        Whether a labelled node is assigned to its given class.
    out : str
        Folder for the file.
    text : bool
        Whether identifiers are text.
    node_column, target_type : str
        Name of the column of nodes, and Arrow type of the labels.
    probabilities, scores : bool
        Whether to write a probability, and a score, for each class.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = output.folder
    classes = read_classes(folder)
    F = np.hstack([folder.read_array(score_file(name, part)) for name in solves])
    reached = folder.read_array(f"tags/{part:05d}.npy") != NO_LABEL
    P = _probabilities(folder, part, F, deviation, filled, threshold)
    best = P.argmax(axis=1)
    labeled, label = folder.load(f"parts/{part:05d}", "labeled", "label")
    given = folder.read_array("plan/plan.codes.npy")[label]
    if keep_labels:
        best[labeled] = given
    is_labeled = np.zeros(best.size, dtype=bool)
    is_labeled[labeled] = True
    unknown = ~reached
    columns: dict[str, Any] = {
        node_column: read_node_ids(folder, part, text),
        "prediction": class_values(classes, target_type).take(pa.array(best, mask=unknown)),
        "probability": pa.array(P[np.arange(best.size), best], mask=unknown),
        "labeled": pa.array(is_labeled),
    }
    for c, name in enumerate(classes):
        if probabilities:
            columns[f"probability_{name}"] = pa.array(P[:, c], mask=unknown)
        if scores:
            columns[f"score_{name}"] = pa.array(F[:, c], mask=unknown)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink, write_page_checksum=True)
    content = memoryview(sink.getvalue())
    name = f"part-{part:05d}.parquet"
    Folder(out).write(name, content)
    counted = best[reached & ~is_labeled]
    return {
        "file": name,
        "crc": zlib.crc32(content),
        "predicted": np.bincount(counted, minlength=len(classes)).tolist(),
        "unreached": int(np.count_nonzero(unknown)),
    }


def _probabilities(
    folder: Folder,
    part: int,
    F: FloatArray,
    deviation: float | None,
    filled: str | None,
    threshold: float,
) -> FloatArray:
    """Return the share of each class in the scores of a node."""
    positive = F if deviation is None else positive_scores(F, deviation)
    equal = np.full(F.shape[1], 1.0 / F.shape[1])
    shares = to_shares(positive, equal)
    if filled is not None:
        far = F.sum(axis=1) < threshold
        shares[far] = to_shares(folder.read_array(score_file(filled, part))[far], equal)
    return shares
