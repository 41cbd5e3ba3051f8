"""
A first classification: handwritten digits from 30 labels
=========================================================

1797 images of digits, of which we pretend to know 30 labels. The classifier links each image to
its nearest neighbours, lets the labels spread along these links, asks other models for their
opinion, and says how sure it is.
"""

# %%
# The data, with -1 where the label is unknown.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import gdpa
from gdpa.plotting import GraphDisplay

X, truth = load_digits(return_X_y=True)
known = np.concatenate([np.flatnonzero(truth == digit)[:3] for digit in range(10)])
y = np.full(truth.size, -1)
y[known] = truth[known]

# %%
# Fit. Who has a say, and how much, is decided by leaving labels out; nothing needs to be set.
model = gdpa.CommitteeClassifier().fit(X, y)
for name, weight in zip(model.committee_.names, model.committee_.weights, strict=True):
    print(f"{name:14s} {weight:.2f}")

# %%
# ``transduction_`` has a label for every sample of ``fit``; ``predict`` takes new rows.
unlabeled = y == -1
accuracy = (model.transduction_[unlabeled] == truth[unlabeled]).mean()
print(f"accuracy on the {unlabeled.sum()} unlabelled images: {accuracy:.1%}")

# %%
# What the graph looks like, along the two main directions of the pixels. The given labels have a
# rim. Where two digits meet, the classifier is unsure.
figure, ax = plt.subplots(figsize=(6.4, 4.6), layout="constrained")
GraphDisplay.from_estimator(model, X, ax=ax)
figure, ax = plt.subplots(figsize=(6.4, 4.6), layout="constrained")
GraphDisplay.from_estimator(model, X, color="uncertainty", ax=ax)

# %%
# The images that are worth labelling next: those between two digits.
figure, axes = plt.subplots(1, 8, figsize=(9, 1.7), layout="constrained")
for ax, i in zip(axes, model.query(8), strict=True):
    ax.imshow(X[i].reshape(8, 8), cmap="gray_r")
    ax.set(xticks=[], yticks=[], title=f"{model.transduction_[i]}?")
plt.show()
