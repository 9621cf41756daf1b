"""The page of the clients broken on purpose: each defect, and the cases that catch it."""

from collections.abc import Iterator

from mutants.every import ALL, DEFECTS, Touch, touches
from mutants.kit import Defect
from relist.check.expect import ANOMALIES

_INTRO = """\
The suite is itself tested: the reference client, with one defect each, is played through all
cases. A defect is caught by the case that is for it. *Also caught by* are cases in which the same
defect shows as well. *Says nothing* are cases that do not come to a verdict about such a client.
All other cases pass. What is pinned here is played anew by `pytest -m nightly tests/mutants`, and
in part by every run of the tests; `python tests/mutants/matrix.py` writes the pins anew."""


def defects_page(command: str) -> str:
    """The whole page; ``command`` is what makes it anew."""
    by_case = {case: [d for d in DEFECTS.values() if d.case == case] for case in ALL}
    lines = ["# Clients broken on purpose", "", f"<!-- generated: {command} -->", "", _INTRO, ""]
    lines += [f"{len(DEFECTS)} defects, {len(ALL)} cases.", ""]
    for anomaly in ANOMALIES:
        defects = [d for case in ALL.values() if case.anomaly == anomaly for d in by_case[case.id]]
        lines += [
            f"## {anomaly}",
            "",
            "| defect | what it does | case | also caught by | says nothing |",
        ]
        lines += ["| --- | --- | --- | --- | --- |", *map(_row, defects), ""]
    return "\n".join(lines)


def _row(defect: Defect) -> str:
    found = [one for one in touches() if one.defect == defect.name and one.case != defect.case]
    caught = {one.case for one in found if one.word in ("warn", "fail")}
    told = " ".join((defect.seed.__doc__ or "").split())
    cells = (f"`{defect.name}`", told, f"`{defect.case}`", _cases(caught), _rest(found, caught))
    return f"| {' | '.join(cells)} |"


def _rest(found: list[Touch], caught: set[str]) -> str:
    return _cases({one.case for one in found} - caught)


def _cases(names: set[str]) -> str:
    return ", ".join(f"`{name}`" for name in _ordered(names))


def _ordered(names: set[str]) -> Iterator[str]:
    return (name for name in ALL if name in names)
