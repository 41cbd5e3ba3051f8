"""
Certificates: how good is a labelling?
======================================

:func:`gdpa.certify` compares the objective of any labelling with a bound that no labelling can
beat. For non-negative weights the bound is the optimum itself, from a minimum cut. With weights of
both signs the problem is NP-hard. The semidefinite relaxation then gives a bound, which is proved
by a factorisation.
"""

# %%
# With non-negative weights the gap is exact.
import matplotlib.pyplot as plt
import numpy as np

import gdpa

problem, truth = gdpa.datasets.make_moons_graph(
    200, n_labeled=4, n_neighbors=8, noise=0.2, random_state=0
)
for method in ("harmonic", "vote", "min-cut"):
    labels = gdpa.solve(problem, method).labels
    error = (labels != truth)[problem.unlabeled].mean()
    print(f"{method:8s} error {error:5.1%}; {gdpa.certify(problem, labels)}")
print(f"{'truth':8s} error  0.0%; {gdpa.certify(problem, truth)}")

# %%
# The true labels are far from the optimum, which cuts off the two labels of one class: the
# objective is only a model of the data. This is why the package uses the minimum cut as a
# certificate and not as the classifier.
#
# Weights of both signs: random couplings, a "spin glass". The methods cannot prove that their
# labels are optimal, but the relaxation bounds the gap.
rng = np.random.default_rng(0)
sizes = (20, 40, 80, 120)
gaps = {"sns": [], "spectral": []}
for n in sizes:
    P = np.triu((rng.random((n, n)) < 6 / n) * rng.choice([-1.0, 1.0], (n, n)), 1)
    form = gdpa.BinaryQuadratic(P + P.T)
    for method, values in gaps.items():
        solution = gdpa.solve(form, method, random_state=0)
        certificate = gdpa.certify(form, solution.labels)
        values.append(100 * certificate.relative_gap)
        print(f"n = {n:3d} {method:9s} {certificate}")

figure, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
for (method, values), color, marker in zip(gaps.items(), ("#0072B2", "#D55E00"), "os", strict=True):
    ax.plot(sizes, values, color=color, marker=marker, label=method)
ax.set(xlabel="variables", ylabel="certified gap in percent", ylim=(0, None))
ax.legend(frameon=False)
plt.show()
