"""Every branch of the model is taken by its own fast tests.

In a process of its own, since this one has loaded the model already. What is ``thorough`` is left
out, and of what Hypothesis makes up all but a few examples: that would take minutes, and a branch
that only it takes deserves a test that says why.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = (
    *("tests/unit", "tests/law", "tests/transcripts"),
    *(f"tests/conformance/test_{name}.py" for name in ("judge", "frames", "witness", "deviation")),
    "tests/conformance/test_bounding.py",
    *("tests/repo/test_generated.py", "tests/strength"),
)
FAST = "not nightly and not thorough and not strength"


def _coverage(*arguments: str, data: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HYPOTHESIS_PROFILE": "branches", "COVERAGE_FILE": str(data)}
    return subprocess.run(
        [sys.executable, "-m", "coverage", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_branch_of_the_model_is_taken(tmp_path: Path) -> None:
    data = tmp_path / "coverage"
    run = _coverage("run", "-m", "pytest", "-q", "-m", FAST, *TESTS, data=data)
    assert run.returncode == 0, run.stdout + run.stderr
    report = _coverage("report", data=data)
    assert report.returncode == 0, report.stdout + report.stderr


def test_what_is_left_out_says_why() -> None:
    for path in (ROOT / "model").rglob("*.py"):
        for said in re.findall(r"pragma: (.*)", path.read_text()):
            assert re.fullmatch(r"no (cover|branch): .+", said), f"{path.name}: {said}"
