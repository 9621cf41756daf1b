"""Each complaint of ``relist.check.drift`` about a step that is wrong in just this way."""

from collections.abc import Callable

import pytest
from attrs import evolve

from relist.check.drift import DRIFT, LedgerEdge, Story, broken, edge
from relist.drift import inputs as i
from relist.drift.inputs import LedgerInput
from relist.drift.ledger import Entry, Granted, Ledger, PublishSurface, Record
from relist.drift.values import Publication, SurfaceManifest
from support.drift import MOVED, definition, exactly, inventory, ref

A = ref("a")


def step(heard: LedgerInput) -> LedgerEdge:
    """A step of a ledger whose one agent sees a@1, which was approved."""
    ledger, story = Ledger(), Story()
    for told in (
        i.ProfileSet(exactly("agent", A), "me", "", 0),
        inventory({"a": "1"}),
        i.Approved("agent", {A: definition("a").id}, "me", "", 0),
    ):
        made = edge(ledger, told, story)
        ledger, story = made.after, made.story
    return edge(ledger, heard, story)


def shows(made: LedgerEdge, publication: Publication) -> LedgerEdge:
    """The same, with another surface kept."""
    return made._replace(after=evolve(made.after, publications={"agent": publication}))


def still_shown(made: LedgerEdge) -> LedgerEdge:
    return shows(made, made.before.publications["agent"])


def granted(made: LedgerEdge, *kept: Granted) -> LedgerEdge:
    places = [("agent", A)] * len(kept)
    return made._replace(after=evolve(made.after, granted=dict(zip(places, kept, strict=True))))


def entry(made: LedgerEdge, what: str) -> LedgerEdge:
    about = Entry(made.before.entries + 1, 0, what, "", "", "agent", A)
    return made._replace(effects=(Record(about),))


def published(made: LedgerEdge, generation: int, parent: int | None) -> LedgerEdge:
    again = evolve(made.published[0], generation=generation, parent=parent)
    return made._replace(effects=(*made.effects[:-1], PublishSurface(again)))


CHANGED, SAME = inventory({"a": "2"}), inventory({"a": "1"})
EMPTY = Granted({}, frozenset())
WRONG: list[tuple[LedgerInput, Callable[[LedgerEdge], LedgerEdge], str, str]] = [
    (CHANGED, still_shown, "no-unreviewed-exposure", "which is not there"),
    (inventory({"a": "1"}, MOVED), still_shown, "no-unreviewed-exposure", "identity is in doubt"),
    (
        SAME,
        lambda made: shows(
            made, Publication("agent", 9, 8, SurfaceManifest({A: definition("a", "3").id}))
        ),
        "no-unreviewed-exposure",
        "which nobody let through",
    ),
    (SAME, granted, "intent-survives", "forgot what was decided about home/tool/a"),
    (SAME, lambda made: granted(made, EMPTY), "intent-survives", "took back what was approved"),
    (SAME, lambda made: entry(made, "gone"), "absence-needs-proof", "taken for gone, and is not"),
    (
        inventory({}, clean=False),
        lambda made: entry(made, "gone"),
        "absence-needs-proof",
        "follows from an observation that proves nothing",
    ),
    (SAME, lambda made: entry(made, "approved"), "no-name-inheritance", "in somebody's name"),
    (
        CHANGED,
        lambda made: published(made, 5, 4),
        "manifest-is-atomic",
        "5 of agent does not follow 2",
    ),
    (CHANGED, still_shown, "manifest-is-atomic", "another surface was published than is kept"),
    (
        SAME,
        lambda made: shows(made, Publication("agent", 3, 2, SurfaceManifest({}))),
        "manifest-is-atomic",
        "not what stands",
    ),
    (
        CHANGED,
        lambda made: made._replace(effects=made.effects[::-1]),
        "history-is-append-only",
        "recorded after it was published",
    ),
    (
        CHANGED,
        lambda made: made._replace(before=made.after),
        "quiet-when-equal",
        "given the same surface again",
    ),
]


@pytest.mark.parametrize(("heard", "alter", "name", "text"), WRONG)
def test_a_wrong_step(
    heard: LedgerInput, alter: Callable[[LedgerEdge], LedgerEdge], name: str, text: str
) -> None:
    right = step(heard)
    assert not list(broken(right))
    complaint = DRIFT[name](alter(right))
    assert complaint is not None
    assert text in complaint
