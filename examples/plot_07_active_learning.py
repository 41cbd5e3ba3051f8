"""
Active learning: ask for the labels that matter
===============================================

``query`` returns the samples to label next. ``add_labels`` adds their labels without refitting: it
updates only the neighbourhood whose scores change.
"""

# %%
# Start from one label per digit, then query five more labels in each of ten rounds. With one label
# per class none can be held out, so ``fit`` warns that the accuracy is unknown. Here we measure it
# with the true labels.
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import gdpa
from gdpa.errors import ConfidenceWarning

warnings.simplefilter("ignore", ConfidenceWarning)

X, truth = load_digits(return_X_y=True)
X, truth = X[:800], truth[:800]
first = np.array([np.flatnonzero(truth == digit)[0] for digit in range(10)])
y = np.full(truth.size, -1)
y[first] = truth[first]


def learning_curve(strategy):
    """Return the error after each of ten rounds."""
    model = gdpa.CommitteeClassifier(n_neighbors=10).fit(X, y)
    rng = np.random.default_rng(0)
    errors = [(model.transduction_ != truth).mean()]
    for _ in range(10):
        random = rng.choice(truth.size, 5, replace=False)
        new = random if strategy == "random" else model.query(5, strategy=strategy)
        model.add_labels(new, truth[new])
        errors.append((model.transduction_ != truth).mean())
    return 100 * np.array(errors)


# %%
# "auto", the default, asks for samples that are uncertain and far from the labels so far.
# "representatives" asks for cluster centres. Compare both with random labels.
curves = {name: learning_curve(name) for name in ("random", "auto", "representatives")}
figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
labels = 10 + 5 * np.arange(11)
for (name, errors), color in zip(curves.items(), ("#7F7F7F", "#0072B2", "#D55E00"), strict=True):
    ax.plot(labels, errors, color=color, marker="o", markersize=4, label=name)
    print(f"{name:16s} error {errors[0]:.1f} % -> {errors[-1]:.1f} %")
ax.set(xlabel="labels", ylabel="error in percent", ylim=(0, None))
ax.legend(frameon=False)
plt.show()
