"""``tacit guarantee``, ``tacit mechanisms`` and ``tacit audit``: what is protected, and is it true."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli.arguments import Horizon, Json, Seed, require_picture
from tacit.cli.output import show
from tacit.core.json_codec import dumps
from tacit.core.progress import progress_bar
from tacit.core.specs import parse_spec
from tacit.core.text import as_text

app = typer.Typer()


@app.command()
def guarantee(
    target: Annotated[str, typer.Argument(help="A policy or mechanism: NAME:parameter=value,...")],
    environment: Annotated[str | None, typer.Option(help="Fills the policy's parameters.")] = None,
    horizon: Horizon = 10_000,
    rewards: Annotated[
        int | None, typer.Option(min=1, help="Rewards of one person, to say what she loses.")
    ] = None,
    delta: Annotated[float, typer.Option(help="The delta of composed guarantees.")] = 1e-6,
    picture: Annotated[
        Path | None, typer.Option(help="Write the curve of epsilon against rounds (PNG or SVG).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what is protected, from whom, for how long, at what epsilon, and what is not.

    Example: `tacit guarantee sw-klucb-cf:epsilon=1 --horizon 1000 --rewards 50`
    """
    from tacit.core.registry import build_pair
    from tacit.privacy.auditing.mechanisms import mechanism_kinds
    from tacit.simulation.guarantees import horizons, person, spans

    require_picture(picture)
    if parse_spec(target)["name"] in mechanism_kinds():
        chosen = _mechanism(target, environment)
    else:
        chosen, _ = build_pair(target, environment, horizon)
    stated = chosen.guarantee(horizon)
    rows = spans(chosen, horizon, delta, records=rewards)
    curve = horizons(chosen, horizon, delta) if as_json or picture is not None else []
    whole = [] if rewards is None else [person(chosen, horizon, rewards, d) for d in (0.0, delta)]
    if picture is not None:
        from tacit.simulation.plots.privacy import draw_curve

        draw_curve(curve, picture, title=repr(chosen), delta=delta)
    if as_json:
        record = {
            "policy": repr(chosen),
            "guarantee": json.loads(stated.to_json()),
            "sentence": stated.sentence(),
            "spans": rows,
            "curve": [{"rounds": m, "epsilon": e} for m, e in curve],
        }
        if rewards is not None:
            record["person"] = [json.loads(each.to_json()) for each in whole]
        print(dumps(record))
        return
    print(stated.sentence())
    if rewards is not None:
        print(f"\n{_loses(rewards, whole[0], whole[1])}")
    print()
    show(rows, False)
    if picture is not None:
        print(f"\n{picture}")


def _loses(rewards: int, pure: Any, loose: Any) -> str:
    """Return what one person loses, at delta 0 and, where that is less, at a delta."""
    from tacit.privacy import strength

    records = f"{rewards:,} reward{'' if rewards == 1 else 's'}"
    if pure.unused:
        return f"One person with {records} loses nothing: no record is used."
    said = []
    if pure.private:
        said.append(f"epsilon {as_text(pure.epsilon)}, which {strength(pure.epsilon)}")
    if loose.private and as_text(loose.epsilon) != as_text(pure.epsilon):
        said.append(
            f"epsilon {as_text(loose.epsilon)} at delta {loose.delta:g}, "
            f"which {strength(loose.epsilon)}"
        )
    if not said:
        return f"One person with {records} is not protected at all."
    return f"One person with {records} loses {'; or '.join(said)}."


class _Sent:
    """A mechanism used once for every message of a person, as something that has a guarantee."""

    rewards_per_round = 1

    def __init__(self, mechanism: Any) -> None:
        self.mechanism = mechanism

    def __repr__(self) -> str:
        return repr(self.mechanism)

    def guarantee(self, horizon: int) -> Any:
        from tacit.privacy import compose

        return compose(
            self.mechanism.releases,
            delta=getattr(self.mechanism, "delta", 0.0),
            **self.mechanism.scope,
        )


def _mechanism(target: str, environment: str | None) -> Any:
    from tacit.privacy.auditing.mechanisms import build_mechanism

    spec = parse_spec(target)
    _require_no_environment(spec["name"], environment)
    return _Sent(build_mechanism(spec.pop("name"), spec))


@app.command()
def mechanisms(as_json: Json = False) -> None:
    """List the mechanisms: what each sends, its variance at epsilon 1, and whether it is exact.

    Example: `tacit mechanisms`
    """
    from tacit.privacy.auditing.mechanisms import mechanism_rows

    show(mechanism_rows(), as_json)


@app.command()
def audit(
    context: typer.Context,
    target: Annotated[str, typer.Argument(help="A policy or mechanism: NAME:parameter=value,...")],
    environment: Annotated[
        str | None, typer.Option(help="The environment a policy is audited in.")
    ] = None,
    horizon: Annotated[
        int | None,
        typer.Option(min=1, max=10**15, help="Rounds; by default until something is released."),
    ] = None,
    runs: Annotated[
        int, typer.Option(min=8, help="Repetitions of all rounds on each of the two inputs.")
    ] = 100_000,
    pairs: Annotated[
        int | None,
        typer.Option(
            min=1, help="Neighbouring tables to try; by default 18, and 128 in plain Python."
        ),
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="The claim; by default what is guaranteed.")
    ] = None,
    delta: Annotated[float | None, typer.Option(help="The claim's delta.")] = None,
    alpha: Annotated[
        float, typer.Option(help="Chance of refuting a true claim, between 0 and 1.")
    ] = 0.01,
    secure: Annotated[
        bool, typer.Option("--secure", help="Audit the exact noise that a service draws.")
    ] = False,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact", help="Follow every path of a small game (3 rounds) instead of sampling."
        ),
    ] = False,
    served: Annotated[
        bool,
        typer.Option(
            "--served", help="Play learner, service and clients in combinations of their options."
        ),
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="With --served: few combinations, few games.")
    ] = False,
    seed: Seed = 0,
    picture: Annotated[
        Path | None, typer.Option(help="Draw both output distributions (PNG or SVG).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Try to break a claim of privacy: refuted, or not refuted; never proved.

    Exits with 1 if the claim is refuted, and with 3 if nothing was released and so nothing was tried.
    With --exact a game of a few rounds is enumerated, and epsilon itself is found. With --served the
    learner and the HTTP service are played, with modes, exploration, subsets and both outboxes; example:
    tacit audit klucb-cf:epsilon=1 --served --quick.

    Example: `tacit audit klucb-cf:epsilon=1 --horizon 10 --runs 20000`
    """
    if not 0 < alpha < 1:
        raise ValueError(f"audit: expected alpha in (0, 1), got {alpha}")
    if exact:
        found = _enumerated(context, target, environment, horizon, epsilon, delta)
        print(found.to_json() if as_json else found.sentence())
        _exit_by(found.verdict)
        return
    if quick and not served:
        raise ValueError("--quick is for --served; without it use fewer --runs")
    if served:
        _refuse_given(
            context,
            "--served plays its own games",
            ("environment", "horizon", "pairs", "secure", "picture"),
        )
        chosen = context.get_parameter_source("runs")
        games = runs if chosen is not None and chosen.name == "COMMANDLINE" else 0
        claim = {"epsilon": epsilon, "delta": delta, "alpha": alpha, "seed": seed}
        found = _serve_and_audit(target, claim, games, quick)
        print(found.to_json() if as_json else found.sentence())
        if not as_json:
            print()
            show(found.table(), False)
        _exit_by(found.verdict)
        return
    require_picture(picture)
    claim = {"epsilon": epsilon, "delta": delta, "alpha": alpha}
    claim |= {"runs": runs, "seed": seed, "secure": secure, "pairs": pairs}
    with progress_bar(f"audit of {target.partition(':')[0]}"):
        found = _audited(target, environment, horizon, claim)
    if picture is not None:
        found.result.picture(picture)
    if as_json:
        about = {"pair": found.worst.words, "tried": found.candidates, "pairs": found.among}
        print(dumps({**about, **json.loads(found.result.to_json())}))
    else:
        print(found.sentence())
        if not found.result.refuted and found.untried:
            print(
                f"{found.untried:,} pairs were not tried, and a mistake in one of them would not "
                f"show; --pairs {found.among} tries all."
            )
        if picture is not None:
            print(picture)
    _exit_by(found.result.verdict)


def _exit_by(verdict: str) -> None:
    code = {"refuted": 1, "nothing was released": 3}.get(verdict, 0)
    if code:
        raise typer.Exit(code)


def _enumerated(
    context: typer.Context,
    target: str,
    environment: str | None,
    horizon: int | None,
    epsilon: float | None,
    delta: float | None,
) -> Any:
    from tacit.core.registry import build_pair
    from tacit.privacy.auditing.mechanisms import build_mechanism, mechanism_kinds
    from tacit.simulation.exact_audits import audit_exactly, audit_mechanism_exactly

    sampled = ("runs", "pairs", "alpha", "seed", "secure", "served", "picture")
    _refuse_given(context, "--exact samples nothing", sampled)
    parameters = parse_spec(target)
    name = parameters.pop("name")
    if name in mechanism_kinds():
        _require_no_environment(name, environment)
        mechanism = build_mechanism(name, parameters)
        return audit_mechanism_exactly(mechanism, epsilon=epsilon, delta=delta)
    rounds = 3 if horizon is None else horizon
    policy, place = build_pair(target, environment, rounds)
    return audit_exactly(policy, place, horizon=rounds, epsilon=epsilon, delta=delta)


def _refuse_given(context: typer.Context, why: str, names: tuple[str, ...]) -> None:
    for name in names:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise ValueError(f"{why}; leave out --{name}")


def _serve_and_audit(target: str, claim: Any, games: int, quick: bool) -> Any:
    try:
        from tacit.service.served_audits import audit_served
    except ImportError:
        raise ValueError(
            "--served needs the service and its client: pip install 'tacit[service]'"
        ) from None
    claim |= {"runs": games or (40 if quick else 150), "combinations": 4 if quick else None}
    with progress_bar(f"audit of {target.partition(':')[0]} as it is served") as progress:
        return audit_served(parse_spec(target), **claim, progress=progress)


def _audited(target: str, environment: str | None, horizon: int | None, claim: Any) -> Any:
    from tacit.core.registry import build_pair
    from tacit.privacy.auditing.mechanisms import audit_mechanism, mechanism_kinds
    from tacit.simulation.audits import audit_policy, releasing_horizon

    parameters = parse_spec(target)
    name = parameters.pop("name")
    if name in mechanism_kinds():
        _require_no_environment(name, environment)
        if claim.pop("pairs") is not None:
            raise ValueError(f"{name} is a mechanism, whose pairs are known; leave out --pairs")
        return audit_mechanism(name, parameters, **claim)
    if horizon is None:
        _, place = build_pair(target, environment, 20)
        horizon = releasing_horizon(
            lambda rounds: build_pair(target, environment, rounds)[0],
            place,
            seed=claim["seed"],
        )
    policy, place = build_pair(target, environment, horizon)
    if not policy.compiled:
        print(f"tacit: {policy.name} is plain Python, played one game at a time", file=sys.stderr)
    return audit_policy(policy, place, horizon=horizon, **claim)


def _require_no_environment(name: str, environment: str | None) -> None:
    if environment is not None:
        raise ValueError(f"{name} is a mechanism and needs no environment; leave out --environment")
