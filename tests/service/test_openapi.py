"""The service does what its description says: schemathesis tries every operation, valid and not."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS

from service.conftest import LOCAL
from service.test_robust import PEOPLE
from tacit.service import open_service
from tacit.service.endpoints import ENDPOINTS, describe_interface
from tacit.service.messages import ExperimentRequest

EXAMPLES = int(os.environ.get("TACIT_SOAK_EXAMPLES", "2000"))
# What the schema allows may still be impossible here: a policy that does not exist, a closed decision.
LEFT_OUT = ["positive_data_acceptance"]
# What is wrong and too large as well is refused for its size (413), before it is read.
CONFIG = schemathesis.Config.from_dict(
    {"checks": {"negative_data_rejection": {"expected-statuses": ["4xx"]}}}
)


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    made = open_service(tmp_path_factory.mktemp("openapi") / "store.db")
    # The disk is not what is tried here.
    made.manager.store.database.connection.execute("PRAGMA synchronous = OFF")
    for wanted in (LOCAL, PEOPLE):
        made.manager.create(msgspec.convert(wanted, ExperimentRequest))
    # The tool tries wrong tokens far more often than one address may.
    made.app.state.guesses.count = lambda request: None
    yield made
    made.manager.store.close()


def alive(app):
    """Return the app as one that neither starts nor stops: the tool does both with every request."""

    async def run(scope, receive, send):
        if scope["type"] == "http":
            await app(scope, receive, send)
            return
        for what in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{what}.complete"})

    return run


def test_the_page_has_a_row_for_each_endpoint():
    page = (Path(__file__).parents[2] / "docs/service.md").read_text(encoding="utf-8")
    table = page.partition("| call | scope | what |\n")[2].partition("\n\n")[0].splitlines()[1:]
    rows = sorted(tuple(cell.strip(" `") for cell in row.split("|")[1:3]) for row in table)
    names = {"{name}": "NAME", "{id}": "ID"}
    paths = {row.path: row.path for row in ENDPOINTS}
    for name, word in names.items():
        paths = {path: shown.replace(name, word) for path, shown in paths.items()}
    assert rows == sorted(
        (f"{row.method} {paths[row.path]}", row.scope or "-") for row in ENDPOINTS
    )


OPERATIONS = [
    f"{method.upper()} {path}"
    for path, methods in describe_interface()["paths"].items()
    for method in methods
    if method != "parameters"
]


def tried(opened, operation, examples):
    """Try an operation with data that fits its description, and with data that does not."""
    checks = [CHECKS.get_one(name) for name in CHECKS.get_all_names() if name not in LEFT_OUT]
    headers = {"Authorization": f"Bearer {opened.first_token}"}
    schema = schemathesis.openapi.from_asgi("/openapi.json", alive(opened.app), config=CONFIG)
    method, path = operation.split()
    operation = schema[path][method]

    for mode in GenerationMode:

        @given(
            case=operation.as_strategy(generation_mode=mode),
            name=st.sampled_from(["news", "people", None]),
        )
        @settings(
            max_examples=examples,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def run(case, name):
            if name is not None and "name" in case.path_parameters:
                case.path_parameters["name"] = name
            case.call_and_validate(headers=headers, checks=checks)

        # What takes nothing cannot be asked wrongly.
        with contextlib.suppress(Unsatisfiable):
            run()


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_does_what_is_described(opened, operation):
    tried(opened, operation, 15)


@pytest.mark.soak
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_does_what_is_described_for_long(opened, operation):
    tried(opened, operation, EXAMPLES)
