"""
A labelling session that starts without labels
==============================================

No label is known at the start. The session chooses the next row and records each answer. After
every answer it has a label for every row and an estimate of the accuracy. Here the true
labels of the digits replace a person; ``gdpa label table.csv`` asks a person in the browser.
"""

# %%
# Start a session over 1,000 images, with a log from which it can be resumed.
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
# Give eighty answers, and compare the predictions with the true labels.
steps, accuracy = [], []
for step in range(1, 81):
    asked = session.next()[0]
    session.label(asked, int(truth[asked]))
    if step % 10 == 0 and len(session.classes) > 1:
        steps.append(step)
        accuracy.append(float((session.predictions() == truth).mean()))

# %%
# For comparison, use the same number of random labels. With so few labels ``fit`` warns that some
# classes have no correct held-out prediction.
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
ax.plot(steps, accuracy, "o-", color="#0072b2", label="rows chosen by the session")
ax.plot(steps, by_chance, "s--", color="#d55e00", label="random rows")
ax.set(xlabel="labels", ylabel="accuracy on all 1,000 images", title="Active learning")
ax.grid(alpha=0.3)
ax.legend(frameon=False, loc="lower right")
plt.show()
