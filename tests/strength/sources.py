"""Mutants of the sources, made and run by mutmut in a folder of their own.

mutmut knows sources that lie beside ``pyproject.toml`` or in ``src``, so the package is laid out
like that. A mutant is killed by the type checker, or by the first test that fails on it.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import chdir
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "model" / "relist"
MODULES = (
    *(f"rules/{name}.py" for name in ("base", "connection", "doubt", "guards")),
    *(f"rules/{name}.py" for name in ("negotiation", "push", "standing", "walk")),
    *(f"{name}.py" for name in ("paging", "freshness", "admission", "session")),
    *(f"{name}.py" for name in ("scope", "resources", "policy", "snapshot", "failures", "tags")),
)
TESTS = ("tests/unit", "tests/transcripts", "tests/strength/test_small_worlds.py")
NEEDED = ("unit", "transcripts", "support", "strength", "conftest.py")
QUIET = ("cacheprovider", "unraisableexception", "threadexception")  # each costs time, none a test
SETTINGS = """
[tool.mutmut]
source_paths = ["relist"]
only_mutate = {only}
also_copy = ["conftest.py"]
process_isolation = "forkserver"
use_git_change_detection = false
timeout_multiplier = 4.0
pytest_add_cli_args = {arguments}
pytest_add_cli_args_test_selection = {tests}
type_check_command = {types}
do_not_mutate_patterns = {guards}
"""


# mutmut wraps what it mutates, and the type checker does not see a TypeGuard through that.
TYPE_GUARDS = (r"return isinstance\(value, int\) and not isinstance",)


class Result(NamedTuple):
    """One mutant: where it is, what was written there, what it says now, what became of it."""

    module: str
    function: str
    was: str
    now: str
    verdict: str  # "types", "tests", "time" or "survived"


def run(folder: Path, modules: Sequence[str] = MODULES) -> list[Result]:
    """Make and run all mutants of these modules; takes a quarter of an hour for all.

    Raises CalledProcessError when mutmut cannot run; its log is ``mutmut.log`` in the folder.
    """
    _lay_out(folder, modules)
    command = [sys.executable, "-m", "mutmut", "run", "--max-children", "1"]
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with (folder / "mutmut.log").open("w") as log:
        subprocess.run(
            command,
            cwd=folder,
            env={**kept, "HYPOTHESIS_PROFILE": "ci"},
            stdout=log,
            stderr=subprocess.STDOUT,
            check=True,
        )
    return [result for module in modules for result in results(folder, module)]


def _lay_out(folder: Path, modules: Sequence[str]) -> None:
    without = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, folder / "relist", ignore=without)
    for name in NEEDED:
        source, target = ROOT / "tests" / name, folder / "tests" / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=without)
        else:
            shutil.copy(source, target)
    shutil.copy(Path(__file__).with_name("sooner.py"), folder / "conftest.py")
    quiet = (part for name in QUIET for part in ("-p", f"no:{name}"))
    arguments = ["-n0", "-m", "not nightly", *quiet]
    types = [sys.executable, "-m", "mypy", "relist", "--output", "json"]
    settings = SETTINGS.format(
        only=json.dumps([f"relist/{module}" for module in modules]),
        arguments=json.dumps(arguments),
        tests=json.dumps(TESTS),
        guards=json.dumps(TYPE_GUARDS),
        types=json.dumps([*types, "--disable-error-code", "unused-ignore"]),
    )
    (folder / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text() + settings)


VERDICTS = {0: "survived", 33: "survived", 1: "tests", 3: "tests", 37: "types"}


def results(folder: Path, module: str) -> Iterator[Result]:
    """What became of the mutants of a module. Raises AssertionError if one was not run."""
    diff_apply = import_module("mutmut.mutation.diff_apply")  # there in a strength run only
    path = f"relist/{module}"
    met = json.loads((folder / "mutants" / f"{path}.meta").read_text())["exit_code_by_key"]
    for name, code in met.items():
        assert code is not None, f"{name} was not run"
        verdict = VERDICTS.get(code, "time")
        was = now = ""
        if verdict == "survived":
            with chdir(folder):
                was, now = changed(diff_apply.get_diff_for_mutant(name, path=path))
        yield Result(module, function_of(name), was, now, verdict)


def function_of(name: str) -> str:
    """The function of a mutant's name, a method as Class.method."""
    mangled = name.rpartition(".")[2].partition("__mutmut_")[0]
    return mangled.removeprefix("x_").removeprefix("x\u01c1").replace("\u01c1", ".")


def changed(diff: str) -> tuple[str, str]:
    """The lines that a diff takes away, and those it puts there."""
    lines = [line for line in diff.splitlines() if not line.startswith(("---", "+++"))]
    was, now = (
        " ".join(line[1:].strip() for line in lines if line.startswith(sign)) for sign in "-+"
    )
    return was, now
