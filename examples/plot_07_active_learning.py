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


def learning_curve(choose, rounds=10, batch=5):
    """Return the error after each round."""
    model = gdpa.CommitteeClassifier(n_neighbors=10).fit(X, y)
    asked = set(first.tolist())
    errors = [(model.transduction_ != truth).mean()]
    for _ in range(rounds):
        new = choose(model, asked, batch)
        model.add_labels(new, truth[new])
        asked.update(new.tolist())
        errors.append((model.transduction_ != truth).mean())
    return 100 * np.array(errors)


def at_random(seed):
    rng = np.random.default_rng(seed)

    def choose(model, asked, batch):
        return rng.choice(np.setdiff1d(np.arange(truth.size), list(asked)), batch, replace=False)

    return choose


# %%
# Compare with four runs of random labels. "auto", the default, asks for samples
# that are uncertain and far from the labels so far. "representatives" asks for cluster centres.
random = np.array([learning_curve(at_random(seed)) for seed in range(4)])
curves = {
    name: learning_curve(lambda model, asked, batch, s=name: model.query(batch, strategy=s))
    for name in ("auto", "representatives")
}

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
labels = 10 + 5 * np.arange(11)
ax.fill_between(labels, random.min(axis=0), random.max(axis=0), color="#9AA3AB", alpha=0.35)
ax.plot(labels, random.mean(axis=0), color="#7F7F7F", linestyle=":", label="at random (4 runs)")
for (name, errors), color, marker in zip(curves.items(), ("#0072B2", "#D55E00"), "os", strict=True):
    ax.plot(labels, errors, color=color, marker=marker, markersize=4, label=f"query, {name}")
    print(f"{name:16s} error {errors[0]:.1f} % -> {errors[-1]:.1f} %")
print(f"{'at random':16s} error {random[:, 0].mean():.1f} % -> {random[:, -1].mean():.1f} %")
ax.set(xlabel="labels", ylabel="error in percent", ylim=(0, None))
ax.legend(frameon=False)
plt.show()
