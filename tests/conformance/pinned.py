"""Runs a driver through the cases, for tests that pin its verdicts."""

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

COLUMNS = (
    ("stdio", "2025-11-25"),
    ("stdio", "2026-07-28"),
    ("http", "2025-11-25"),
    ("http", "2026-07-28"),
)
SHOWN = {"not_applicable": "n/a", "untestable": "-"}


def verdicts(command: str, file: Path, cases: Iterable[str] = ()) -> dict[str, str]:
    """The verdicts on a driver (in these cases, or in all), one text of words for each case."""
    chosen = [word for case in cases for word in ("--case", case)]
    relist = (sys.executable, "-m", "relist_conformance.cli")
    done = subprocess.run(
        (*relist, "check", "--driver", command, "--json", str(file), *chosen),
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode in (0, 1, 3), done.stderr
    found: dict[str, dict[tuple[str, str], str]] = {}
    for result in json.loads(file.read_text())["results"]:
        word = SHOWN.get(result["verdict"], result["verdict"])
        found.setdefault(result["case"], {})[result["transport"], result["revision"]] = word
    return {
        case: " ".join(words[column] for column in COLUMNS if column in words)
        for case, words in found.items()
    }
