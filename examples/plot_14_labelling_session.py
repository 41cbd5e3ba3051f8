"""
A labelling session, from nothing to a labelled table
=====================================================

No label is known at the start. The session says which row to look at next, takes answers one by
one, and knows after each of them a label for every row and an honest estimate of how many are
right. Here the digits' true labels answer in place of a person; ``gdpa label table.csv`` asks one
in the browser.
"""

# %%
# A session over 1,000 images, with a log that a crash or a coffee break does not hurt.
import tempfile
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import gdpa
import gdpa.errors
from gdpa.estimators import GraphOptions

X, truth = load_digits(return_X_y=True)
X, truth = X[:1000], truth[:1000]
log = Path(tempfile.mkdtemp()) / "answers.jsonl"
session = gdpa.LabelingSession(X, log=log)

# %%
# Eighty answers. What the session believes is compared with what is true.
steps, accuracy = [], []
for step in range(1, 81):
    asked = session.next()[0]
    session.label(asked, int(truth[asked]))
    if step % 10 == 0 and len(session.classes) > 1:
        steps.append(step)
        accuracy.append(float((session.predictions() == truth).mean()))

# %%
# The same number of labels, drawn at random, for comparison. With so few of them a fit warns that
# some classes are not found again.
warnings.simplefilter("ignore", gdpa.errors.ConfidenceWarning)
rng = np.random.default_rng(0)
by_chance = []
for step in steps:
    y = np.full(truth.size, -1)
    some = rng.permutation(truth.size)[:step]
    y[some] = truth[some]
    model = gdpa.CommitteeClassifier(options=GraphOptions(rescale="minmax")).fit(X, y)
    by_chance.append(float((model.transduction_ == truth).mean()))

figure, ax = plt.subplots(figsize=(6.6, 4), layout="constrained")
ax.plot(steps, [100 * a for a in accuracy], "o-", color="#0072b2", label="rows that were asked for")
ax.plot(steps, [100 * a for a in by_chance], "s--", color="#d55e00", label="rows at random")
ax.set(xlabel="labels", ylabel="accuracy on all 1,000 images, %", title="Asking well")
ax.grid(alpha=0.3)
ax.legend(frameon=False, loc="lower right")
plt.show()

# %%
# The log has it all: another session over the same file goes on where this one stopped.
session.close()
with gdpa.LabelingSession(X, log=log) as later:
    print(len(later.labels), "labels remembered;", "next:", later.next()[0])
