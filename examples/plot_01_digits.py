"""
A first classification: handwritten digits from 30 labels
=========================================================

We classify 1797 images of digits from 30 labels. The classifier connects each image with its
nearest neighbours, spreads the labels along these links, combines the result with other models, and
returns probabilities.
"""

# %%
# Load the data; -1 marks unknown labels.
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
# Fit the classifier. The model weights are chosen by cross-validation; nothing needs to be set.
model = gdpa.CommitteeClassifier().fit(X, y)
for name, weight in zip(model.committee_.names, model.committee_.weights, strict=True):
    print(f"{name:14s} {weight:.2f}")

# %%
# ``transduction_`` has a label for every row of ``fit``; ``predict`` accepts new rows.
unlabeled = y == -1
accuracy = (model.transduction_[unlabeled] == truth[unlabeled]).mean()
print(f"accuracy on the {unlabeled.sum()} unlabelled images: {accuracy:.1%}")

# %%
# Draw the graph along the first two principal components of the pixels. Given labels have an
# outline. The classifier is uncertain where two digits meet.
figure, ax = plt.subplots(figsize=(6.4, 4.6), layout="constrained")
GraphDisplay.from_estimator(model, X, ax=ax)
figure, ax = plt.subplots(figsize=(6.4, 4.6), layout="constrained")
GraphDisplay.from_estimator(model, X, color="uncertainty", ax=ax)

# %%
# Show the images to label next, which lie between two digits.
figure, axes = plt.subplots(1, 8, figsize=(9, 1.7), layout="constrained")
for ax, i in zip(axes, model.query(8), strict=True):
    ax.imshow(X[i].reshape(8, 8), cmap="gray_r")
    ax.set(xticks=[], yticks=[], title=f"{model.transduction_[i]}?")
plt.show()
