"""One report for one decision, drawn once; and what a device is willing to spend in all."""

from __future__ import annotations

import math
import os
from _thread import allocate_lock

from tacit.device.channel import Channel, is_number, require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tacit.device.channel import Instructions, Value

# Whole units of 2^-40, exact in a double up to an epsilon of 8,192.
_UNIT = 2.0**40
_MOST = 2**53


class Reporter:
    """What answers for one decision on the device.

    Everything about the instructions is checked here, before any reward is seen. Afterwards no
    reward raises, and the first call of `report` fixes the report, until a reward replaces it.

    Parameters
    ----------
    instructions : dict
        What the server asks for, as in ``schemas/instructions.schema.json``.
    id : str
        The decision's identity, 1 to 128 characters.
    max_epsilon : float or None
        The most that this device spends on one report. None for no bound, which is what the
        reward itself needs (trust ``central``).
    report_at : float, optional
        When the report is due, in seconds since 1970 (UTC). Kept for whoever sends it: neither
        whether nor when a report is sent may depend on the reward.
    random : callable
        Returns as many random bytes as asked for; the operating system's unless given.

    Attributes
    ----------
    epsilon : float
        What the report costs, computed from the integers of the instructions.
    charged : bool
        Whether a `Budget` has paid for it.

    Examples
    --------
    >>> from tacit.device import instructions
    >>> reporter = Reporter(instructions.k_ary(2.0, 3), id="d-1", max_epsilon=2.0)
    >>> sorted(reporter.report("not a number"))
    ['id', 'v', 'value']
    >>> Reporter(instructions.k_ary(2.0, 3), id="d-1", max_epsilon=1.0)
    Traceback (most recent call last):
    ValueError: Reporter: expected epsilon <= max_epsilon = 1.0, got 1.9999999999981846
    """

    __slots__ = (
        "_channel",
        "_lock",
        "_random",
        "_value",
        "charged",
        "id",
        "instructions",
        "report_at",
    )

    def __init__(
        self,
        instructions: Instructions,
        *,
        id: str,
        max_epsilon: float | None,
        report_at: float | None = None,
        random: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self._channel = Channel(instructions)
        named = isinstance(id, str) and 1 <= len(id) <= 128
        require("Reporter", "id of 1 to 128 characters", named, id)
        bounded = max_epsilon is None or (is_number(max_epsilon) and max_epsilon > 0)
        require("Reporter", "max_epsilon > 0 or None", bounded, max_epsilon)
        within = max_epsilon is None or self.epsilon <= max_epsilon
        require("Reporter", f"epsilon <= max_epsilon = {max_epsilon}", within, self.epsilon)
        timed = report_at is None or (is_number(report_at) and math.isfinite(report_at))
        require("Reporter", "report_at a finite number or None", timed, report_at)
        self.id, self.instructions, self.report_at = id, instructions, report_at
        self.charged = False
        self._random, self._lock = random, allocate_lock()
        self._value: Value | None = None

    @property
    def epsilon(self) -> float:
        """What the report costs."""
        return self._channel.epsilon

    @property
    def default(self) -> float:
        """The reward that stands for a missing one."""
        return self._channel.default

    @property
    def fixed(self) -> bool:
        """Whether the report has been drawn."""
        return self._value is not None

    def report(self, reward: object = None) -> dict[str, Any]:
        """Return the report, drawn for this reward if it is the first call, else as it was.

        Parameters
        ----------
        reward : object
            A number. Whatever is none, or is not finite, counts as the default reward.

        Returns
        -------
        dict
            For JSON, as in ``schemas/report.schema.json``.
        """
        with self._lock:
            if self._value is None:
                self._value = self._channel.draw(reward, self._random)
        value = list(self._value) if isinstance(self._value, list) else self._value
        return {"v": 1, "id": self.id, "value": value}

    def replace(self, reward: object) -> dict[str, Any]:
        """Draw the report anew for a reward that came in time, and return it; never once it was sent.

        Its random bytes are new too: with the old ones, two reports that somebody saw in the storage would
        together tell the reward. The first does not depend on the reward, so both tell as much as one.

        Parameters
        ----------
        reward : object
            As in `report`.
        """
        with self._lock:
            self._value = self._channel.draw(reward, self._random)
        return self.report()

    def to_json(self) -> str:
        """Return all there is to keep, for `from_json`; the reward is not in it, the report is.

        If no report is drawn yet, it draws that of the default reward: what is kept looks the same whether or
        not a reward came. Store it when the decision is shown, and again after `replace`.
        """
        import json

        self.report()
        with self._lock:
            kept = {
                "v": 1,
                "id": self.id,
                "instructions": self.instructions,
                "report_at": self.report_at,
                "charged": self.charged,
                "value": self._value,
            }
        return json.dumps(kept, separators=(",", ":"))

    @classmethod
    def from_json(
        cls, text: str, *, max_epsilon: float | None, random: Callable[[int], bytes] = os.urandom
    ) -> Reporter:
        """Return the reporter that was kept, with the report that it had.

        Parameters
        ----------
        text : str
            What `to_json` returned.
        max_epsilon, random
            As for a new one: what a device is willing to spend is not left to what was stored.
        """
        import json

        kept = json.loads(text)
        names = {"v", "id", "instructions", "report_at", "charged", "value"}
        whole = isinstance(kept, dict) and set(kept) == names and kept["v"] == 1
        require("Reporter", "what to_json returned", whole, text)
        reporter = cls(
            kept["instructions"],
            id=kept["id"],
            max_epsilon=max_epsilon,
            report_at=kept["report_at"],
            random=random,
        )
        reporter.charged = kept["charged"] is True
        possible = kept["value"] is None or reporter._channel.possible(kept["value"])
        require("Reporter", "a value that the instructions allow", possible, kept["value"])
        reporter._value = kept["value"]
        return reporter

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("Reporter: expected to_json, got a copy, which could report another value")

    def __repr__(self) -> str:
        return f"Reporter(id={self.id!r}, epsilon={self.epsilon:g}, fixed={self.fixed})"


class Budget:
    """What a device spends in all, counted on the device; it refuses on its own.

    A report is charged when its decision is shown, since from then on it will be sent, and never
    refunded. Amounts are whole numbers of 2^-40, each charge rounded up.

    Parameters
    ----------
    max_epsilon : float or None
        The most to spend, at most 8,192. None counts and never refuses.

    Examples
    --------
    >>> from tacit.device import Reporter, instructions
    >>> budget = Budget(1.5)
    >>> asked = instructions.randomized_response(1.0)
    >>> first, second = (Reporter(asked, id=id, max_epsilon=1.0) for id in ("d-1", "d-2"))
    >>> budget.charge(first), budget.charge(first), budget.charge(second)
    (True, True, False)
    >>> round(budget.spent, 9)
    1.0
    """

    __slots__ = ("_limit", "_lock", "_units")

    def __init__(self, max_epsilon: float | None) -> None:
        most = _MOST / _UNIT
        fits = max_epsilon is None or (is_number(max_epsilon) and 0 <= max_epsilon <= most)
        require("Budget", "max_epsilon between 0 and 8192, or None", fits, max_epsilon)
        self._limit = None if max_epsilon is None else math.floor(max_epsilon * _UNIT)
        self._units = 0
        self._lock = allocate_lock()

    @property
    def spent(self) -> float:
        """The epsilon spent so far; infinite once a reward itself was sent."""
        return self._units / _UNIT if self._units <= _MOST else math.inf

    def charge(self, reporter: Reporter) -> bool:
        """Charge for a decision that is about to be shown; False if there is not enough left.

        The same reporter is charged once. Store the budget before the reporter: a crash between
        the two then charges twice, and never not at all.
        """
        with self._lock:
            if reporter.charged:
                return True
            local = reporter.epsilon < math.inf
            units = self._units + (math.ceil(reporter.epsilon * _UNIT) if local else _MOST + 1)
            if self._limit is not None and units > self._limit:
                return False
            self._units = units
            reporter.charged = True
            return True

    def to_json(self) -> str:
        """Return all there is to keep, for `from_json`."""
        import json

        with self._lock:
            return json.dumps({"v": 1, "units": self._units}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str, max_epsilon: float | None) -> Budget:
        """Return the budget that was kept, with what it had spent."""
        import json

        kept = json.loads(text)
        whole = isinstance(kept, dict) and set(kept) == {"v", "units"} and kept["v"] == 1
        whole = whole and type(kept["units"]) is int and kept["units"] >= 0
        require("Budget", "what to_json returned", whole, text)
        budget = cls(max_epsilon)
        budget._units = kept["units"]
        return budget

    def __repr__(self) -> str:
        limit = "None" if self._limit is None else f"{self._limit / _UNIT:g}"
        return f"Budget({limit}, spent={self.spent:g})"
