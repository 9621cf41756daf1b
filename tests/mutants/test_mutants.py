"""Every case is proved twice: the reference client passes it, a client broken on purpose does not.

In memory and in virtual time, in both eras. A defect is caught by the case that is for it; of the
other cases only those that the same defect must touch may be anything but passed.
"""

import pytest

from mutants.defects import DEFECTS, Defect
from mutants.inside import judge_inside
from relist_conformance.play import Played
from relist_conformance.script import Case, load_cases

CASES = {case.id: case for case in load_cases()}
REVISIONS = ("2025-11-25", "2026-07-28")


def _word(played: Played) -> str:
    if played.verdict is not None and played.outcome.word == "judged":
        return played.verdict.word
    return played.outcome.word


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_reference_client_passes(case: Case, revision: str) -> None:
    played = judge_inside(case, revision)
    assert _word(played) == "pass", (played.outcome, played.verdict)


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_a_defect_is_caught_by_its_case_and_by_no_unrelated_one(
    defect: Defect, revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    defect.seed(monkeypatch)
    words = {name: _word(judge_inside(case, revision)) for name, case in CASES.items()}
    severity = CASES[defect.case].severity[revision]
    assert words[defect.case] == severity
    unrelated = {name: word for name, word in words.items() if name not in defect.also}
    assert unrelated == dict.fromkeys(unrelated, "pass") | {defect.case: severity}


def test_every_case_has_a_client_that_fails_it() -> None:
    assert {defect.case for defect in DEFECTS} == set(CASES)
