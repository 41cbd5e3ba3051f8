"""
Links and features together
===========================

Documents have words and cite each other; users have attributes and friends. In this example 600
nodes of three classes have features and links. Neither is sufficient: every third link joins
different classes, and the features of the classes overlap. With a label for one node in twenty,
links and features together are far more accurate than either alone.
"""

# %%
# Create the network, and fit on features, on links, and on both.
import matplotlib.pyplot as plt
import numpy as np

import gdpa
from gdpa.datasets import linked_classes
from gdpa.plotting import CommitteeDisplay
from gdpa.plotting.layout import picture

X, truth, W = linked_classes(600, homophily=0.67, separation=0.4, degree=7.0, random_state=3)
rest = np.ones(truth.size, dtype=bool)
rest[np.random.default_rng(0).choice(truth.size, 30, replace=False)] = False
y = np.where(rest, -1, truth)
models = {
    "features alone": gdpa.CommitteeClassifier().fit(X, y),
    "links alone": gdpa.GraphClassifier(graph="precomputed").fit(W, y),
    "links and features": gdpa.CommitteeClassifier().fit(X, y, adjacency=W),
}
for name, model in models.items():
    print(f"{name:18s} error {(model.transduction_ != truth)[rest].mean():.1%}")

# %%
# Draw the model weights, and the errors of the three classifiers.
both = models["links and features"]
place = picture(W, None, keep=np.arange(truth.size)).positions
figure, axes = plt.subplots(1, 4, figsize=(14, 3.6), layout="constrained")
CommitteeDisplay.from_estimator(both, ax=axes[0])
for ax, (name, model) in zip(axes[1:], models.items(), strict=True):
    wrong = (model.transduction_ != truth) & rest
    ax.scatter(*place.T, c=truth, s=6, cmap="viridis", alpha=0.5)
    ax.scatter(*place[wrong].T, s=14, color="crimson", marker="x")
    ax.set_title(f"{name}: {wrong.sum()} wrong")
    ax.set_axis_off()
plt.show()

# %%
# Print the mean weight of the models that use links, and the weight for a node without links:
print(f"mean weight of the links: {both.graph_share_[rest].mean():.0%}")
alone = both.graph_share(X[:1], adjacency=np.zeros((1, truth.size)))
print(f"for a new node without links: {alone[0]:.0%}")

# %%
# Links that are unrelated to the classes do little harm: models that use them have a high held-out
# loss and get little weight, as far as 30 labels can tell.
_, _, noise = linked_classes(600, homophily=1 / 3, degree=7.0, random_state=4)
doubted = gdpa.CommitteeClassifier().fit(X, y, adjacency=noise)
print(f"random links: error {(doubted.transduction_ != truth)[rest].mean():.1%}, ", end="")
print(f"weight {doubted.graph_share_[rest].mean():.0%}")
