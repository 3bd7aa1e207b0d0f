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

from tacit.core.constraints import require
from tacit.core.json_codec import dumps, number
from tacit.privacy.accounting import certain_loss, composed_delta, composed_epsilon
from tacit.privacy.releases import Release, release_from_dict

_UNITS = {
    "reward": "one reward",
    "round": "all rewards of one round",
    "visit": "contexts and rewards of one round",
    "user": "one user's whole history",
    "loss": "one agent's loss in one round",
    "message": "what goes into one message",
    "agent": "one agent's whole history",
}
_WHOLE = {"reward": "user", "round": "user", "visit": "user", "loss": "agent", "message": "agent"}
NOT_PROTECTED = {
    "sending": "whether and when anything is sent",
    "others": "further records of the same person, whose losses add up",
    "contexts": "contexts and features",
    "signals": "signals, and the beliefs that show them",
    "graph": "who is joined to whom",
    "server": "the server, which sees true values",
    "sums": "the sums and counts that the server keeps",
    "shuffler": "whoever's report the shuffler lets be linked to its owner, beyond the local epsilon",
    "flippers": "rewards whose block has other reports that are not randomised as said, or that are told",
}
"""What guarantees often leave open, by a short key; any other words are taken as they are."""
_OPEN = {
    "reward": ("sending", "others"),
    "round": ("sending", "others"),
    "visit": ("sending", "others"),
    "loss": ("sending", "others"),
    "message": ("sending", "others"),
    "user": ("sending",),
    "agent": ("sending",),
}
_SIZES = (
    (0.1, "hides it almost wholly"),
    (1.0, "hides it well"),
    (3.0, "blurs it"),
    (10.0, "hardly hides it"),
    (math.inf, "hides nothing"),
)
_TRUST = {
    "central": "everybody but the server, which is trusted and sees true values",
    "shuffler": "everybody but the shuffler, which is trusted to mix reports and to forget whose they are",
    "local": "everybody, the server included",
}
_SPANS = {"message": "one message", "run": "all messages of the whole run"}
_BASES = {
    "theorem": "follows from a theorem",
    "accounted": "was calculated from the releases",
    "none": "no guarantee",
}
_SCOPE = ("unit", "trust", "span", "claim", "pooled", "not_protected")
_NO_EPSILON = "No finite epsilon holds at delta ="


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What a paper says about privacy, and whether it holds.

    Parameters
    ----------
    epsilon, delta : float
        The claimed parameters.
    unit : {"reward", "round", "visit", "user", "loss", "message", "agent"}
        What the paper says is protected.
    trust : {"central", "shuffler", "local"}
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
    unit : {"reward", "round", "visit", "user", "loss", "message", "agent"}
        The protected record: with a learner one reward, all rewards of one round or one user's whole
        history; in a population one agent's loss, one agent's message or one agent's whole history.
    trust : {"central", "shuffler", "local"}
        Whether a server sees true values, somebody sees whose a privatised one is, or nobody either.
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
    not_protected : tuple of str, optional
        What is left open: keys of `NOT_PROTECTED`, or words that end the sentence "Not protected:".
        By default what a guarantee for the unit never covers.

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
by a factor of at most 1.649 (epsilon = 0.5), which hides it well; protected from everybody, the \
server included; this was calculated from the releases. Not protected: whether and when anything is \
sent; further records of the same person, whose losses add up.
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
    not_protected: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        _require_scope(self)
        require(self, "basis", f"in {sorted(_BASES)}", self.basis in _BASES, self.basis)
        vacuous = math.isinf(self.epsilon) or self.delta >= 1
        agrees = vacuous == (self.basis == "none")
        require(self, "basis", "'none' exactly when nothing is protected", agrees, self.basis)
        if self.not_protected is None:
            open_to_all = () if vacuous or self.unused else _OPEN[self.unit]
            object.__setattr__(self, "not_protected", open_to_all)
        named = isinstance(self.not_protected, tuple) and all(self.not_protected)
        require(self, "not_protected", "a tuple of words", named, self.not_protected)

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
        not_protected: tuple[str, ...] | None = None,
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
            not_protected=not_protected,
        )

    @property
    def unused(self) -> bool:
        """Whether no record enters anything that is seen, so that there is nothing to protect."""
        return self.epsilon == 0 and self.delta == 0 and not self.releases

    @property
    def open_to_all(self) -> tuple[str, ...]:
        """What is not protected, in words."""
        return tuple(NOT_PROTECTED.get(each, each) for each in self.not_protected or ())

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
        return self._recompose(parts, delta, span="run", note=f"Over {messages} messages.")

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
        if self.unused:
            return dataclasses.replace(self, unit=_WHOLE.get(self.unit, self.unit))
        require(self, "unit", f"in {sorted(_WHOLE)}", self.unit in _WHOLE, self.unit)
        if self.trust == "local" and not self.pooled:
            parts = [(release, rounds * count) for release, count in self._parts()]
        else:
            parts = [(release.group(rounds), count) for release, count in self._parts()]
        whole, many = _WHOLE[self.unit], _plural(self.unit, rounds)
        still = tuple(each for each in self.not_protected or () if each != "others")
        note = f"For {_article(whole)} with {rounds:,} {many}."
        return self._recompose(parts, delta, unit=whole, note=note, not_protected=still)

    def at(self, delta: float) -> Guarantee:
        """Return the same guarantee stated at another delta."""
        return self._recompose(self._parts(), delta)

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

    def _recompose(
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
        """Return the guarantee as one plain sentence; notes, what stays open and the claim follow."""
        if self.unused:
            text = "No record is used: nothing that anybody sees depends on one"
        elif not self.private:
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
            text += f", which {strength(self.epsilon)}; protected from {_TRUST[self.trust]}; "
            text += f"this {_BASES[self.basis]}"
        parts = [text, self.note]
        if self.not_protected:
            parts.append(f"Not protected: {'; '.join(self.open_to_all)}")
        if self.claim is not None:
            parts.append(self.claim.sentence())
        return _sentences(*parts)

    def brief(self) -> str:
        """Return epsilon, unit and trust in a few words."""
        return brief(self.epsilon, self.delta, self.unit, self.trust)

    def table(self) -> list[tuple[str, str]]:
        """Return rows of (what, value) for a table."""
        rows = [
            ("epsilon", _number(self.epsilon)),
            ("delta", _number(self.delta)),
            ("in words", "no record is used" if self.unused else strength(self.epsilon)),
            ("unit", _UNITS[self.unit]),
            ("protected from", _TRUST[self.trust] if self.private else "nobody"),
            ("span", _SPANS[self.span]),
            ("basis", _BASES[self.basis]),
        ]
        rows += [("not protected", words) for words in self.open_to_all]
        rows += [("release", f"{count} x {release.describe()}") for release, count in self.releases]
        if self.note:
            rows.append(("note", self.note))
        if self.claim is not None:
            rows.append(("paper", self.claim.sentence()))
        return rows

    def to_json(self) -> str:
        """Return the guarantee as JSON, as ``schemas/guarantee.schema.json`` describes it.

        Infinity is the word "inf". What `sentence` and `strength` say stands beside the numbers.
        """
        record = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        record["releases"] = [[release.to_dict(), count] for release, count in self.releases]
        return dumps({"version": 1, **record, "sentence": self.sentence()})

    def to_dp_event(self) -> Any:
        """Return the guarantee as an event that the accountants of dp-accounting take in.

        Laplace and Gaussian noise, discrete or not, are themselves. Any other release of a finite
        epsilon becomes discrete Laplace noise on a bit, whose loss is that of a flipped bit: no such
        release exceeds it, and the event of a flipped bit itself is miscounted by dp-accounting 0.6.
        What has only a delta becomes an unsupported event, which every accountant refuses, and what
        protects nothing one that is not private. The relation of neighbours to account for is
        ``ADD_OR_REMOVE_ONE``: a changed record counts as one that comes or goes.

        Examples
        --------
        >>> from tacit.privacy import GaussianRelease, compose
        >>> scope = {"unit": "reward", "trust": "central", "span": "run"}
        >>> compose([(GaussianRelease(scale=5.0), 3)], delta=1e-6, **scope).to_dp_event()
        SelfComposedDpEvent(event=GaussianDpEvent(noise_multiplier=5.0), count=3)
        """
        from tacit.privacy.dp_events import event_of

        return event_of(self)

    @classmethod
    def from_json(cls, text: str) -> Guarantee:
        """Return the guarantee that `to_json` wrote."""
        record = json.loads(text)
        version = record.pop("version", None)
        require(cls.__name__, "version", "== 1", version == 1, version)
        record.pop("sentence", None)
        claim = record.pop("claim")
        if claim is not None:
            claim = Claim(**claim | {name: number(claim[name]) for name in ("epsilon", "delta")})
        releases = tuple((release_from_dict(r), int(n)) for r, n in record.pop("releases"))
        record |= {name: number(record[name]) for name in ("epsilon", "delta")}
        record["not_protected"] = tuple(record["not_protected"])
        return cls(**record, claim=claim, releases=releases)


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
    not_protected: tuple[str, ...] | None = None,
) -> Guarantee:
    """Return the guarantee of releases that all depend on the same record.

    Where a record touches only one of several releases (parallel composition), compose that one.

    Parameters
    ----------
    releases : sequence of (Release, int)
        Each release with the number of times it is made.
    delta : float
        0 adds up the pure epsilons; else privacy-loss distributions are composed.
    unit, trust, span, basis, claim, note, pooled, not_protected
        As in `Guarantee`. If no finite epsilon holds at `delta`, the basis becomes ``"none"``.
    """
    parts = tuple((release, int(count)) for release, count in releases)
    epsilon = composed_epsilon(parts, delta)
    scope: dict[str, Any] = {"unit": unit, "trust": trust, "span": span, "claim": claim}
    scope |= {"pooled": pooled, "not_protected": not_protected}
    if math.isinf(epsilon):
        least = certain_loss(parts)
        floor = f": it is at least {least:.3g} whatever epsilon" if least > delta else ""
        why = f"{_NO_EPSILON} {delta:g}{floor}"
        return Guarantee.none(_sentences(note, why), releases=parts, **scope)
    return Guarantee(epsilon=epsilon, delta=delta, basis=basis, note=note, releases=parts, **scope)


def strength(epsilon: float) -> str:
    """Return what an epsilon does to a record, in words.

    The measure is how far a suspicion of 50% can grow: to 52% at 0.1, 73% at 1, 95% at 3, 99.995% at
    10. Up to 0.1 a record is hidden almost wholly, up to 1 well, up to 3 it is blurred, up to 10
    hardly hidden; beyond, nothing is.

    Examples
    --------
    >>> strength(1.0), strength(50.0)
    ('hides it well', 'hides nothing')
    """
    require("strength", "epsilon", ">= 0", epsilon >= 0, epsilon)
    if epsilon == 0:
        return "hides it wholly"
    return next(words for most, words in _SIZES if epsilon <= most)


def brief(epsilon: float, delta: float, unit: str, trust: str) -> str:
    """Return what a table has room for.

    Examples
    --------
    >>> brief(1.0, 0.0, "reward", "local"), brief(math.inf, 0.0, "reward", "local")
    ('epsilon 1 a reward, local', 'none')
    >>> brief(0.0, 0.0, "user", "local")
    'no record is used'
    """
    if math.isinf(epsilon):
        return "none"
    if epsilon == 0 and delta == 0:
        return "no record is used"
    failing = f", delta {delta:g}" if delta else ""
    return f"epsilon {epsilon:.4g}{failing} {_article(unit)}, {trust}"


def _article(unit: str) -> str:
    return f"{'an' if unit == 'agent' else 'a'} {unit}"


def _plural(unit: str, count: int) -> str:
    if count == 1:
        return unit
    return "losses" if unit == "loss" else f"{unit}s"


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
