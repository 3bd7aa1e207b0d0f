"""Written values become objects by the types of the fields; rules are told to people and machines alike."""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import jsonschema
import pytest

from tacit.arms import Bernoulli, Corruption, GraphFeedback
from tacit.arms.environments.base import ArmsEnvironment
from tacit.core.constraints import Count, Positive, Probability, check, one_of
from tacit.core.registry import environments, policies
from tacit.core.specs import _meanings as documented
from tacit.core.specs import build_dataclass, parameters_of, schema_of
from tacit.graphs import Graph, ring


@dataclass(frozen=True, kw_only=True)
class Loud:
    """Noise.

    Parameters
    ----------
    volume : float
        How loud.
    """

    kind: ClassVar[str] = "loud"
    volume: Positive = 1.0
    horizon: Count = 1

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, kw_only=True)
class Quiet:
    kind: ClassVar[str] = "quiet"
    below: Probability


@dataclass(frozen=True, kw_only=True)
class Radio:
    """A thing with parameters of every sort.

    Parameters
    ----------
    stations, spare : int
        How many
        there are.
    sound : Loud or Quiet
        What is heard.
    """

    stations: Count
    spare: int = 0
    sound: Loud | Quiet | None = None
    single: Loud = dataclasses.field(default_factory=Loud)
    graph: Graph | tuple[Graph, ...] | None = None
    any_graph: Graph | Any = None
    inner: ArmsEnvironment | None = None
    corruption: Corruption | None = None
    window: int | str = "auto"
    band: Annotated[str, one_of("am", "fm")] = "fm"
    mode: Literal["mono", "stereo"] = "mono"
    pair: tuple[float, float] = (0.0, 1.0)
    gain: Positive | None = None
    file: str | Path | None = None

    def __post_init__(self) -> None:
        check(self)


def radio(**written: Any) -> Radio:
    return build_dataclass(Radio, "radio", {"stations": 3, **written}, {"horizon": 7, "unused": 1})


@pytest.mark.parametrize(
    ("field", "written", "meant"),
    [
        ("sound", {"kind": "loud", "volume": 2}, Loud(volume=2.0, horizon=7)),
        ("sound", {"kind": "quiet", "below": 0.5}, Quiet(below=0.5)),
        ("sound", "loud", Loud(horizon=7)),
        ("sound", "none", None),
        ("sound", Quiet(below=0.1), Quiet(below=0.1)),
        ("single", {"kind": "loud"}, Loud(horizon=7)),
        ("graph", {"name": "ring", "n_nodes": 4}, ring(4)),
        ("graph", [{"name": "ring", "n_nodes": 4}] * 2, (ring(4), ring(4))),
        ("any_graph", {"name": "ring", "n_nodes": 4}, ring(4)),
        ("any_graph", [[1.0]], [[1.0]]),
        ("inner", {"name": "bernoulli", "means": [0.3, 0.7]}, Bernoulli(means=(0.3, 0.7))),
        ("corruption", {"values": [0.9, 0.2]}, Corruption(values=((0.9, 0.2),))),
        ("window", 3, 3),
        ("window", "none", "none"),
        ("pair", [1, 2], (1.0, 2.0)),
        ("gain", 2, 2.0),
        ("gain", "none", None),
        ("file", "a.csv", "a.csv"),
    ],
)
def test_a_written_value_becomes_what_the_type_says(field, written, meant):
    value = getattr(radio(**{field: written}), field)
    assert value == meant
    assert type(value) is type(meant)


def test_a_graph_is_read_from_a_file(tmp_path):
    (tmp_path / "edges.csv").write_text("0,1\n1,2\n")
    assert radio(graph=str(tmp_path / "edges.csv")).graph.n_edges == 2


@pytest.mark.parametrize(
    ("field", "written", "complaint"),
    [
        ("sound", {"kind": "silent"}, "sound: expected kind one of loud, quiet, got 'silent'"),
        ("sound", {"volume": 1}, "sound: expected kind one of loud, quiet, got None"),
        ("sound", "quiet", 'sound quiet needs below: {kind="quiet",below=...}'),
        ("sound", 3, "Radio: expected sound to be of kind loud or of kind quiet, got 3"),
        ("sound", {"kind": "loud", "volume": 0}, "Loud: expected volume > 0 and finite, got 0.0"),
        ("sound", {"kind": "loud", "tone": 0}, "sound loud has no parameter 'tone'"),
        ("graph", {"name": "rings"}, "no network is called 'rings'"),
        ("graph", {"name": "ring", "size": 3}, "network ring: "),
        ("graph", [1, 2], "Radio: expected graph to be Graph or a list (Graph each), got [1, 2]"),
        ("inner", {"means": [0.5]}, "every environment needs a name"),
        ("inner", {"name": "bernoulli"}, "bernoulli needs means"),
        ("corruption", {"p22": 1}, "corruption: "),
        ("band", "lw", "Radio: expected band one of am, fm, got 'lw'"),
        ("mode", "quad", "Radio: expected mode to be one of mono, stereo, got 'quad'"),
        ("pair", [1], "Radio: expected pair to be a list (a number each), got [1]"),
        ("stations", True, "Radio: expected stations to be a whole number, got True"),
        ("stations", 0, "Radio: expected stations >= 1, got 0"),
        ("gain", "high", "Radio: expected gain to be a number, got 'high'"),
    ],
)
def test_what_cannot_be_meant_is_named(field, written, complaint):
    with pytest.raises(ValueError, match="^" + re.escape(complaint)):
        radio(**{field: written})


def test_an_environment_of_another_setting_is_refused():
    with pytest.raises(ValueError, match=r"GraphFeedback: expected environment to be"):
        build_dataclass(
            GraphFeedback, "graph-feedback", {"environment": {"name": "synthetic-users"}}
        )


def test_help_tells_types_rules_defaults_and_meaning():
    told = {each.name: each for each in parameters_of(Radio)}
    assert told["stations"].takes == "a whole number, >= 1"
    assert told["stations"].default == ""
    assert told["stations"].means == told["spare"].means == "How many there are."
    assert told["band"].takes == "one of am, fm"
    assert told["gain"].takes == "a number, > 0 and finite, or none"
    assert told["sound"].means == "What is heard."


def valid(schema: dict[str, Any], written: Any) -> bool:
    return bool(jsonschema.Draft202012Validator(schema).is_valid(written))


def test_the_schema_accepts_what_described_accepts():
    schema = schema_of(Radio)
    good: dict[str, Any] = {
        "stations": 3,
        "sound": {"kind": "quiet", "below": 0.5},
        "graph": {"name": "ring", "n_nodes": 4},
        "inner": {"name": "bernoulli", "means": [0.3, 0.7]},
        "pair": [1.0, 2.0],
        "window": 3,
    }
    assert valid(schema, good)
    for bad in (
        {"stations": 0},
        {"sound": {"kind": "silent"}},
        {"sound": {"kind": "quiet", "below": 1.5}},
        {"band": "lw"},
        {"mode": "quad"},
        {"pair": [1.0]},
        {"gain": 0},
        {"tuning": 1},
    ):
        assert not valid(schema, {**good, **bad}), bad
    del good["stations"]
    assert not valid(schema, good)


KINDS = {**policies(), **environments()}


@pytest.mark.parametrize("name", KINDS)
def test_every_description_has_help_and_a_schema(name):
    kind = KINDS[name]
    schema = json.loads(json.dumps(schema_of(kind), allow_nan=False))
    jsonschema.Draft202012Validator.check_schema(schema)
    fields = [field.name for field in dataclasses.fields(kind) if field.init]
    assert list(schema["properties"]) == fields
    told = parameters_of(kind)
    assert [each.name for each in told] == fields
    assert [each for each in fields if each not in documented(kind)] == []
    for field, part in schema["properties"].items():
        if "default" in part:
            assert valid(part, part["default"]), field
