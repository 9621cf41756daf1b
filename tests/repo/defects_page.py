"""The page of the clients broken on purpose: each defect, and the cases that catch it."""

from collections.abc import Iterable

from mutants.clusters import CLUSTERS, Cluster
from mutants.every import ALL, DEFECTS, Touch, touches
from mutants.kit import Defect
from relist.check.expect import ANOMALIES

_INTRO = """\
The suite is itself tested: the reference client, with one defect each, is played through all
cases. A defect is caught by the case that is for it. *Also caught by* are cases in which the same
defect shows as well. *Says nothing* are cases that do not come to a verdict about such a client.
All other cases pass. What is pinned here is played anew by `pytest -m nightly tests/mutants`, and
in part by every run of the tests; `python tests/mutants/matrix.py` writes the pins anew."""

_REPORTS = """\
The kinds of fault in a log of 161 public bug reports about clients, and defects that stand for
each."""


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
    lines += ["## What people report", "", _REPORTS, "", "| kind of fault | defects |"]
    lines += ["| --- | --- |", *map(_cluster, CLUSTERS.values()), ""]
    return "\n".join(lines)


def _cluster(cluster: Cluster) -> str:
    told = cluster.why_not or _cases({*cluster.defects}, DEFECTS)
    return f"| {cluster.name} | {told} |"


def _row(defect: Defect) -> str:
    found = [one for one in touches() if one.defect == defect.name and one.case != defect.case]
    caught = {one.case for one in found if one.word in ("warn", "fail")}
    told = " ".join((defect.seed.__doc__ or "").split())
    cells = (f"`{defect.name}`", told, f"`{defect.case}`", _cases(caught), _rest(found, caught))
    return f"| {' | '.join(cells)} |"


def _rest(found: list[Touch], caught: set[str]) -> str:
    return _cases({one.case for one in found} - caught)


def _cases(names: set[str], of: Iterable[str] = ALL) -> str:
    return ", ".join(f"`{name}`" for name in of if name in names)
