"""A campaign against the package: hostile inputs, damaged files, kills; and what must hold.

``python -m benchmarks.campaign --minutes 30`` runs all kinds of attack in turn, each case from a
seed of its own. A case is *right* (everything that must hold held), a *clear error* (refused as
documented) or *wrong*; the seed of each wrong one is printed, and ``--only KIND --seed S`` runs
that one again with its traceback.
"""
