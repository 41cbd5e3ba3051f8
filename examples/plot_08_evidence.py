"""
Your own models in the ensemble
===============================

With ``models=`` any scikit-learn classifier becomes a member of the ensemble. It is weighted by its
held-out loss like the others, but gets no weight that would increase the loss of the ensemble.
"""

# %%
# Use two small data sets with few labels. The weight of the model is chosen by cross-validation.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gdpa
from gdpa.estimators import GraphOptions

sets = {
    "wine": (*load_wine(return_X_y=True), 24),
    "breast cancer": (*load_breast_cancer(return_X_y=True), 30),
}
table = {}
for name, (X, truth, n_labeled) in sets.items():
    errors = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        y = np.full(truth.size, -1)
        known = rng.choice(truth.size, n_labeled, replace=False)
        y[known] = truth[known]
        rest = y == -1
        model = make_pipeline(StandardScaler(), LogisticRegression())
        alone = model.fit(X[~rest], y[~rest]).predict(X)
        options = GraphOptions(rescale="minmax")
        committee = gdpa.CommitteeClassifier(options=options).fit(X, y)
        both = gdpa.CommitteeClassifier(models=model, options=options).fit(X, y)
        predicted = (alone, committee.transduction_, both.transduction_)
        errors.append([(labels != truth)[rest].mean() for labels in predicted])
    table[name] = 100 * np.array(errors)
    print(f"{name:14s} weight of the model in the last run: {both.committee_.weights[-1]:.3g}")

# %%
# Draw the mean error over three random choices of labels; each run is a dot. A model helps if it
# has information that the other members lack. The ensemble already has a linear member, so little
# changes here.
columns = ("logistic regression", "ensemble alone", "ensemble with it")
figure, axes = plt.subplots(1, 2, figsize=(7, 4.4), layout="constrained")
for ax, (name, errors) in zip(axes, table.items(), strict=True):
    ax.bar(np.arange(3), errors.mean(axis=0), color=["#9AA3AB", "#56B4E9", "#0072B2"])
    for k in range(3):
        ax.plot(np.full(3, k), errors[:, k], ".", color="black", alpha=0.6)
    ax.set_xticks(np.arange(3), [c.replace(" ", "\n", 1) for c in columns])
    ax.set(title=name, ylabel="error in percent")
plt.show()
