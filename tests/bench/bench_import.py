"""What ``import relist`` costs beyond the two libraries it needs, in whole processes.

A process leaves as soon as it has imported: tidying up is no part of the import.
"""

import os
import subprocess
import sys
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median

from bench.conftest import Sample

ROUNDS = 40
LEAVE = "import os; os._exit(0)"
BASE, OURS = f"import attrs, statemachine; {LEAVE}", f"import relist; {LEAVE}"


def _cost_ms(program: str, environment: dict[str, str]) -> float:
    """Processor time of one fresh interpreter."""
    before = getrusage(RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    after = getrusage(RUSAGE_CHILDREN)
    return 1_000 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def test_import(measured: dict[str, Sample], tmp_path: Path) -> None:
    """In turns, so that a busy moment meets both. Byte code is there, as after an installation."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    for program in (BASE, OURS):
        _cost_ms(program, environment)
    base, ours = zip(
        *((_cost_ms(BASE, environment), _cost_ms(OURS, environment)) for _ in range(ROUNDS)),
        strict=True,
    )
    measured["import"] = Sample(min(ours) - min(base), median(ours) - median(base))
