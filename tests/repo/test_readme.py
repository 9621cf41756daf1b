"""What the README shows works, and what it says is what CI runs."""

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
COMMANDS = re.findall(r"```sh\n(python3 -m venv .*?)\n```", README)


def _block(name: str) -> str:
    found = re.search(rf"<!-- test: {name} -->\n```python\n(.*?)```", README, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_embedding_example_prints_what_its_comments_say() -> None:
    """15 lines at most, run as they stand."""
    code = _block("core")
    assert len(code.splitlines()) <= 15
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.splitlines() == ["Hit.HIT", "Doubt.NOTICED 112"]


SERVER = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("example")

@server.tool()
def add(a: int, b: int) -> int:
    return a + b

server.run()
"""


def test_the_live_example_lists_a_real_server(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    code = _block("live").replace('"python3"', repr(sys.executable))
    program = f"{code}\nimport anyio\nanyio.run(main)\n"
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert result.stdout.split(" ", 1)[1].strip() == "['add']"


def test_what_was_pinned_is_what_the_example_shows(tmp_path: Path) -> None:
    """The same command is run as the block and the line of shell above it say."""
    (tmp_path / "server.py").write_text(SERVER)
    command = [sys.executable, "server.py"]
    program = "from relist_conformance.cli import main; main()"
    relist = [sys.executable, "-c", program, "pin", "--store", "relist.db"]
    who = ["--consumer", "agent", "--yes", "--who", "me", "--id", "python3 server.py"]
    subprocess.run([*relist, *who, "--", *command], cwd=tmp_path, capture_output=True, check=True)
    code = _block("pinned").replace('"python3"', repr(sys.executable))
    result = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport anyio\nanyio.run(main)\n"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.strip() == "['add']"


def test_the_number_of_cases_is_that_of_the_files() -> None:
    cases = len(list((ROOT / "specs" / "relist_specs" / "cases").glob("*.yaml")))
    assert re.findall(r"the (\d+) cases", README) == [str(cases)]


def test_ci_runs_exactly_the_second_command() -> None:
    assert len(COMMANDS) == 2
    assert COMMANDS[1] in (ROOT / ".ci" / "run").read_text()


@pytest.mark.parametrize(
    ("source", "asked", "workers"),
    [
        (pytest.Config.ArgsSource.TESTPATHS, "auto", None),  # as many as there are cores
        (pytest.Config.ArgsSource.ARGS, "auto", 0),
        (pytest.Config.ArgsSource.ARGS, "logical", None),
    ],
)
def test_what_is_named_runs_in_one_process(
    source: pytest.Config.ArgsSource, asked: str, workers: int | None, pytestconfig: pytest.Config
) -> None:
    conftest = pytestconfig.pluginmanager.get_plugin(str(ROOT / "tests" / "conftest.py"))
    assert conftest is not None
    config = SimpleNamespace(args_source=source, option=SimpleNamespace(numprocesses=asked))
    assert conftest.pytest_xdist_auto_num_workers(config) == workers


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#:]+)\)", README))
def test_links_lead_somewhere(link: str) -> None:
    assert (ROOT / link).exists()
