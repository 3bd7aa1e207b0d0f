"""What travels over HTTP, as types: parsing, limits and the OpenAPI description follow from them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from tacit.serving.description import LONGEST, NAME

Name = Annotated[str, Meta(pattern=NAME)]
Text = Annotated[str, Meta(min_length=1, max_length=LONGEST)]
Identity = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,64}$(?!\n)")]
Mode = Literal["learn", "frozen", "shadow", "off"]
Amount = Annotated[float, Meta(gt=0, le=1e6)]
Options = Annotated[list[Text], Meta(min_length=1, max_length=10_000)]
Budget = dict[Literal["day", "month", "year", "lifetime", "ever"], Amount]
Edges = Annotated[list[tuple[Text, Text]], Meta(max_length=1_000_000)]
Vector = Annotated[
    list[Annotated[float, Meta(ge=-1e9, le=1e9)]], Meta(min_length=1, max_length=4096)
]


class Reward(Struct, forbid_unknown_fields=True, frozen=True):
    """What a reward is, and when a device reports it."""

    kind: Literal["binary", "bounded"] = "bounded"
    default: Annotated[float, Meta(ge=0, le=1)] = 0.0
    """Stands for a missing reward."""
    report_after: Annotated[float, Meta(ge=0, le=31_536_000)] = 60.0
    """Seconds after a decision is shown."""


class ExperimentRequest(Struct, forbid_unknown_fields=True):
    """A new experiment: the same fields as in a TOML file."""

    name: Name
    policy: dict[str, Any]
    """``name`` and parameters."""
    options: Options | None = None
    """Of the arms setting; elsewhere they come with each decision."""
    reward: Reward = Reward()
    budget: Budget | None = None
    """Epsilon for one person, by calendar window (UTC)."""
    mode: Mode = "learn"
    explore: Annotated[float, Meta(ge=0, lt=1)] = 0.0
    baseline: Text | None = None
    """The option of the modes shadow and off; the first unless given."""
    grace: Annotated[float, Meta(ge=0, le=31_536_000)] = 60.0
    retention: Annotated[float, Meta(ge=0, le=3_153_600_000)] = 2_592_000.0
    max_open: Annotated[int, Meta(ge=1, le=10_000_000)] = 100_000
    people: Annotated[list[Text], Meta(max_length=100_000)] | None = None
    edges: Edges | None = None
    """Who is joined to whom, for policies that share among people."""


class Change(Struct, forbid_unknown_fields=True):
    """What is to change; what is not given stays."""

    mode: Mode | UnsetType = UNSET
    add_options: Options | UnsetType = UNSET
    retire_options: Options | UnsetType = UNSET
    budget: Budget | UnsetType = UNSET
    add_people: Annotated[dict[Text, list[Text]], Meta(max_length=1000)] | UnsetType = UNSET
    """New people, each with those they are joined to."""
    edges: Edges | UnsetType = UNSET
    """Who is joined to whom from now on, instead of all that was before."""


class DecisionRequest(Struct, forbid_unknown_fields=True):
    """Decide, for somebody perhaps, among some options perhaps."""

    id: Identity | None = None
    person: Text | None = None
    eligible: Options | None = None
    contexts: Annotated[dict[Text, Vector], Meta(min_length=1, max_length=1000)] | None = None
    shown: bool = False


class Decided(Struct):
    """What was decided; `instructions` is null where no report is asked for."""

    id: str
    option: str
    probability: float
    report_at: float | None
    instructions: dict[str, Any] | None
    reason: str


class Shown(Struct):
    """A decision that somebody saw; from here on its device reports."""

    id: str
    report_at: float | None
    reason: str


class Report(Struct, forbid_unknown_fields=True):
    """What a device sends: see ``schemas/report.schema.json``."""

    v: Literal[1]
    id: Identity
    value: (
        float
        | Annotated[list[Literal[0, 1]], Meta(max_length=1024)]
        | Annotated[dict[Text, float], Meta(max_length=10_000)]
    )


class Receipt(Struct):
    """What became of a report."""

    id: str
    status: Literal["learned", "held", "repeated", "late", "refused"]
    reason: str = ""


class Receipts(Struct):
    """What became of several reports, each on its own."""

    reports: list[Receipt]


class OptionState(Struct):
    """An option, and whether it is still chosen."""

    name: str
    retired: bool


class Described(Struct):
    """The public facts of an experiment: what it does, what it protects, what a device must do."""

    name: str
    policy: dict[str, Any]
    setting: str
    trust: str
    options: list[OptionState]
    mode: str
    reward: Reward
    grace: float
    retention: float
    explore: float
    budget: dict[str, float]
    guarantee: dict[str, Any]
    sentence: str
    """What is protected, and what is not, in words."""
    epsilon_per_report: float | None
    instructions: dict[str, Any] | None
    """What a device is told; null where that depends on the decision."""
    secure: bool
    version: int
    """Grows with every change of the mode, the options, the people or the budgets."""


class Experiments(Struct):
    """The public facts of all experiments."""

    experiments: list[Described]


class Statistic(Struct):
    """One option in released numbers."""

    option: str
    retired: bool
    decided: int
    shown: int
    learned: int
    silent: int | None
    """Null where it is protected who answered."""
    estimate: float | None
    low: float | None
    high: float | None


class Statistics(Struct):
    """Released values only; intervals hold at all times and include the noise."""

    experiment: str
    rounds: int
    open: int
    late: int | None
    missing_share: float | None
    """Of the reports that were due, how many did not come in time; null where that is protected."""
    shift_by_lies: float | None
    """How far an estimate may be off if one in a hundred of its reports lies; null where none is made."""
    confidence: float
    options: list[Statistic]


class Creation(Struct, omit_defaults=True):
    """What became of an experiment that was to be made."""

    name: str
    status: Literal["compiling", "ready", "failed"]
    detail: str = ""


class Health(Struct, omit_defaults=True):
    """Whether the process, and its store, can be used."""

    status: Literal["up", "ready"]
    experiments: int | UnsetType = UNSET
    detail: str = ""


class FlagContext(Struct):
    """What OpenFeature's protocol sends: who asks, under ``targetingKey``, and what else is known."""

    context: dict[str, Any] = field(default_factory=dict)


class Flag(Struct):
    """An experiment as a flag of OpenFeature: the decision, and what a device needs in `metadata`."""

    key: str
    value: str
    variant: str
    reason: str
    metadata: dict[str, str | float | None]


class FlagProblem(Struct, rename="camel"):
    """Why there is no decision for a flag, as OpenFeature's protocol says it."""

    key: str
    error_code: str
    error_details: str


class Flags(Struct):
    """All flags, each decided or not."""

    flags: list[dict[str, Any]]


class Problem(Struct, omit_defaults=True):
    """What went wrong, in one sentence (``application/problem+json``)."""

    title: str
    status: int
    detail: str
    reason: str = ""
