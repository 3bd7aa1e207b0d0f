"""Which policies a learner serves, and how: the page's tables are made of what it does."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import tacit
from battery.cases import Case, cases, fields_of
from battery.test_service import joined
from tacit.contextual import LearnedKernel, RestartingLinUCB
from tacit.core.registry import policies

PAGE = Path(__file__).parents[2] / "docs/deciding.md"


def ours(kind):
    """Return whether it is a policy that comes with the package, of a setting that can serve."""
    return kind.__module__.startswith(("tacit.arms.", "tacit.contextual."))


def form(case):
    """Return the words by which a form of a policy is told from its others."""
    hidden = dict(case.parameters.get("privacy", {}))
    if not hidden:
        words = [
            f'{w}="{case.parameters[w]}"' for w in ("variant", "trust") if w in case.parameters
        ]
        return f"{case.kind.__name__}({', '.join(words)})"
    kind = {"published": "Published", "noisy-sums": "NoisySums"}.get(hidden["kind"], "PerReward")
    return f'{kind}(trust="{hidden.get("trust", "local")}")'


def noisy_sums():
    """Return the policies with noise on sums; the battery plays it with one of them."""
    for kind in policies().values():
        if "privacy" in fields_of(kind) and not issubclass(kind, LearnedKernel | RestartingLinUCB):
            for more in ({"trust": "central", "delta": 1e-6}, {"trust": "central"}, {}):
                yield Case(kind, {"privacy": {"kind": "noisy-sums", "epsilon": 2.0, **more}})


@functools.cache
def tried():
    """Return of every form of every policy how it is served, by trust and unit, or what is said."""
    served, refused = {}, {}
    for case in (*cases(), *noisy_sums()):
        if not ours(case.kind):
            continue
        environment, policy = case.easy()
        given = {}
        if case.kind.setting == "users":
            given = joined(policy, environment.table(5, 0, 10))
        try:
            learner = tacit.Learner(policy, **given)
        except ValueError as error:
            refused.setdefault(form(case), []).append(str(error))
            continue
        stated = learner.guarantee()
        how = "nothing"
        if stated.private and not stated.unused:
            assert stated.trust == learner.trust
            how = learner.trust + (", visits" if stated.unit == "visit" else "")
        served.setdefault(how, set()).add(case.kind.name)
    return served, refused


def table(first):
    """Return the rows of the page's table whose first heading this is."""
    lines = PAGE.read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(f"| {first} |"))
    rows = []
    for line in lines[at + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split(" | ")])
    return rows


def test_every_policy_is_served_as_the_page_says():
    served, _ = tried()
    written = {row[0]: set(re.findall(r"`([^`]+)`", row[2])) for row in table("what hides")}
    assert written.keys() == served.keys()
    # A new policy needs no word on the page: `tacit policies` lists it.
    assert all(names <= served[how] for how, names in written.items())
    known = {each.name for each in policies().values() if ours(each)}
    assert set().union(*served.values()) == known


def test_what_is_refused_is_on_the_page_with_what_to_take_instead():
    _, refused = tried()
    rows = {row[0].strip("`"): row[2] for row in table("refused")}
    assert set(rows) == set(refused)
    for name, sentences in refused.items():
        instead = re.findall(r"`([^`(]+)", rows[name])
        assert instead
        assert all(word in sentence for sentence in sentences for word in instead), name
