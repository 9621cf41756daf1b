"""The pytest plugin, in a pytest process of its own: another suite than this one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.made import made_result
from relist_conformance.pytest_cases import RelistWarning, conclude
from relist_conformance.runner import Word

PLUGIN = "relist_conformance.pytest_plugin"
REFERENCE = f"{sys.executable} -m relist_conformance.drivers.reference"
CASES = ("--pyargs", "relist_conformance.pytest_cases")


def run(folder: Path, *args: str, seed: str = "0") -> subprocess.CompletedProcess[str]:
    """pytest in a folder with a configuration of its own, and with no plugin but this one."""
    return subprocess.run(
        (sys.executable, "-m", "pytest", "-c", "none.ini", "-p", PLUGIN, *args),
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "none.ini").write_text("[pytest]\n")
    return tmp_path


def test_one_test_for_each_case_on_one_driver(folder: Path) -> None:
    args = ("--relist-driver", REFERENCE, "--relist-case", "paging:e*y*", "-v")
    done = run(folder, *CASES, *args)
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout
    assert "test_client[paging:every-page] PASSED" in done.stdout


def test_each_worker_of_xdist_starts_the_driver_once(folder: Path) -> None:
    driver = f"sh -c 'echo started >> started; exec {REFERENCE}'"
    args = ("--relist-driver", driver, "--relist-case", "paging:e*y*", "-p", "xdist", "-n", "2")
    done = run(folder, *CASES, *args)
    assert "3 passed" in done.stdout, done.stdout
    assert (folder / "started").read_text() == "started\n" * 2


def test_it_can_be_one_test_among_others(folder: Path) -> None:
    """The driver comes from a fixture, and one that breaks down is an error, not a failure."""
    (folder / "conftest.py").write_text(
        "import pytest\n"
        "@pytest.fixture(scope='session')\n"
        "def relist_driver():\n    return '/no/such/driver'\n"
    )
    (folder / "test_mine.py").write_text(
        "from relist_conformance.pytest_cases import test_client\n\ndef test_other():\n    pass\n"
    )
    done = run(
        folder, "test_mine.py", "--relist-case", "notice:[dn]*g", "--relist-case", "notice:nex*"
    )
    assert "1 passed, 2 errors" in done.stdout
    assert "driver '/no/such/driver' does not start: No such file" in done.stdout


def test_each_process_collects_the_same_as_xdist_demands(folder: Path) -> None:
    collected = [run(folder, *CASES, "--collect-only", "-q", seed=seed).stdout for seed in "12"]
    ids = [line for line in collected[0].splitlines() if "::" in line]
    assert ids == [line for line in collected[1].splitlines() if "::" in line]
    assert len(ids) == len(set(ids)) > 1


@pytest.mark.parametrize(
    ("args", "line"),
    [
        ((), "--relist-driver is missing"),
        (("--relist-case", "failure:keeps*", "--relist-profile", "mcp"), "no case is left to play"),
    ],
)
def test_what_is_missing_is_said(args: tuple[str, ...], line: str, folder: Path) -> None:
    done = run(folder, *CASES, *args)
    assert done.returncode != 0
    assert line in done.stdout + done.stderr


def test_nothing_is_loaded_by_who_does_not_use_it(folder: Path) -> None:
    (folder / "test_mine.py").write_text(
        "import sys\n\n"
        "def test_light():\n"
        "    ours = {name for name in sys.modules if name.startswith('relist')}\n"
        f"    assert ours == {{'relist_conformance', {PLUGIN!r}}}\n"
    )
    assert "1 passed" in run(folder, "test_mine.py").stdout


@pytest.mark.parametrize("word", ["harness", "fail", "inconclusive"])
def test_what_is_not_right_fails_and_says_where_and_why(word: Word) -> None:
    results = [made_result("pass"), made_result(word, reason="because")]
    with pytest.raises(pytest.fail.Exception) as caught:
        conclude(results)
    said = str(caught.value)
    assert said.startswith(f"{word}: tools:made-up on stdio 2025-11-25: ")
    assert ("MADE-01" if word == "fail" else "because") in said


def test_a_warning_warns_or_fails() -> None:
    with pytest.warns(RelistWarning, match="warn: tools:made-up on stdio 2025-11-25: MADE-01"):
        conclude([made_result("warn")])
    with pytest.raises(pytest.fail.Exception, match="MADE-01"):
        conclude([made_result("warn")], strict=True)


def test_only_where_nothing_was_judged_is_a_case_skipped() -> None:
    conclude([made_result("pass"), made_result("untestable", reason="no such thing")])
    with pytest.raises(pytest.skip.Exception, match="no such thing; does not listen"):
        conclude(
            [
                made_result("untestable", reason="no such thing"),
                made_result("not_applicable", reason="does not listen"),
            ]
        )
