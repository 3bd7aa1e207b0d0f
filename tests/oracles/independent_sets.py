"""Independent sets by trying every subset, from the definitions 1 and 2 of paper 002."""

from itertools import combinations


def maximal_independent_sets(nodes, edges):
    """Return every maximal independent set of the subgraph on `nodes`, as frozensets."""
    joined = {frozenset(edge) for edge in edges}
    found = []
    for size in range(len(nodes) + 1):
        for chosen in map(frozenset, combinations(nodes, size)):
            if any(frozenset(pair) in joined for pair in combinations(chosen, 2)):
                continue
            outside = set(nodes) - chosen
            if all(any(frozenset((v, w)) in joined for w in chosen) for v in outside):
                found.append(chosen)
    return found


def get_ind_set(nodes, edges, means):
    """Algorithm 1, steps 26-31 of paper 002: take the best arm, drop it and its neighbours."""
    left, taken = set(nodes), set()
    while left:
        best = max(left, key=lambda a: (means[a], -a))
        taken.add(best)
        left -= {best} | {b for b in left if (best, b) in edges or (b, best) in edges}
    return taken
