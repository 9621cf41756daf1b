"""What is built holds what it should, and nothing else at the top level."""

import ast
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {"relist", "relist_mcp", "relist_conformance", "relist_specs"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)],
        capture_output=True,
        text=True,
        check=True,
    )
    return folder


def test_the_wheel_holds_the_four_packages_with_types_and_data(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == PACKAGES
    assert {f"{package}/py.typed" for package in PACKAGES} <= set(names)
    data = {
        path.relative_to(ROOT / "specs").as_posix()
        for suffix in ("yaml", "json")
        for path in (ROOT / "specs" / "relist_specs").rglob(f"*.{suffix}")
    }
    assert "relist_specs/requirements.yaml" in data
    assert {f"relist_conformance/report/page.{end}" for end in ("html.j2", "css", "js")} <= set(
        names
    )
    drivers = "relist_conformance/drivers"
    assert {f"{drivers}/mcp1_client.py", f"{drivers}/node/sdk_v2.mjs"} <= set(names)
    assert {f"{drivers}/node/contract.mjs", f"{drivers}/node/package.json"} <= set(names)
    assert data <= set(names)


def test_the_sdist_holds_what_is_needed_to_test_it(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    for wanted in ("README.md", "LICENSE", "CHANGELOG.md", "specs/README.md", "tests/conftest.py"):
        assert wanted in names
    assert "model/relist/charts.py" in names


def test_the_wheel_works_where_nothing_else_of_ours_is(built: Path, tmp_path: Path) -> None:
    """Unpacked beside the dependencies; our checkout is not on the path."""
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r});"
        "import relist, relist_mcp, relist_conformance.script as s;"
        "print(relist.__file__); print(len(s.load_cases()))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    where, count = result.stdout.splitlines()
    assert where.startswith(str(tmp_path))
    assert int(count) >= 8


SPELLED = {
    "opentelemetry": "opentelemetry-api",
    "statemachine": "python-statemachine",
    "yaml": "pyyaml",
    "jsonschema_rs": "jsonschema-rs",
}
BROUGHT = {"mcp_types": "mcp"}  # the SDK's own types come with it, at its version


def _imported(package: Path) -> set[str]:
    found: set[str] = set()
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add((node.module or "").split(".")[0])
    return found - set(sys.stdlib_module_names) - PACKAGES


@pytest.mark.parametrize(
    ("package", "extras"),
    [
        ("model/relist", ()),
        ("adapters/relist_mcp", ("mcp",)),
        ("adapters/relist_conformance", ("mcp", "conformance", "fastmcp", "pytest")),
    ],
)
def test_whatever_is_imported_is_declared(package: str, extras: tuple[str, ...]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"]]
    for extra in extras:
        wanted += project["optional-dependencies"][extra]
    declared = {re.split(r"[<>=\[]", line)[0] for line in wanted}
    for name in _imported(ROOT / package):
        assert BROUGHT.get(name, SPELLED.get(name, name)) in declared
