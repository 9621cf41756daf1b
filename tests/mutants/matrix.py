"""Plays cases against defects and pins what is not passed: ``python tests/mutants/matrix.py``.

``--case GLOB`` and ``--defect GLOB`` play some of them, and leave the other lines as they are. In
virtual time, but for what only HTTP has. Look at each line that changed: a case that is failed
because of a defect that has nothing to do with it would accuse somebody of the wrong thing.
"""

import argparse
import multiprocessing
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # where pytest looks for ``mutants``

from mutants.every import ALL, DEFECTS, TOUCHED, Touch, touches, word_of
from mutants.inside import judge_inside, judge_over_http


def played(defect: str, cases: list[str]) -> list[Touch]:
    """These cases under this defect, where they are not passed."""
    return [touch for touch in _plays(defect, cases) if touch.word != "pass"]


def _plays(defect: str, cases: list[str]) -> Iterator[Touch]:
    """The case that is for the defect is played alone, and so is, once more, what is not passed
    over HTTP side by side with others."""
    cells = [(ALL[name], revision) for name in cases for revision in ALL[name].revisions]
    with pytest.MonkeyPatch.context() as patch:
        DEFECTS[defect].seed(patch)
        others = (cell for cell in cells if cell[0].id != DEFECTS[defect].case)
        waiting = [cell for cell in others if "memory" not in cell[0].transports]
        over_http = judge_over_http(waiting) if len(waiting) > 1 else {}
        for case, revision in cells:
            found = over_http.get((case.id, revision))
            if found is None or word_of(found) != "pass":
                found = judge_inside(case, revision)
            yield Touch(defect, case.id, revision, word_of(found))


def main() -> None:
    """Play, and write the file anew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", default="*", metavar="GLOB")
    parser.add_argument("--defect", default="*", metavar="GLOB")
    parser.add_argument("-j", type=int, default=2, metavar="N", help="processes")
    given = parser.parse_args()
    cases = [name for name in ALL if fnmatchcase(name, given.case)]
    defects = [name for name in DEFECTS if fnmatchcase(name, given.defect)]
    with multiprocessing.get_context("spawn").Pool(given.j) as pool:
        found = pool.starmap(played, [(defect, cases) for defect in defects], chunksize=1)
    before = touches()
    kept = [
        touch
        for touch in before
        if touch.defect in DEFECTS
        and touch.case in ALL
        and not (touch.defect in defects and touch.case in cases)
    ]
    lines = sorted({*kept, *(touch for row in found for touch in row)})
    TOUCHED.write_text("".join(f"{touch}\n" for touch in lines))
    for sign, some in (("-", set(before) - set(lines)), ("+", set(lines) - set(before))):
        for touch in sorted(some):
            print(sign, touch)


if __name__ == "__main__":
    main()
