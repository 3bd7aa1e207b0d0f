"""The packages that are published: complete, of one content, and a wheel that works by itself."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NEEDED = ("py.typed", "service/pages/", "cli/demo/pages/", "device/")


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """A wheel and an sdist of what git knows, built as a release builds them."""
    place = tmp_path_factory.mktemp("packages")
    tree, out = place / "tree", place / "dist"
    tree.mkdir()
    known = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if known.returncode:
        pytest.skip("not a git checkout")
    for name in known.stdout.split("\0")[:-1]:
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_bytes((ROOT / name).read_bytes())
    build(tree, out)
    return tree, next(out.glob("*.whl")), next(out.glob("*.tar.gz"))


def build(tree, out, *words):
    command = [sys.executable, "-m", "build", "--no-isolation", *words, "--outdir", out, tree]
    built = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr


def test_the_wheel_holds_all_of_the_package_and_nothing_else(packages):
    tree, wheel, _ = packages
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    source = tree / "src"
    expected = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    assert names == expected
    for needed in NEEDED:
        assert any(name.startswith(f"tacit/{needed}") for name in names), needed
    assert any(name.endswith("LICENSE") for name in zipfile.ZipFile(wheel).namelist())


def test_the_wheel_of_the_studies_holds_the_report_and_the_command(packages, tmp_path):
    tree, _, _ = packages
    build(tree / "studies", tmp_path, "--wheel", "--skip-dependency-check")
    (wheel,) = tmp_path.glob("tacit_studies-*.whl")
    archive = zipfile.ZipFile(wheel)
    source = tree / "studies" / "src"
    expected = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    names = archive.namelist()
    assert {name for name in names if ".dist-info/" not in name} == expected
    assert any(name.startswith("tacit_studies/report/pages/") for name in names)
    assert any(name.endswith("LICENSE") for name in names)
    (points,) = (name for name in names if name.endswith("entry_points.txt"))
    assert "reproduce = tacit_studies.command:app" in archive.read(points).decode()


def test_the_sdist_holds_tests_documentation_and_licence(packages):
    tree, _, sdist = packages
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    for path in ("LICENSE", "README.md", "CITATION.cff", "Makefile", "docs/index.md"):
        assert path in names
    assert {p.relative_to(tree).as_posix() for p in (tree / "tests").rglob("*.py")} <= names


def test_the_wheel_works_by_itself(packages, tmp_path):
    _, wheel, _ = packages
    zipfile.ZipFile(wheel).extractall(tmp_path)
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import tacit, tacit.device, tacit.arms;"
        f"assert tacit.__file__.startswith({str(tmp_path)!r});"
        "from tacit.device import Channel; print(tacit.__version__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert wheel.name.startswith(f"tacit-{done.stdout.strip()}-")
