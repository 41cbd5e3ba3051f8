"""
The ensemble on a table and on images
=====================================

No classifier is best on all data. In images, neighbours usually have the same class. In a table, a
few columns matter and the others are noise, and a forest fitted on the labels finds out which. By
default the ensemble combines nine different models: three graphs (of nearest neighbours, of nearest
neighbours in uncorrelated columns, of samples that share leaves of a forest), the forest, linear
models, Gaussian classes and kernel classifiers. Each is weighted by its loss on held-out labels.
"""

# %%
# Fit a table of 569 rows with 30 labels, and images of digits with 5 labels per class.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import StandardScaler

import gdpa
from gdpa.plotting import CommitteeDisplay

cancer = load_breast_cancer()
table = StandardScaler().fit_transform(cancer.data)
digits, digit = load_digits(return_X_y=True)
models = {}
for name, X, truth, per_class in (
    ("breast cancer", table, cancer.target, 15),
    ("digits", digits, digit, 5),
):
    rng = np.random.default_rng(0)
    y = np.full(truth.size, -1)
    for c in np.unique(truth):
        y[rng.choice(np.flatnonzero(truth == c), per_class, replace=False)] = c
    rest = y == -1
    for kind in (gdpa.CommitteeClassifier, gdpa.GraphClassifier):
        models[name, kind] = kind().fit(X, y)
        error = (models[name, kind].transduction_ != truth)[rest].mean()
        print(f"{name:14s} {kind.__name__:20s} error {error:.1%}")

# %%
# Draw the model weights, which differ between the table and the images.
figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.4), layout="constrained")
for ax, name in zip(axes, ("breast cancer", "digits"), strict=True):
    CommitteeDisplay.from_estimator(models[name, gdpa.CommitteeClassifier], ax=ax)
    ax.set_title(name)
plt.show()

# %%
# Print the most important columns according to the forest:
importances = models["breast cancer", gdpa.CommitteeClassifier].feature_importances_
for i in np.argsort(-importances)[:5]:
    print(f"{cancer.feature_names[i]:22s} {importances[i]:.2f}")
