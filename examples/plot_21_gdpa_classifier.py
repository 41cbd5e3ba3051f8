"""
The paper's system on two moons
===============================

:class:`gdpa.GDPAClassifier` runs the paper's pipeline. The left-ends of the Gershgorin discs of
H_bar are aligned at the dual optimum, and labels come from the first eigenvector of H where that is
safe. With fewer labels the classifier falls back to complementary slackness, and says why.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

import gdpa
from gdpa.plotting import GraphDisplay

X, truth = gdpa.datasets.moons(300, noise=0.2, random_state=0)
order = np.random.default_rng(0).permutation(300)

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for ax, count in zip(axes, (90, 6), strict=True):
    y = np.zeros(300, dtype=int)
    y[order[:count]] = truth[order[:count]]
    model = gdpa.GDPAClassifier(unlabeled=0).fit(X, y)
    right = (model.transduction_ == truth)[y == 0].mean()
    print(f"{count} labels: {model.recovery_}, because {model.recovery_reason_}")
    print(f"   left-ends of H_bar: {np.abs(model.discs_.left_ends).max():.1e} from 0")
    bound = model.solution_.lower_bound
    print(f"   objective {model.solution_.objective:.2f}, proved bound {bound:.2f}")
    GraphDisplay.from_estimator(model, X, ax=ax)
    ax.get_legend().remove()
    ax.set_title(f"{count} labels, {model.recovery_}: {right:.0%} correct")
plt.show()

# %%
# The first eigenvector can be asked for. With few labels its constant part is large, and fewer
# samples get the right class.
eigenvector = gdpa.GDPAClassifier(unlabeled=0, recovery="eigenvector").fit(X, y)
right = (eigenvector.transduction_ == truth)[y == 0].mean()
print(f"6 labels, first eigenvector: {right:.0%} correct")
