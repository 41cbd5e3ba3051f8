"""Graph neural networks on the same tasks, in plain PyTorch (extra ``bench``).

GCN: Kipf and Welling, "Semi-supervised classification with graph convolutional networks" (ICLR
2017). APPNP: Gasteiger, Bojchevski and Guennemann, "Predict then propagate" (ICLR 2019). Settings
are those of the papers (64 hidden units for both, dropout 0.5, Adam with rate 0.01 and weight decay
5e-4 in the first layer); without a validation set there is no early stopping, but a fixed number of
epochs.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy.sparse as sp

from .corpus import Task
from .members import Prediction

HIDDEN = 64
EPOCHS = 200
DROPOUT = 0.5
RATE = 0.01
WEIGHT_DECAY = 5e-4
STEPS = 10  # of APPNP
TELEPORT = 0.1  # of APPNP


def _sparse(torch: Any, A: Any) -> Any:
    """Return a sparse tensor."""
    A = sp.coo_array(A)
    index = np.vstack([A.row, A.col])
    values = A.data.astype(np.float32)
    return torch.sparse_coo_tensor(index, values, A.shape, check_invariants=False).coalesce()


def _inputs(task: Task) -> tuple[Any, Any]:
    """Return features with rows of unit sum and the normalised links."""
    X = sp.csr_array(task.data.X)
    total = np.asarray(abs(X).sum(axis=1)).ravel()
    X = sp.csr_array(sp.diags_array(1.0 / np.where(total > 0, total, 1.0)) @ X)
    A = sp.csr_array(task.data.links + sp.eye_array(X.shape[0]))
    root = sp.diags_array(1.0 / np.sqrt(A.sum(axis=1)))
    return X, sp.csr_array(root @ A @ root)


def train(task: Task, kind: str, seed: int = 0) -> Prediction:
    """Train one network and predict the scored nodes.

    Parameters
    ----------
    task : Task
        A network with a few labels.
    kind : {"GCN", "APPNP"}
        Which architecture.
    seed : int, default=0
        Seed of the initial weights and of dropout.
    """
    import torch
    from torch.nn import functional

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    start = time.process_time()
    X_sparse, links = _inputs(task)
    X, A = _sparse(torch, X_sparse), _sparse(torch, links)
    known = np.flatnonzero(task.codes >= 0)
    classes, y = np.unique(task.codes[known], return_inverse=True)
    rows, target = torch.as_tensor(known), torch.as_tensor(y)
    first = torch.nn.Parameter(torch.empty(X.shape[1], HIDDEN))
    second = torch.nn.Parameter(torch.empty(HIDDEN, classes.size))
    torch.nn.init.xavier_uniform_(first)
    torch.nn.init.xavier_uniform_(second)
    groups = [{"params": [first], "weight_decay": WEIGHT_DECAY}, {"params": [second]}]
    optimizer = torch.optim.Adam(groups, lr=RATE)

    def forward(training: bool) -> Any:
        values = functional.dropout(X.values(), DROPOUT, training)
        inputs = torch.sparse_coo_tensor(X.indices(), values, X.shape, check_invariants=False)
        hidden = torch.sparse.mm(inputs, first)
        if kind == "GCN":
            hidden = torch.sparse.mm(A, hidden)
        hidden = functional.dropout(torch.relu(hidden), DROPOUT, training)
        out = hidden @ second
        if kind == "GCN":
            return torch.sparse.mm(A, out)
        start_values = out
        for _ in range(STEPS):
            out = (1.0 - TELEPORT) * torch.sparse.mm(A, out) + TELEPORT * start_values
        return out

    for _ in range(EPOCHS):
        optimizer.zero_grad()
        functional.cross_entropy(forward(True)[rows], target).backward()
        optimizer.step()
    with torch.no_grad():
        p = torch.softmax(forward(False)[torch.as_tensor(task.scored)], dim=1).numpy()
    return Prediction(None, p, time.process_time() - start)


def graph_networks(task: Task) -> dict[str, Prediction]:
    """Train GCN and APPNP."""
    return {kind: train(task, kind) for kind in ("GCN", "APPNP")}
