"""
Free text: which part of Python does this sentence come from?
=============================================================

We classify docstrings of five packages of the standard library from five labels each. A column of
text is encoded by the principal directions of its words and character n-grams. Texts that share
words are neighbours in the graph, and the labels spread between them. A pretrained sentence encoder
can replace this encoding, ``columns=TableEncoder(embed=...)``; see the page "Text".
"""

# %%
# Collect the docstrings.
import ast
import sysconfig
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import gdpa
from gdpa.plotting import GraphDisplay

home = Path(sysconfig.get_paths()["stdlib"])
rows = []
for package in ("asyncio", "email", "unittest", "xml", "multiprocessing"):
    found = set()
    for file in sorted((home / package).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8", errors="replace"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add(" ".join((ast.get_docstring(node) or "").split())[:200])
    rows += [(text, package) for text in sorted(found) if len(text) > 40][:200]
table = pd.DataFrame(rows, columns=["text", "package"])
print(table.groupby("package").size())

# %%
# Choose five labels per package.
rng = np.random.default_rng(0)
y = pd.Series([None] * len(table), dtype=object)
for package, members in table.groupby("package").groups.items():
    y[rng.choice(members, 5, replace=False)] = package

model = gdpa.CommitteeClassifier(unlabeled=None).fit(table[["text"]], y)
hidden = y.isna().to_numpy()
right = model.transduction_[hidden] == table["package"].to_numpy()[hidden]
print(f"{right.mean():.1%} of {hidden.sum()} texts correct, from {(~hidden).sum()} labels")

# %%
# Draw the graph: each dot is a docstring, placed near similar ones.
figure, ax = plt.subplots(figsize=(7, 5), layout="constrained")
GraphDisplay.from_estimator(model, table[["text"]], ax=ax)
plt.show()

# %%
# Print the docstrings to label next, which could come from two packages.
for i in model.query(4):
    print(f"{model.transduction_[i]}? {table['text'][i][:90]}")
