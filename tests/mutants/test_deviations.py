"""Where each client that is broken on purpose first leaves what the reference machine allows.

All of it stands in ``deviations.txt``, which ``--rewrite`` renews: read the difference. Of some
defects there is nothing to see; those of the law have their reasons here.
"""

import re
from pathlib import Path
from random import Random

import pytest
from trio._core import _run

from mutants import defects, readings, shapes, storms
from mutants.every import ALL, DEFECTS
from mutants.inside import judge_inside
from relist.check.deviation import first_deviation

TABLE = Path(__file__).with_name("deviations.txt")
QUICK = {
    name: defect for name, defect in DEFECTS.items() if "memory" in ALL[defect.case].transports
}
"""Those that can be played in virtual time."""

_TIMES = "only when it lists or asks is wrong, and the order is right"
_EAGER = "it lists more than it must, which is a client's choice"
_WAITS = "it waits for what never comes, and nothing but time says that this is too long"
SILENT = {
    "counts-from-sending": _EAGER,
    "polls": _EAGER,
    "polls-in-step": _TIMES,
    "any-tag-will-do": _EAGER,
    "any-number-is-its-own": _EAGER,
    "lists-on-each-notice": _EAGER,
    "does-not-space": _TIMES,
    "retries-at-once": _TIMES,
    "hammers-listen": _TIMES,
    "walks-without-end": "where a client cuts an endless list is its choice",
    "waits-for-the-ack": _WAITS,
    "waits-for-the-probe": _WAITS,
    "gives-up-in-silence": "nobody can see that it has given up: it might walk twice",
}
"""Defects of which a history shows no deviation, and why."""


def _told(name: str, revision: str) -> str:
    """Of this defect in its own case; numbers of events, which may vary, are left out."""
    with pytest.MonkeyPatch.context() as patch:
        # What runs first among equals is drawn by lot, and here always the same lot.
        patch.setattr(_run, "_ALLOW_DETERMINISTIC_SCHEDULING", True)
        patch.setattr(_run, "_r", Random(1))
        QUICK[name].seed(patch)
        history = judge_inside(ALL[QUICK[name].case], revision).history
    left = first_deviation(history)
    if left is None:
        return "  nothing\n"
    kind = next(event.kind for event in history if event.seq == left.seq)
    return re.sub(r"#\d+", "#", f"  {kind}: {left.text}\n    the machine: {left.held}\n")


def _table() -> dict[str, str]:
    """What is pinned, by defect: a line for each revision, and below it what is said."""
    sections = re.split(r"^(?=\S)", TABLE.read_text(), flags=re.MULTILINE)[1:]
    found: dict[str, str] = {}
    for section in sections:
        name = section.partition(" ")[0]
        found[name] = found.get(name, "") + section
    return found


@pytest.mark.parametrize("name", QUICK)
def test_what_is_said_of_a_defect(name: str, request: pytest.FixtureRequest) -> None:
    case = ALL[QUICK[name].case]
    said = "".join(
        f"{name} ({case.id}, {revision})\n{_told(name, revision)}" for revision in case.revisions
    )
    if request.config.getoption("--rewrite"):
        table = {one: text for one, text in _table().items() if one in QUICK} | {name: said}
        TABLE.write_text("".join(table[one] for one in sorted(table)))
    assert said == _table().get(name)


def test_the_table_names_no_other() -> None:
    assert sorted(_table()) == sorted(QUICK)


def test_of_defects_of_the_law_silence_has_a_reason() -> None:
    """Other defects, such as of single resources and peers, are no matter of lists."""
    silent = {name for name, said in _table().items() if "\n    the machine: " not in said}
    law = {one.name for module in (defects, readings, shapes, storms) for one in module.DEFECTS}
    assert silent & law <= set(SILENT) <= silent
