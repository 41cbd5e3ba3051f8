"""The programs of the page "Build on it" run and do what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

PAGE = Path(__file__).parents[2] / "docs" / "build-on-it.md"


def test_the_programs_run():
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 4
    names: dict[str, object] = {"print": lambda *_: None}
    exec(blocks[0], names)
    assert np.mean(names["solution"].labels == names["truth"]) > 0.95
    exec(blocks[1], names)
    z = np.abs(names["solution"].dual.z)
    assert np.allclose(z, 5.0, atol=1e-6)
    assert not names["solution"].erased
    exec(blocks[2], names)
    exec(blocks[3], names)
    found = names["found"]
    assert found.theta.sum() <= 2.0 + 1e-9
    matrix = names["A0"] + sum(t * A for t, A in zip(found.theta, names["A"], strict=True))
    assert np.linalg.eigvalsh(matrix)[0] > -1e-9
