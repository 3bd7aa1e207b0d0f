"""Instructions are refused by one clear sentence, whatever they are, before a reward is touched."""

from __future__ import annotations

import copy
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from device.exactness import CHANNELS, seeded, stored_vectors
from oracles import device as probabilities
from tacit.device import MAX_EPSILON, Channel, Reporter, instructions

REFUSED = stored_vectors()["refused.json"]
ALL = CHANNELS | {"identity": instructions.identity()}
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-2, 5)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from([10**400, 2**53, 2**53 - 1, 1e308, "window", "identity", "central"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@pytest.mark.parametrize("one", REFUSED, ids=lambda one: one["about"])
def test_what_is_wrong_is_refused(one):
    with pytest.raises(ValueError, match=r"^instructions: expected .+, got .+") as raised:
        Channel(one["instructions"])
    sentence = str(raised.value)
    assert "\n" not in sentence
    assert len(sentence) < 250


@pytest.mark.parametrize(
    "bad", [math.nan, math.inf, -math.inf, 10**400, 10**5000, "x" * 10**6], ids=range(6)
)
@pytest.mark.parametrize("field", ["low", "high", "levels"])
def test_no_number_of_a_question_is_strange(field, bad):
    asked = copy.deepcopy(CHANNELS["piecewise"])
    asked["question"][field] = bad
    with pytest.raises(ValueError, match=rf"expected question.{field} to be a"):
        Channel(asked)


def test_a_long_value_is_shortened():
    with pytest.raises(ValueError, match=r"got 'xxx+\.\.\.$") as raised:
        Channel(CHANNELS["k-ary"] | {"trust": "x" * 10**6})
    assert len(str(raised.value)) < 200


def test_a_whole_number_may_be_written_with_a_point():
    asked = copy.deepcopy(CHANNELS["k-ary"])
    asked["answer"]["cells"] = 4.0
    asked["answer"]["weights"] = [float(weight) for weight in asked["answer"]["weights"]]
    for seed in range(20):
        one, other = (Channel(each).draw(1, seeded(seed)) for each in (asked, CHANNELS["k-ary"]))
        assert one == other
        assert type(one) is int
    assert probabilities.probabilities(asked, 1) == probabilities.probabilities(
        CHANNELS["k-ary"], 1
    )


@settings(deadline=None)
@given(asked=JSON)
def test_any_json_is_refused_by_a_value_error(asked):
    with pytest.raises(ValueError, match=r"^instructions: expected "):
        Channel(asked)


def paths(value, path=()):
    """Yield the path of every entry of nested dicts and lists."""
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in entries:
        yield (*path, key)
        if isinstance(inner, dict | list):
            yield from paths(inner, (*path, key))


@settings(deadline=None, max_examples=300)
@given(name=st.sampled_from(sorted(ALL)), data=st.data(), seed=st.integers(0, 2**32))
def test_changed_instructions_are_followed_or_refused(name, data, seed):
    assert_followed_or_refused(name, data, seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
@settings(deadline=None)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_changed_instructions_of_every_kind_are_followed_or_refused(name, data, seed):
    assert_followed_or_refused(name, data, seed)


def assert_followed_or_refused(name, data, seed):
    asked = copy.deepcopy(ALL[name])
    for _ in range(data.draw(st.integers(1, 3))):
        *parents, last = data.draw(st.sampled_from(list(paths(asked))))
        place = asked
        for key in parents:
            place = place[key]
        if data.draw(st.booleans()):
            place[last] = data.draw(JSON)
        else:
            del place[last]
        if not asked:
            break
    try:
        channel = Channel(asked)
    except ValueError:
        return
    assert 0 <= channel.epsilon <= MAX_EPSILON or asked["trust"] == "central"
    channel.draw(0.5, seeded(seed))


def test_more_than_the_device_allows_is_refused():
    asked = instructions.randomized_response(1.0)
    Reporter(asked, id="d", max_epsilon=1.0)
    with pytest.raises(
        ValueError, match=r"Reporter: expected epsilon <= max_epsilon = 0.5, got 0.99"
    ):
        Reporter(asked, id="d", max_epsilon=0.5)


@pytest.mark.parametrize("most", [1.0, 30.0, 1e300])
def test_the_reward_itself_needs_the_words_no_bound(most):
    asked = instructions.identity()
    with pytest.raises(
        ValueError, match=r"Reporter: expected epsilon <= max_epsilon = .*, got inf"
    ):
        Reporter(asked, id="d", max_epsilon=most)
    for none in (None, math.inf):
        assert Reporter(asked, id="d", max_epsilon=none).report(0.25)["value"] == 0.25


@pytest.mark.parametrize("most", [0, -1.0, math.nan, "1", True])
def test_a_bound_is_a_positive_number(most):
    with pytest.raises(ValueError, match="Reporter: expected max_epsilon > 0 or None"):
        Reporter(CHANNELS["k-ary"], id="d", max_epsilon=most)


@pytest.mark.parametrize("id", ["", "x" * 129, 7, None])
def test_an_id_is_a_short_text(id):
    with pytest.raises(ValueError, match="Reporter: expected id of 1 to 128 characters"):
        Reporter(CHANNELS["k-ary"], id=id, max_epsilon=None)


@pytest.mark.parametrize("due", [math.nan, math.inf, "tomorrow", True])
def test_a_time_is_a_number(due):
    with pytest.raises(ValueError, match="Reporter: expected report_at a finite number or None"):
        Reporter(CHANNELS["k-ary"], id="d", max_epsilon=None, report_at=due)


def test_the_bound_must_be_said():
    with pytest.raises(TypeError, match="max_epsilon"):
        Reporter(CHANNELS["k-ary"], id="d")
