"""The whole suite again and again on a machine that is busy: the same verdicts each time.

    RELIST_RUNS=10 pytest -m nightly tests/conformance/test_under_load.py

plays all cases ten times against each client while two processes take what they can get of the
processor. A verdict that hangs on who came first would show as a difference, and waiting that is
bounded too closely as inconclusive.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from conformance.pinned import verdicts

RUNS = int(os.environ.get("RELIST_RUNS", "3"))
CLIENTS = {
    "reference": "relist_conformance.drivers.reference",
    "naive": "relist_conformance.drivers.naive",
    "lazy": "clients.lazy",
    "pages": "clients.pages",
}
TESTS = Path(__file__).parents[1]
pytestmark = pytest.mark.nightly


@pytest.fixture
def busy() -> Generator[None]:
    """Two processes that do nothing but count."""
    spin = (sys.executable, "-c", "while True: pass")
    processes = [subprocess.Popen(spin) for _ in range(2)]
    yield
    for process in processes:
        process.kill()
        process.wait()


@pytest.mark.usefixtures("busy")
@pytest.mark.parametrize("client", CLIENTS)
def test_verdicts_do_not_hang_on_the_load(
    client: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH"))))
    monkeypatch.setenv("PYTHONPATH", path)
    command = shlex.join((sys.executable, "-m", CLIENTS[client]))
    first, *others = [verdicts(command, tmp_path / f"{run}.json") for run in range(RUNS)]
    assert [case for case, words in first.items() if "inconclusive" in words] == []
    for run in others:
        assert {case: (first[case], run[case]) for case in run if run[case] != first[case]} == {}
