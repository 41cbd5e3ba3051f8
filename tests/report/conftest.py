"""A page about data that would like to be markup."""

from __future__ import annotations

import numpy as np
import pytest

from gdpa import CommitteeClassifier
from gdpa.report import gather, render
from gdpa.tables import TableEncoder

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "&lt;b&gt; & co",
    "</style><script src=//evil.example/x.js></script>",
    "]]><!--",
    "\u202egnp.exe",
    "javascript:alert(1)",
]


def hostile_page(classes=2):
    rng = np.random.default_rng(0)
    n = 60
    group = np.arange(n) % classes
    X = rng.normal(size=(n, 4)) + 5.0 * group[:, None]
    names = [HOSTILE[g] for g in range(classes)]
    y = np.array([names[g] if i < 6 * classes else None for i, g in enumerate(group)], dtype=object)
    model = CommitteeClassifier(unlabeled=None, n_neighbors=5).fit(X, y)
    words = np.array([HOSTILE[i % len(HOSTILE)] for i in range(n)], dtype=object)
    table = dict(zip((*HOSTILE[:4], "word"), (*X.T, words), strict=True))
    data = gather(
        model,
        X,
        title=HOSTILE[0],
        asked={HOSTILE[1]: HOSTILE[2]},
        command=f"gdpa fit '{HOSTILE[4]}'",
        notes=HOSTILE,
        table=table,
        columns=TableEncoder().fit(table).columns_,
        ids=[HOSTILE[i % len(HOSTILE)] for i in range(n)],
    )
    return render(data), data, model


@pytest.fixture(scope="session")
def hostile():
    return hostile_page()


@pytest.fixture(scope="session")
def hostile_of_five():
    return hostile_page(classes=5)
