"""
Label weight and self-loop: one family, chosen by leaving labels out
====================================================================

The scores solve ``(L + diag(a + gamma)) F = a Y``. Heavy labels without self-loop are the harmonic
function (Laplace learning); a large self-loop is a one-step vote of the labelled neighbours; light
labels, with the constant removed, are Poisson learning. Which of them is right depends on the data,
and the labels themselves can tell: each is predicted from the others.
"""

# %%
# A single graph does this by itself. Breast cancer with 40 labels:
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
# The loss that it compared, and what it took. No label outside the 40 is seen.
SelectionDisplay.from_estimator(model)
plt.show()

# %%
# Was the choice good? The error on the other samples, which only we know:
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
ax.plot(loops, 100 * np.array(errors), "o-", color="#0072B2", label="labels kept exactly")
ax.axhline(100 * chosen, color="#D55E00", linestyle="--", label="chosen by leaving labels out")
ax.set(xscale="log", xlabel="self-loop", ylabel="error in percent", ylim=(0, None))
ax.legend(frameon=False)
plt.show()

# %%
# The two ends of the family, as methods of their own: a tiny self-loop gives the harmonic function,
# a huge one the vote.
labels = np.where(y == -1, 0, np.where(y == 1, 1, -1))
problem = gdpa.GraphProblem(model.graph_, labels, laplacian="normalized")
harmonic = gdpa.solve(problem, "harmonic").scores
near = gdpa.solve(problem, self_loop=1e-9).scores
vote = gdpa.solve(problem, "vote").labels
far = gdpa.solve(problem, self_loop=1e6, tol=1e-12)
heard = problem.adjacency @ labels.astype(float) != 0
print(f"difference from the harmonic function: {np.abs(harmonic - near).max():.1e}")
print(f"agreement with the vote: {(far.labels == vote)[heard].mean():.1%}")
