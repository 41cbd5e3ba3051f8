"""
Label weight and self-loop, chosen by cross-validation
======================================================

The scores solve ``(L + diag(a + gamma)) F = a Y``. A large label weight ``a`` without self-loop
gives the harmonic function (Laplace learning). A large self-loop ``gamma`` gives a one-step vote of
the labelled neighbours. A small label weight gives Poisson learning, after the constant is removed.
The best choice depends on the data. Leave-one-out cross-validation finds it: each label is
predicted from the others.
"""

# %%
# ``GraphClassifier`` does this by default. Fit it on breast cancer with 40 labels:
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

import gdpa
from gdpa.estimators import GraphOptions
from gdpa.plotting import SelectionDisplay

X, truth = load_breast_cancer(return_X_y=True)
rng = np.random.default_rng(1)
y = np.full(truth.size, -1)
known = rng.choice(truth.size, 40, replace=False)
y[known] = truth[known]
model = gdpa.GraphClassifier(options=GraphOptions(rescale="minmax")).fit(X, y)
print(f"label weight {model.label_weight_:g}, self-loop {model.self_loop_:g}", end=", ")
print(f"{model.n_neighbors_} neighbours; loss {model.tuning_.loss:.3f} by {model.tuning_.source}")

# %%
# Draw the held-out loss and the chosen setting. Only the 40 labels are used.
SelectionDisplay.from_estimator(model)
plt.show()

# %%
# Check the choice by the error on the other samples, whose labels were hidden:
unlabeled = y == -1
loops = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0]
errors = []
for loop in loops:
    fixed = gdpa.GraphClassifier(
        n_neighbors=model.n_neighbors_,
        label_weight=np.inf,
        self_loop=loop,
        options=GraphOptions(rescale="minmax"),
    )
    errors.append((fixed.fit(X, y).transduction_ != truth)[unlabeled].mean())
chosen = (model.transduction_ != truth)[unlabeled].mean()
print(f"error of the chosen setting {chosen:.1%}, best of the curve {min(errors):.1%}")

figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
ax.plot(loops, 100 * np.array(errors), "o-", color="#0072B2", label="infinite label weight")
ax.axhline(100 * chosen, color="#D55E00", linestyle="--", label="chosen by cross-validation")
ax.set(xscale="log", xlabel="self-loop", ylabel="error in percent", ylim=(0, None))
ax.legend(frameon=False)
plt.show()
