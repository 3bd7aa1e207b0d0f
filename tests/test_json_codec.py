"""One JSON for the whole tree: every number survives, and nothing outside the standard is written."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from tacit.core.json_codec import dumps, number, numbers, plain
from tacit.privacy import Charge


def test_numbers_that_json_lacks_survive():
    values = [1.5, math.inf, -math.inf, 3]
    text = dumps({"values": values, "why": "inf is a word here"})
    read = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert [number(value) for value in read["values"]] == values
    assert math.isnan(number(json.loads(dumps(math.nan))))
    assert numbers({"a": ["inf", "x"], "b": 1}) == {"a": [math.inf, "x"], "b": 1}


def test_arrays_records_and_paths_are_plain():
    assert plain(np.array([[1, 2], [3, 4]])) == [[1, 2], [3, 4]]
    assert plain(np.float64(math.inf)) == "inf"
    assert plain((True, None, Path("a") / "b")) == [True, None, "a/b"]
    assert plain(Charge(subject="ada", key="k", epsilon=0.5))["epsilon"] == 0.5
    assert isinstance(plain(np.int64(3)), int)


@pytest.mark.parametrize("bad", ["1", None, True, "infinity"])
def test_what_is_no_number_is_refused(bad):
    with pytest.raises(ValueError, match="expected a number"):
        number(bad)


def test_what_has_no_form_is_refused():
    with pytest.raises(TypeError, match="object has no form"):
        dumps(object())
