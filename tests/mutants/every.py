"""All defects, all cases, and which case each defect touches.

``touched.txt`` pins what became of every case under every defect, where it was not passed:
one line for defect, case, revision and word. ``python tests/mutants/matrix.py`` writes it.
"""

from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path

from attrs import frozen

from mutants.kit import Defect
from relist_conformance.check import observed
from relist_conformance.play import Played
from relist_conformance.script import load_cases

HERE = Path(__file__).parent
TOUCHED = HERE / "touched.txt"
ALL = {case.id: case for case in load_cases()}


def _defects() -> Iterator[Defect]:
    """The ``DEFECTS`` of each module of this folder."""
    for path in sorted(HERE.glob("*.py")):
        if "\nDEFECTS = (" in path.read_text():
            yield from import_module(f"mutants.{path.stem}").DEFECTS


def _by_name(defects: Iterable[Defect]) -> dict[str, Defect]:
    named: dict[str, Defect] = {}
    for defect in defects:
        assert defect.name not in named, f"two defects are called {defect.name}"
        named[defect.name] = defect
    return named


DEFECTS = _by_name(_defects())


def word_of(played: Played) -> str:
    """What became of a play: the verdict, or why there is none."""
    return observed(played).word


@frozen(order=True)
class Touch:
    """A case that is not passed because of a defect."""

    defect: str
    case: str
    revision: str
    word: str

    def __str__(self) -> str:
        return f"{self.defect} {self.case} {self.revision} {self.word}"


def touches() -> list[Touch]:
    """All that is pinned, in order."""
    return sorted(Touch(*line.split()) for line in TOUCHED.read_text().splitlines())
