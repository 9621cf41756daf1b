"""Drivers whose client needs an environment of its own, which is made here: they need a network.

What is found is pinned, as in ``test_drivers``; a dash is what the client does not offer.
"""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

import relist_conformance.drivers
from conformance.findings import FINDINGS, findings
from conformance.pinned import verdicts
from relist_conformance.driver import Driver, Hello

DRIVERS = Path(relist_conformance.drivers.__file__).parent
SHIPPED = sorted((*DRIVERS.glob("*.py"), *DRIVERS.glob("node/*.mjs")))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_a_driver_is_short(path: Path) -> None:
    if path.name != "base.py":  # the loop that they share
        assert len(path.read_text().splitlines()) < 150


def test_the_driver_of_the_older_sdk_refuses_the_newer_one() -> None:
    done = subprocess.run(
        (sys.executable, str(DRIVERS / "mcp1_client.py")),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("this driver is for mcp 1.x; here is mcp 2.")


@pytest.fixture(scope="module")
def python_1(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The command of the driver for `mcp` 1.x, in an environment that holds nothing of ours."""
    folder = tmp_path_factory.mktemp("mcp1")
    subprocess.run((sys.executable, "-m", "venv", str(folder)), check=True)
    python = str(folder / "bin" / "python")
    subprocess.run((python, "-m", "pip", "install", "--quiet", "mcp>=1.24,<2"), check=True)
    return shlex.join((python, str(DRIVERS / "mcp1_client.py")))


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The drivers for Node, copied and installed as their page says."""
    folder = tmp_path_factory.mktemp("node") / "drivers"
    shutil.copytree(DRIVERS / "node", folder)
    npm = ("npm", "install", "--no-package-lock", "--no-audit", "--no-fund")
    subprocess.run(npm, cwd=folder, check=True)
    return folder


def hello(command: str) -> Hello:
    async def ask() -> Hello:
        async with Driver.start(shlex.split(command)) as driver:
            return driver.hello

    return anyio.run(ask)


@pytest.mark.nightly
def test_python_1(python_1: str, tmp_path: Path) -> None:
    said = hello(python_1)
    assert (said.name, said.version[:2], said.level) == ("mcp.ClientSession", "1.", "full")
    assert findings(verdicts(python_1, tmp_path / "result.json")) == FINDINGS["mcp1_client"]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("file", "name", "generation"),
    [
        ("sdk_v2.mjs", "@modelcontextprotocol/client", "2."),
        ("sdk_v1.mjs", "@modelcontextprotocol/sdk", "1."),
    ],
)
def test_node(node: Path, file: str, name: str, generation: str, tmp_path: Path) -> None:
    command = shlex.join(("node", str(node / file)))
    said = hello(command)
    assert (said.name, said.version[:2], said.level) == (name, generation, "full")
    assert findings(verdicts(command, tmp_path / "result.json")) == FINDINGS[file]
