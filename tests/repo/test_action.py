"""The GitHub Action: its steps, run as a runner would, with a real client."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ACTION = Path(__file__).parents[2] / ".github" / "actions" / "relist-check" / "action.yml"
DEFINED: Any = yaml.safe_load(ACTION.read_text())
STEPS = {step["name"]: step for step in DEFINED["runs"]["steps"]}
ONE_CELL = "--case paging:every-page --transport stdio --revision 2026-07-28"
FILES = {"result.json", "junit.xml", "result.sarif", "summary.md", "report.html"}


def judged(tmp_path: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run the step that judges, in an empty folder; what it installs is there already."""
    tool = tmp_path / "temp" / "relist" / "bin" / "relist"
    tool.parent.mkdir(parents=True)
    tool.write_text(f'#!/bin/sh\nexec {sys.executable} -m relist_conformance.cli "$@"\n')
    tool.chmod(0o755)
    given = {name: value.get("default", "") for name, value in DEFINED["inputs"].items()} | inputs
    step = STEPS["Judge the client"]
    named = {
        name: given[value.removeprefix("${{ inputs.").removesuffix(" }}")]
        for name, value in step["env"].items()
    }
    runner = {"RUNNER_TEMP": str(tmp_path / "temp"), "GITHUB_STEP_SUMMARY": str(tmp_path / "s.md")}
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", step["run"]],
        cwd=tmp_path,
        env={**os.environ, **runner, **named},
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_judges_writes_all_files_and_the_summary(tmp_path: Path) -> None:
    naive = f"{sys.executable} -m relist_conformance.drivers.naive"
    done = judged(tmp_path, driver=naive, arguments=f"{ONE_CELL} --strict")
    assert done.returncode == 1, done.stderr
    folder = tmp_path / DEFINED["inputs"]["reports"]["default"]
    assert {path.name for path in folder.iterdir()} == FILES
    assert all(name in DEFINED["outputs"]["reports"]["description"] for name in FILES)
    assert (tmp_path / "s.md").read_text() == (folder / "summary.md").read_text()
    assert "naive client on mcp" in (tmp_path / "s.md").read_text()


def test_an_input_is_never_a_command(tmp_path: Path) -> None:
    evil = '$(touch owned) `touch owned`; touch owned "'
    done = judged(tmp_path, driver=evil, arguments=evil, baseline=evil)
    assert done.returncode == 2
    assert not list(tmp_path.rglob("owned"))


@pytest.mark.parametrize("name", STEPS)
def test_no_script_holds_an_expression(name: str) -> None:
    """What a runner puts into the text of a script would be run."""
    assert "${{" not in STEPS[name]["run"]
    assert STEPS[name]["shell"] == "bash"
