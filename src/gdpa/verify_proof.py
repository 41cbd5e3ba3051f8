"""Check how good a cut, QUBO or Ising assignment is (python verify_proof.py FILE PROOF.json).

FILE has the format of Gset and Biq Mac; names may end in .gz. All numbers are exact. Problems are
stated as maximum cuts, which are bounded from above by reductions (eliminate, merge), a tree (each
branch has a part for u and v on the same side, and one for different sides) and cycles: a closed
walk crosses a cut an even number of times, so if F is an odd number of its steps (marked by minus),
cut(F) - cut(others) <= |F| - 1. Multiples of this are subtracted from the weights. The rest adds at
most its positive part or, if diagonal + rest is semidefinite, sum(rest) / 2 + sum(diagonal) / 4.
"""

import copy
import json
import sys
from fileinput import hook_compressed
from fractions import Fraction
from hashlib import sha256
from math import gcd, isqrt, lcm
from operator import mul


def require(condition, message):
    if not condition:
        raise ValueError(message)


def read_problem(path, kind):
    """Return sense, number of variables n, constant and weights; node n stands for 1."""
    header, *entries = filter(None, map(str.split, hook_compressed(path, "r", encoding="utf-8")))
    n, constant, weights = int(header[0]), Fraction(0), {}
    for a, b, number in entries:
        i, j, w = int(a) - 1, int(b) - 1, Fraction(float(number))
        terms = [(i, j, w)] if i != j else []
        if kind == "ising":
            terms = [(i, n if i == j else j, 2 * w)]
        elif kind == "qubo":
            terms = [(i, n, w)] if i == j else [(i, n, w), (j, n, w), (i, j, w)]
        constant += {"max-cut": 0, "ising": w, "qubo": w if i == j else 2 * w}[kind]
        for u, v, weight in terms:
            weights[min(u, v), max(u, v)] = weights.get((min(u, v), max(u, v)), 0) + weight
    weights = {pair: weight for pair, weight in sorted(weights.items()) if weight}
    return "maximise" if kind == "max-cut" else "minimise", n, constant, weights


class Graph(dict):  # weights by node and neighbour
    constant = Fraction(0)  # to be added to every cut

    def add(self, u, v, weight):
        require(type(u) is type(v) is int and u != v, f"there is no edge {u}, {v}")
        self.setdefault(u, {})[v] = self.setdefault(v, {})[u] = self.get(u, {}).get(v, 0) + weight

    def remove(self, v):
        return {u: w for u in self.pop(v, {}) if (w := self[u].pop(v))}

    def eliminate(self, v):
        """Replace a node, whose best side depends on its neighbours, by edges between these."""
        near = self.remove(v)
        require(len(near) <= 3, f"node {v} has more than three neighbours")
        ends, (a, b, c) = [*near], [*near.values(), 0, 0, 0][:3]
        whole, parts = max(0, a + b + c), (max(a, b + c), max(b, a + c), max(c, a + b))
        self.constant += whole
        for k, m, other in ((0, 1, 2), (0, 2, 1), (1, 2, 0)):
            if weight := Fraction(parts[k] + parts[m] - parts[other] - whole) / 2:
                self.add(ends[k], ends[m], weight)

    def merge(self, u, v, side, *, by_rule=True):
        """Join v to u: one edge outweighs all others of v, or the edges are proportional."""
        require(u != v and side in (1, -1), f"node {u}, {v} or side {side} is wrong")
        near = self.remove(v)
        joint, own = near.pop(u, 0), {k: w for k, w in self.get(u, {}).items() if w}
        heavy = -side * joint >= sum(map(abs, near.values()))
        ratios = {w / own[k] for k, w in near.items()} if own.keys() == near.keys() else {0}
        twins = len(ratios) == 1 and side * min(ratios) > 0 and side * joint <= 0
        require(heavy or twins or not by_rule, f"nodes {u}, {v} must not be merged")
        self.constant += joint + sum(near.values()) if side < 0 else 0
        for k, weight in near.items():
            self.add(u, k, side * weight)


def tree_bound(node, graph):
    if "branch" in node:
        same, different = copy.deepcopy(graph), copy.deepcopy(graph)
        same.merge(*node["branch"], 1, by_rule=False)
        different.merge(*node["branch"], -1, by_rule=False)
        return max(tree_bound(node["same"], same), tree_bound(node["different"], different))
    bound, unit = graph.constant, Fraction(1, node["denominator"])
    for multiplier, *walk in node["cycles"]:
        odd, amount = sum(step < 0 for step in walk), multiplier * unit
        require(type(multiplier) is int and amount > 0 and odd % 2, f"the cycle {walk} is wrong")
        bound += amount * (odd - 1)
        for step, other in zip(walk, walk[1:] + walk[:1]):
            graph.add(abs(step) - 1, abs(other) - 1, amount if step > 0 else -amount)
    weights = {(u, v): w for u, near in graph.items() for v, w in near.items() if u < v}
    if "diagonal" not in node:
        return bound + sum(weight for weight in weights.values() if weight > 0)
    diagonal = {v: entry * unit for v, entry in zip(sorted(graph), node["diagonal"], strict=True)}
    require_semidefinite(weights, diagonal)
    return bound + (sum(weights.values()) + sum(diagonal.values()) / 2) / 2


def require_semidefinite(weights, diagonal):  # by L with diagonally dominant matrix - L L'
    L, scale = [], lcm(*(x.denominator for x in (*weights.values(), *diagonal.values()))) << 64
    for v in diagonal:
        row, rest = [], 0  # rest: sum of what L L' leaves of the entries of the row
        for u, other in zip(diagonal, L):
            left = int(weights.get((u, v), 0) * scale) - sum(map(mul, row, other))
            row.append(left // other[-1])
            rest += left % other[-1]
        square = int(diagonal[v] * scale) - sum(map(mul, row, row)) - rest
        square -= len(diagonal) * isqrt(max(square, 0))  # the rest in later rows is smaller
        require(square > 0, "the matrix is not proved to be positive semidefinite")
        L.append([*row, isqrt(square)])


def check(problem, proof):
    sense, n, constant, weights = problem
    text = json.dumps({**proof, "checksum": ""}, sort_keys=True)
    require(sha256(text.encode()).hexdigest() == proof["checksum"], "it was changed")
    lines = [f"{sense} {n} {constant}", *(f"{i} {j} {w}" for (i, j), w in weights.items())]
    digest = sha256("\n".join(lines).encode()).hexdigest()
    require(digest == proof["sha256"], "it belongs to another problem")
    sides, graph = proof["assignment"] + "1", Graph()
    require(len(sides) == n + 1 and {*sides} <= {*"01"}, "the assignment is not complete")
    cut = sum(weight for (i, j), weight in weights.items() if sides[i] != sides[j])
    for (i, j), weight in weights.items():
        graph.add(i, j, weight)
    sums = [sum(near.values()) for near in graph.values()] + [2 * w for w in weights.values()]
    scale = lcm(*(w.denominator for w in sums))
    step = Fraction(gcd(*(int(w * scale) for w in sums)), scale) or 1  # divides all cuts
    for reduction in proof["reductions"]:
        (graph.merge if len(reduction) > 1 else graph.eliminate)(*reduction)
    bound = tree_bound(proof["tree"], graph) // step * step
    value, bound = (constant + (x if sense == "maximise" else -x) for x in (cut, bound))
    require(value == Fraction(proof["value"]), f"the assignment has value {value}")
    require(bound == Fraction(proof["bound"]), f"the proof gives the bound {bound}")
    return value, bound


def verdict(problem, proof):
    try:
        value, bound = check(problem, proof)
    except Exception as error:
        return f"wrong, because {error}"
    gap = abs(bound - value) / (max(abs(bound), abs(value)) or 1)
    return "optimal" if value == bound else f"within {float(100 * gap):.2g} %"


if __name__ == "__main__":
    claim = json.load(hook_compressed(sys.argv[2], "r", encoding="utf-8"))
    print(answer := verdict(read_problem(sys.argv[1], claim["problem"]), claim))
    sys.exit(answer.startswith("wrong"))
