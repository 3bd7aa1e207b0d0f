"""Guarantees: what is protected, from whom, for how long, and how we know.

A guarantee is a value. It keeps the releases it was composed from, so that the question can be put
again for more messages or for all rounds of one person, and it keeps beside it what the paper
claims and whether that holds.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tacit.checks import require
from tacit.privacy.accounting import certain_loss, composed_delta, composed_epsilon
from tacit.privacy.releases import Release, release_from_dict

__all__ = ["Claim", "Guarantee", "compose"]

_UNITS = {
    "reward": "one reward",
    "round": "everything that happened in one round",
    "user": "one user's whole history",
}
_TRUST = {
    "central": "everybody but the server, which is trusted and sees true values",
    "local": "everybody, the server included",
}
_SPANS = {"message": "one message", "run": "all messages of the whole run"}
_BASES = {
    "theorem": "follows from a theorem",
    "accounted": "was calculated from the releases",
    "none": "no guarantee",
}
_SCOPE = ("unit", "trust", "span", "claim", "pooled")
_NO_EPSILON = "No finite epsilon holds at delta ="


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What a paper says about privacy, and whether it holds.

    Parameters
    ----------
    epsilon, delta : float
        The claimed parameters.
    unit : {"reward", "round", "user"}
        What the paper says is protected.
    trust : {"central", "local"}
        Whether the paper trusts a server.
    span : {"message", "run"}
        How much of the output the claim covers.
    holds : bool
        Whether it is true of the published mechanism.
    why : str
        The reason, in a sentence.
    """

    epsilon: float
    delta: float = 0.0
    unit: str
    trust: str
    span: str
    holds: bool
    why: str

    def __post_init__(self) -> None:
        _require_scope(self)

    def sentence(self) -> str:
        """Return the claim and the verdict as a sentence."""
        verdict = "holds" if self.holds else "does not hold"
        return (
            f"The paper claims {_pair(self.epsilon, self.delta)} for {_UNITS[self.unit]} over "
            f"{_SPANS[self.span]} ({self.trust}); this {verdict}: {self.why.rstrip('.')}."
        )


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """What changing one protected record can do to what others see.

    Whatever the record was, no event becomes more than ``exp(epsilon)`` times as likely, except
    with probability `delta`. Build one with `compose` or `Guarantee.none`.

    Parameters
    ----------
    epsilon : float
        At least 0; infinity means no guarantee.
    delta : float
        In [0, 1].
    unit : {"reward", "round", "user"}
        The protected record.
    trust : {"central", "local"}
        Whether a server sees true values.
    span : {"message", "run"}
        How much of the output is covered.
    basis : {"theorem", "accounted", "none"}
        How the numbers were obtained.
    claim : Claim, optional
        What the paper says.
    note : str
        Anything a reader must know, in a sentence.
    releases : tuple of (Release, int)
        What touches one record, and how often.
    pooled : bool
        Whether the records of a user meet in the same releases though noise is local: the user
        publishes noisy sums of them.

    Examples
    --------
    >>> from tacit.privacy import LaplaceRelease, compose
    >>> one = compose([(LaplaceRelease(scale=2.0), 1)], unit="reward", trust="local", span="run")
    >>> one.epsilon
    0.5
    >>> one.for_user(rounds=100).epsilon
    50.0
    >>> round(one.for_user(rounds=100, delta=1e-6).epsilon, 1)
    30.5
    >>> print(one.sentence())
    Changing one reward changes the probability of anything seen in all messages of the whole run \
by a factor of at most 1.649 (epsilon = 0.5); protected from everybody, the server included; this \
was calculated from the releases.
    """

    epsilon: float
    delta: float = 0.0
    unit: str
    trust: str
    span: str
    basis: str
    claim: Claim | None = None
    note: str = ""
    releases: tuple[tuple[Release, int], ...] = ()
    pooled: bool = False

    def __post_init__(self) -> None:
        _require_scope(self)
        require(self, "basis", f"in {sorted(_BASES)}", self.basis in _BASES, self.basis)
        vacuous = math.isinf(self.epsilon) or self.delta >= 1
        require(self, "basis", "'none' exactly when nothing is protected",
                vacuous == (self.basis == "none"), self.basis)  # fmt: skip

    @classmethod
    def none(
        cls,
        why: str,
        *,
        unit: str = "reward",
        trust: str = "central",
        span: str = "run",
        claim: Claim | None = None,
        releases: Sequence[tuple[Release, int]] = (),
        pooled: bool = False,
    ) -> Guarantee:
        """Return the guarantee of something that protects nothing, and say why."""
        return cls(
            epsilon=math.inf,
            unit=unit,
            trust=trust,
            span=span,
            basis="none",
            claim=claim,
            note=why,
            releases=tuple(releases),
            pooled=pooled,
        )

    @property
    def private(self) -> bool:
        """Whether anything at all is guaranteed."""
        return self.basis != "none"

    def over(self, messages: int, *, delta: float | None = None) -> Guarantee:
        """Return the guarantee for `messages` messages like this one about the same record.

        Parameters
        ----------
        messages : int
            How many.
        delta : float, optional
            The delta of the answer; by default this guarantee's.
        """
        require(self, "messages", ">= 1", messages >= 1, messages)
        require(self, "span", "== 'message'", self.span == "message", self.span)
        parts = [(release, messages * count) for release, count in self._parts()]
        return self._recomposed(parts, delta, span="run", note=f"Over {messages} messages.")

    def for_user(self, rounds: int, *, delta: float | None = None) -> Guarantee:
        """Return the guarantee for a user of whom `rounds` records are protected together.

        Where noise is local each record has its own releases, which compose. Where it is added to
        sums, a user's records may all meet in the same sum: its sensitivity grows.

        Parameters
        ----------
        rounds : int
            In how many rounds the user takes part.
        delta : float, optional
            The delta of the answer; by default this guarantee's.
        """
        require(self, "rounds", ">= 1", rounds >= 1, rounds)
        require(self, "unit", "'reward' or 'round'", self.unit != "user", self.unit)
        if self.trust == "local" and not self.pooled:
            parts = [(release, rounds * count) for release, count in self._parts()]
        else:
            parts = [(release.grouped(rounds), count) for release, count in self._parts()]
        records = "reward" if self.unit == "reward" else "round"
        note = f"For a user with {rounds} {records}{'s' if rounds > 1 else ''}."
        return self._recomposed(parts, delta, unit="user", note=note)

    def at(self, delta: float) -> Guarantee:
        """Return the same guarantee stated at another delta."""
        return self._recomposed(self._parts(), delta)

    def delta_at(self, epsilon: float) -> float:
        """Return the delta at which `epsilon` holds."""
        if not self.releases:
            return self.delta if epsilon >= self.epsilon else 1.0
        return composed_delta(self.releases, epsilon)

    def curve(
        self, rounds: Sequence[int], *, delta: float | None = None
    ) -> list[tuple[int, float]]:
        """Return (m, epsilon) for a user with m rounds, for every m of `rounds`."""
        return [(int(m), self.for_user(int(m), delta=delta).epsilon) for m in rounds]

    def _parts(self) -> tuple[tuple[Release, int], ...]:
        known = bool(self.releases) or not self.private
        require(self, "releases", "not empty, to compose again", known, self.releases)
        return self.releases

    def _recomposed(
        self, parts: Sequence[tuple[Release, int]], delta: float | None, **changes: Any
    ) -> Guarantee:
        if not self.private and not parts:
            changes.pop("note", None)
            return dataclasses.replace(self, **changes)
        note = _sentences(self.note.partition(_NO_EPSILON)[0], changes.pop("note", ""))
        scope: dict[str, Any] = {name: getattr(self, name) for name in _SCOPE}
        return compose(
            parts,
            delta=self.delta if delta is None else delta,
            basis="accounted",
            note=note,
            **(scope | changes),
        )

    def sentence(self) -> str:
        """Return the guarantee as one plain sentence, notes and the paper's claim after it."""
        if not self.private:
            text = f"Nothing protects {_UNITS[self.unit]} in {_SPANS[self.span]}"
        else:
            factor = f"{math.exp(self.epsilon):.4g}" if self.epsilon < 700 else "an enormous number"
            text = (
                f"Changing {_UNITS[self.unit]} changes the probability of anything seen in "
                f"{_SPANS[self.span]} by a factor of at most {factor} "
                f"({_pair(self.epsilon, self.delta)})"
            )
            if self.delta > 0:
                text += f", except with probability {self.delta:.3g}"
            text += f"; protected from {_TRUST[self.trust]}; this {_BASES[self.basis]}"
        text += "."
        if self.note:
            text += f" {self.note.rstrip('.')}."
        if self.claim is not None:
            text += f" {self.claim.sentence()}"
        return text

    def table(self) -> list[tuple[str, str]]:
        """Return rows of (what, value) for a table."""
        rows = [
            ("epsilon", _number(self.epsilon)),
            ("delta", _number(self.delta)),
            ("unit", _UNITS[self.unit]),
            ("protected from", _TRUST[self.trust] if self.private else "nobody"),
            ("span", _SPANS[self.span]),
            ("basis", _BASES[self.basis]),
        ]
        rows += [("release", f"{count} x {release.describe()}") for release, count in self.releases]
        if self.note:
            rows.append(("note", self.note))
        if self.claim is not None:
            rows.append(("paper", self.claim.sentence()))
        return rows

    def to_json(self) -> str:
        """Return the guarantee as JSON; infinity is the string "inf"."""
        record = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name not in ("claim", "releases")
        }
        record["claim"] = dataclasses.asdict(self.claim) if self.claim is not None else None
        record["releases"] = [[release.to_dict(), count] for release, count in self.releases]
        return json.dumps(_without_infinity(record), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Guarantee:
        """Return the guarantee that `to_json` wrote."""
        record = _with_infinity(json.loads(text))
        claim = record.pop("claim")
        releases = tuple((release_from_dict(r), int(n)) for r, n in record.pop("releases"))
        return cls(**record, claim=Claim(**claim) if claim else None, releases=releases)


def compose(
    releases: Sequence[tuple[Release, int]],
    *,
    delta: float = 0.0,
    unit: str,
    trust: str,
    span: str,
    basis: str = "accounted",
    claim: Claim | None = None,
    note: str = "",
    pooled: bool = False,
) -> Guarantee:
    """Return the guarantee of releases that all depend on the same record.

    Where a record touches only one of several releases (parallel composition), compose that one.

    Parameters
    ----------
    releases : sequence of (Release, int)
        Each release with the number of times it is made.
    delta : float
        0 adds up the pure epsilons; else privacy-loss distributions are composed.
    unit, trust, span, basis, claim, note, pooled
        As in `Guarantee`. If no finite epsilon holds at `delta`, the basis becomes ``"none"``.
    """
    parts = tuple((release, int(count)) for release, count in releases)
    epsilon = composed_epsilon(parts, delta)
    scope: dict[str, Any] = {"unit": unit, "trust": trust, "span": span, "claim": claim}
    scope["pooled"] = pooled
    if math.isinf(epsilon):
        least = certain_loss(parts)
        floor = f": it is at least {least:.3g} whatever epsilon" if least > delta else ""
        why = f"{_NO_EPSILON} {delta:g}{floor}"
        return Guarantee.none(_sentences(note, why), releases=parts, **scope)
    return Guarantee(epsilon=epsilon, delta=delta, basis=basis, note=note, releases=parts, **scope)


def _require_scope(owner: Any) -> None:
    require(owner, "epsilon", ">= 0", owner.epsilon >= 0, owner.epsilon)
    require(owner, "delta", "in [0, 1]", 0 <= owner.delta <= 1, owner.delta)
    for name, allowed in (("unit", _UNITS), ("trust", _TRUST), ("span", _SPANS)):
        value = getattr(owner, name)
        require(owner, name, f"in {sorted(allowed)}", value in allowed, value)


def _sentences(*texts: str) -> str:
    return " ".join(f"{text.strip().rstrip('.')}." for text in texts if text.strip())


def _number(value: float) -> str:
    return "infinite" if math.isinf(value) else f"{value:.4g}"


def _pair(epsilon: float, delta: float) -> str:
    text = f"epsilon = {_number(epsilon)}"
    return text if delta == 0 else f"{text}, delta = {_number(delta)}"


def _without_infinity(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_infinity(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_infinity(v) for v in value]
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def _with_infinity(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _with_infinity(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_with_infinity(v) for v in value]
    return math.inf if value == "inf" else value
