"""The checks that every policy must pass, for policies of one's own too: ``tacit check my_module:MyPolicy``.

A check is a function of a `Subject`, a policy in an environment. It returns nothing when all is well, raises
``AssertionError`` with what is wrong, and `NotApplicableError` where it has nothing to look at. The test
suite runs the same functions on every policy that Tacit has.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.core.arrays import leaves, load, save
from tacit.core.kernels import INTERPRETED
from tacit.core.policy import AnyEnvironment, AnyPolicy
from tacit.core.registry import build
from tacit.core.tapes import Tape, secure_tape, seeded_tape
from tacit.simulation.audits import audit_policy
from tacit.simulation.run import checkpoints_of, simulate

ALPHA = 1e-4
"""How often the audit refutes a true claim by chance."""


class NotApplicableError(Exception):
    """A check has nothing to look at; the message says why."""


class Run(NamedTuple):
    """What one repetition left behind."""

    state: Any
    trace: Any
    tape: Tape


class Finding(NamedTuple):
    """What a check found."""

    check: str
    verdict: str
    """``passed``, ``failed`` or ``not applicable``."""
    words: str


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A policy in an environment, to be checked."""

    policy: AnyPolicy
    environment: AnyEnvironment
    horizon: int = 60
    runs: int = 4000
    """Repetitions of the audit on each table."""

    def play(self, **how: Any) -> Run:
        """Play one repetition."""
        return play(self.policy, self.environment, self.horizon, **how)


def play(
    policy: AnyPolicy,
    environment: AnyEnvironment,
    horizon: int,
    *,
    table: Any = None,
    tape: Tape | None = None,
    seed: int = 5,
    chunk: int | None = None,
) -> Run:
    """Play one repetition, recording everything, `chunk` rounds at a time."""
    table = environment.table(seed, 0, horizon) if table is None else table
    tape = seeded_tape(seed, 0) if tape is None else tape
    state = policy.start(table)
    trace = environment.trace(horizon, checkpoints_of(horizon, 10), record=True)
    for first in range(0, horizon, chunk or horizon):
        last = min(first + (chunk or horizon), horizon)
        policy.play(state, table, tape, trace, first, last)
    return Run(state, trace, tape)


def arrays(value: Any, name: str = "") -> dict[str, NDArray[Any]]:
    """Return every array of a nested ``NamedTuple`` by its dotted name; other objects have none."""
    found = {
        f"{name}.{part}" if part else name: np.array(leaf if not isinstance(leaf, list) else ())
        for part, leaf in leaves(value)
    }
    return {part: array for part, array in found.items() if array.dtype != object}


def require_same(one: Any, other: Any, what: str) -> None:
    """Raise ``AssertionError`` unless two tuples of arrays are equal bit for bit."""
    left, right = arrays(one), arrays(other)
    if left.keys() != right.keys():
        raise AssertionError(f"{what}: {sorted(left)} against {sorted(right)}")
    for name, array in left.items():
        if array.dtype != right[name].dtype or array.tobytes() != right[name].tobytes():
            raise AssertionError(f"{what}: {name.lstrip('.')} differs")


def same_seed_same_run(subject: Subject) -> None:
    """Ask that the same seed gives the same run."""
    require_same(subject.play(), subject.play(), "two runs of one seed")


def another_seed_another_run(subject: Subject) -> None:
    """Ask that another seed gives another run."""
    one, two = subject.play(seed=5).trace, subject.play(seed=6).trace
    right = arrays(two)
    if all(array.tobytes() == right[name].tobytes() for name, array in arrays(one).items()):
        raise AssertionError("seeds 5 and 6 give the same trace")


def the_table_is_left_alone(subject: Subject) -> None:
    """Ask that playing changes nothing of the table."""
    table = subject.environment.table(1, 0, subject.horizon)
    before = {name: array.copy() for name, array in arrays(table).items()}
    subject.play(table=table, tape=seeded_tape(1))
    for name, array in arrays(table).items():
        if array.tobytes() != before[name].tobytes():
            raise AssertionError(f"the table's {name.lstrip('.')} was changed")


def chunked_equals_whole(subject: Subject) -> None:
    """Ask that rounds played in pieces are the rounds played at once."""
    whole = subject.play()
    for chunk in (1, 7, max(1, subject.horizon - 1)):
        require_same(whole, subject.play(chunk=chunk), f"{chunk} rounds at a time")


def any_number_of_threads(subject: Subject) -> None:
    """Ask that repetitions side by side are the repetitions one after the other."""
    one, four = (
        simulate(
            subject.policy,
            subject.environment,
            horizon=subject.horizon,
            repetitions=5,
            seed=9,
            threads=threads,
            record=True,
        )
        for threads in (1, 4)
    )
    for left, right in zip(one.traces, four.traces, strict=True):
        require_same(left, right, "a trace on four threads")
    for name in one.measures:
        if one.measures[name].tobytes() != four.measures[name].tobytes():
            raise AssertionError(f"{name} depends on the number of threads")


def saved_and_restored(subject: Subject) -> None:
    """Ask that a state saved and loaded in the middle goes on the same."""
    policy, environment, horizon = subject.policy, subject.environment, subject.horizon
    whole = subject.play()
    table, half = environment.table(5, 0, horizon), horizon // 2 + 1
    state = policy.start(table)
    if not (isinstance(state, tuple) and hasattr(state, "_fields")):
        raise NotApplicableError("its state is not a NamedTuple of arrays and cannot be saved")
    trace = environment.trace(horizon, checkpoints_of(horizon, 10), record=True)
    policy.play(state, table, seeded_tape(5), trace, 0, half)
    with tempfile.TemporaryDirectory() as folder:
        save(Path(folder) / "state.npz", state, {"rounds": half})
        restored, _ = load(Path(folder) / "state.npz", policy.start(table))
    again = environment.table(5, 0, horizon)
    policy.play(restored, again, seeded_tape(5), trace, half, horizon)
    require_same(restored, whole.state, "the state after a restart")
    require_same(trace, whole.trace, "the trace after a restart")


def one_round_and_finite(subject: Subject) -> None:
    """Ask that every number stays a number after one round, two rounds and all of them."""
    public = subject.environment.public_parameters
    for horizon in (1, 2, subject.horizon):
        fields = {f.name for f in dataclasses.fields(subject.policy) if f.init}  # type: ignore[arg-type]
        changed = {k: v for k, v in public(horizon).items() if k in fields and k == "horizon"}
        try:
            policy = dataclasses.replace(subject.policy, **changed)  # type: ignore[type-var]
            run = play(policy, subject.environment, horizon)
        except ValueError as error:
            if "horizon" in str(error):
                continue
            raise
        for name, array in arrays(run.trace).items():
            if not np.isfinite(np.asarray(array, dtype=float)).all():
                raise AssertionError(f"{name.lstrip('.')} is not finite after {horizon} rounds")


def bad_parameters_are_refused(subject: Subject) -> None:
    """Ask that an unknown parameter and a negative number are refused by name."""
    kind: Any = type(subject.policy)
    given = {f.name: getattr(subject.policy, f.name) for f in dataclasses.fields(kind) if f.init}
    try:
        build(kind, {}, {**given, "no_such_parameter": 1})
    except ValueError:
        pass
    else:
        raise AssertionError("an unknown parameter is accepted")
    for name in ("n_arms", "n_users", "n_states", "n_options", "epsilon"):
        if name in given:
            try:
                dataclasses.replace(subject.policy, **{name: -1})  # type: ignore[type-var]
            except ValueError as error:
                if name not in str(error):
                    raise AssertionError(f"{name}=-1 is refused without its name") from None
            else:
                raise AssertionError(f"{name}=-1 is accepted")


def noise_is_drawn_where_privacy_is_claimed(subject: Subject) -> None:
    """Ask that who claims privacy reads noise from the tape, or does not look at rewards at all."""
    guarantee = subject.policy.guarantee(subject.horizon)
    if not guarantee.private:
        raise NotApplicableError("it claims no privacy")
    draws = int(subject.play().tape.reads[1])
    if draws == 0 and guarantee.epsilon > 0:
        raise AssertionError(f"it claims epsilon {guarantee.epsilon:g} and drew no noise")


def no_noise_position_is_read_twice(subject: Subject) -> None:
    """Ask that every draw of noise has a position of its own: shared noise cancels out."""
    draws = int(subject.play().tape.reads[1])
    if draws == 0:
        raise NotApplicableError("it draws no noise")
    limit = 4 * draws + 64
    rows = subject.play(tape=seeded_tape(5, 0, positions=limit)).tape.positions
    seen = rows[rows[:, 0] >= 0]
    if len(seen) != len(np.unique(seen, axis=0)):
        raise AssertionError("a position of the tape is read for two values")


def secure_numbers_or_refused(subject: Subject) -> None:
    """Ask that a secure tape gives numbers, or is refused."""
    if not subject.policy.secure:
        try:
            subject.play(tape=secure_tape())
        except ValueError:
            return
        raise AssertionError("it is not secure and plays on a secure tape")
    run = subject.play(tape=secure_tape(log=500))
    for name, array in (arrays(run.trace) | arrays(run.state)).items():
        if np.isnan(np.asarray(array, dtype=float)).any():
            raise AssertionError(f"{name.lstrip('.')} is not a number on a secure tape")


def the_audit_does_not_refute_it(subject: Subject) -> None:
    """Ask that neighbouring tables cannot be told apart better than the guarantee allows."""
    guarantee = subject.policy.guarantee(subject.horizon)
    if not guarantee.private or math.isinf(guarantee.epsilon):
        raise NotApplicableError("it claims no privacy")
    found = audit_policy(
        subject.policy,
        subject.environment,
        horizon=subject.horizon,
        runs=subject.runs,
        alpha=ALPHA,
    )
    if found.result.refuted:
        raise AssertionError(found.sentence())


def compiled_equals_interpreted(subject: Subject) -> None:
    """Ask that compiled kernels do to the bit what the same functions do as plain Python."""
    if INTERPRETED:
        raise NotApplicableError("numba is switched off")
    kinds = (type(subject.policy), type(subject.environment))
    if any(k.__module__ == "__main__" or "<locals>" in k.__qualname__ for k in kinds):
        raise NotApplicableError("another process cannot import it")
    done = subprocess.run(
        [sys.executable, "-m", "tacit.simulation.policy_checks"],
        input=pickle.dumps(sys.path) + pickle.dumps(subject),
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise AssertionError(f"it does not run without numba: {' '.join(last)}")
    if done.stdout.decode().strip() != digest(subject.play()):
        raise AssertionError("compiled and interpreted runs differ")


def digest(run: Run) -> str:
    """Return a fingerprint of everything a run leaves behind."""
    total = hashlib.sha256()
    for name, array in (arrays(run.state) | arrays(run.trace, "trace")).items():
        total.update(name.encode() + array.tobytes())
    total.update(run.tape.reads.tobytes())
    return total.hexdigest()


CHECKS: Mapping[str, Callable[[Subject], None]] = {
    each.__name__.replace("_", " "): each
    for each in (
        bad_parameters_are_refused,
        same_seed_same_run,
        another_seed_another_run,
        the_table_is_left_alone,
        chunked_equals_whole,
        any_number_of_threads,
        saved_and_restored,
        one_round_and_finite,
        noise_is_drawn_where_privacy_is_claimed,
        no_noise_position_is_read_twice,
        secure_numbers_or_refused,
        compiled_equals_interpreted,
        the_audit_does_not_refute_it,
    )
}
"""Every check by its name."""


def check_policy(subject: Subject) -> Iterator[Finding]:
    """Yield what every check finds, as soon as it is found.

    Examples
    --------
    >>> from tacit.arms import UCB1, Bernoulli
    >>> subject = Subject(policy=UCB1(n_arms=2), environment=Bernoulli(means=(0.3, 0.7)))
    >>> {finding.verdict for finding in check_policy(subject)} <= {"passed", "not applicable"}
    True
    """
    for name, check in CHECKS.items():
        try:
            check(subject)
        except NotApplicableError as reason:
            yield Finding(name, "not applicable", str(reason))
        except AssertionError as fault:
            yield Finding(name, "failed", str(fault))
        except Exception as fault:
            yield Finding(name, "failed", f"{type(fault).__name__}: {fault}")
        else:
            yield Finding(name, "passed", "")


def _print_digest() -> None:
    """Play the subject that comes on standard input and print its fingerprint."""
    sys.path[:] = pickle.load(sys.stdin.buffer)  # first, so that its modules are found
    subject = pickle.load(sys.stdin.buffer)
    print(digest(subject.play()))


if __name__ == "__main__":
    _print_digest()
