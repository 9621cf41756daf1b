"""Two runs of one script that differ in what should not matter: what may differ, and nothing else.

The script is what a session heard in a play (``support.play``): Hypothesis makes it, and shrinks
it. Each relation says in its docstring what differs between the two runs. At the end each is shown
to bite: with one rule of the law altered, it does not hold.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, get_args

import pytest
from attrs import evolve, frozen
from hypothesis import Phase as Stage
from hypothesis import given, settings
from hypothesis import strategies as st

from relist import inputs as i
from relist.effects import Effect, Note, UpdatesEffect
from relist.inputs import PageArrived, SessionInput
from relist.session import Session, deadline_ms, receive
from relist.values import (
    CHANNEL_OF,
    CHANNELS,
    KINDS,
    Channel,
    Kind,
    Phase,
)
from support import relation_faults as faults
from support.halves import Halved, joined
from support.relations import (
    Wording,
    assert_same_but_for,
    independent,
    recorded,
    run_of,
    told,
)
from support.stage import POLICY, SETTINGS, Setting

CHOICES = st.binary(max_size=100) | st.binary(min_size=40, max_size=100)
PLAYS: dict[str, st.SearchStrategy[Any]] = {
    "setting": st.sampled_from(SETTINGS),
    "choices": CHOICES,
}
NO_JITTER = evolve(POLICY, jitter_percent=0)  # jitter depends on kind and serial
LONG_WALKS = evolve(NO_JITTER, pages_max=100)  # more pages than any list of a play has

# --- the clock ------------------------------------------------------------------------------------

SHIFTS = PLAYS | {"by_ms": st.integers(-(10**6), 10**15)}


def shifted_clock(setting: Setting, choices: bytes, by_ms: int) -> None:
    """On a clock that is ahead or behind by a constant, all moments are so; nothing else differs.

    Moments are the fields ``now_ms`` and ``*_at_ms``; durations are not.
    """

    def later(name: str, value: Any) -> Any:
        moment = name == "now_ms" or name.endswith("_at_ms")
        return value + by_ms if moment and value is not None else value

    script, wording = recorded(setting, choices), Wording(later)
    assert_same_but_for(script, wording)
    for step in run_of(script):
        at_ms = deadline_ms(step.after, script.policy)
        shifted = deadline_ms(wording(step.after), script.policy)
        assert shifted == (None if at_ms is None else at_ms + by_ms)


@given(**SHIFTS)
def test_shifting_the_clock(setting: Setting, choices: bytes, by_ms: int) -> None:
    shifted_clock(setting, choices, by_ms)


# --- names of the peer ----------------------------------------------------------------------------

ALIKE = (
    "",
    " ",
    "0",
    "00",
    "a",
    "A",
    "a ",
    "b",
    "B",
    "é",
    "e\u0301",
    "ss",
    "ß",
    "None",
    "null",
    "/",
)
NAMES = st.text(max_size=3) | st.characters(categories=["Cs"]) | st.sampled_from(ALIKE)
RENAMED = PLAYS | {
    "names": st.permutations(ALIKE) | st.lists(NAMES, min_size=16, max_size=16, unique=True)
}


def _dictionary(used: Iterator[str], names: list[str]) -> dict[str, str]:
    """Another name for each that is used; no two get the same."""
    return dict(zip(dict.fromkeys(used), names, strict=False))


def renamed_cursors(setting: Setting, choices: bytes, names: list[str]) -> None:
    """A server that calls its cursors otherwise is asked for them by those names.

    Only ``RequestPage.cursor`` and ``Walk.cursor`` differ, by the renaming. The empty string is a
    name like any other. Rule: DISC-04, DISC-05.
    """
    script = recorded(setting, choices)
    pages = (heard for heard in script.heard if isinstance(heard, PageArrived))
    other = _dictionary((p.next_cursor for p in pages if p.next_cursor is not None), names)

    def rename(name: str, value: Any) -> Any:
        a_cursor = name in ("cursor", "next_cursor") and value is not None
        return other[value] if a_cursor else value

    assert_same_but_for(script, Wording(rename))


@pytest.mark.rule("DISC-04")
@pytest.mark.rule("DISC-05")
@given(**RENAMED)
def test_renaming_cursors(setting: Setting, choices: bytes, names: list[str]) -> None:
    renamed_cursors(setting, choices, names)


def renamed_keys(setting: Setting, choices: bytes, names: list[str]) -> None:
    """A server whose entries have other keys is listed with those, in the same order.

    Only ``Item`` (its key, and the key in its JSON) and ``Snapshot.ambiguous`` differ, by the
    renaming, and ``Walk.size_bytes``, by the length of the names (within bounds, since their note
    tells it). Keys are compared as they are: no case, no blank, no composition is looked through.
    """
    script = recorded(setting, choices, LONG_WALKS)
    pages = (heard for heard in script.heard if isinstance(heard, PageArrived))
    other = _dictionary((item.key for page in pages for item in page.items), names)

    def rename(name: str, value: Any) -> Any:
        if name == "canonical_json":
            key, _, version = value.decode().partition("@")
            return f"{other[key]}@{version}".encode("utf-8", "surrogatepass")
        return other[value] if name in ("key", "ambiguous") else value

    assert_same_but_for(script, Wording(rename), blind_to="size_bytes")


@pytest.mark.rule("DISC-32")
@given(**RENAMED)
def test_renaming_keys(setting: Setting, choices: bytes, names: list[str]) -> None:
    renamed_keys(setting, choices, names)


# --- kinds ----------------------------------------------------------------------------------------

TOOLS_AND_PROMPTS = {Kind.TOOLS: Kind.PROMPTS, Kind.PROMPTS: Kind.TOOLS}
RESOURCES_AND_TEMPLATES = {Kind.RESOURCES: Kind.TEMPLATES, Kind.TEMPLATES: Kind.RESOURCES}
SWAPS = PLAYS | {
    "swap": st.sampled_from(
        [
            TOOLS_AND_PROMPTS,
            RESOURCES_AND_TEMPLATES,
            TOOLS_AND_PROMPTS | RESOURCES_AND_TEMPLATES,
        ]
    )
}


def swapped_kinds(setting: Setting, choices: bytes, swap: dict[Kind, Kind]) -> None:
    """Kinds that change places, with their channels, change places in the outcome.

    All swaps that keep the channels apart: resources and templates share one. The order of effects
    on different kinds may differ, and the names in notes. Without jitter: it depends on the kind.
    """
    channels = {CHANNEL_OF[kind]: CHANNEL_OF[other] for kind, other in swap.items()}

    def other(_: str, value: Any) -> Any:
        if isinstance(value, Kind):
            return swap.get(value, value)
        return channels.get(value, value) if isinstance(value, Channel) else value

    script, wording = recorded(setting, choices, NO_JITTER), Wording(other)
    session = script.first()
    for step in run_of(script):
        session, effects = receive(session, wording(step.heard), script.policy)
        assert told(effects) == told(wording(step.effects)), step.heard
        assert session == _in_order(wording(step.after)), step.heard


def _in_order(session: Session) -> Session:
    pairs = sorted(
        zip(session.catalogs, session.adopted, strict=True),
        key=lambda pair: KINDS.index(pair[0].kind),
    )
    catalogs, adopted = zip(*pairs, strict=True)
    return evolve(session, catalogs=catalogs, adopted=adopted)


@pytest.mark.rule("STATE-05")
@given(**SWAPS)
def test_permuting_kinds(setting: Setting, choices: bytes, swap: dict[Kind, Kind]) -> None:
    swapped_kinds(setting, choices, swap)


ORDERS = PLAYS | {"order": st.permutations(KINDS)}


def other_interleaving(setting: Setting, choices: bytes, order: list[Kind]) -> None:
    """What different kinds hear at one moment may be heard in any order.

    Same states once both orders have been heard, same effects on each kind in the same order. Only
    the order of effects on different kinds may differ.
    """
    script = recorded(setting, choices)
    again = evolve(script, heard=tuple(_interleaved(script.heard, order)))
    run, other = list(run_of(script)), list(run_of(again))
    assert run[-1].after == other[-1].after
    assert told(e for step in run for e in step.effects) == told(
        e for step in other for e in step.effects
    )


def _interleaved(script: tuple[SessionInput, ...], order: list[Kind]) -> list[SessionInput]:
    """Each input is moved before the independent ones just before it whose kinds come later."""
    moved: list[SessionInput] = []
    for heard in script:
        at = len(moved)
        while (
            at
            and independent(heard, moved[at - 1])
            and _rank(heard, order) < _rank(moved[at - 1], order)
        ):
            at -= 1
        moved.insert(at, heard)
    return moved


def _rank(heard: Any, order: list[Kind]) -> int:
    if isinstance(heard, i.NoticeHeard):
        return min(order.index(kind) for kind in KINDS if CHANNEL_OF[kind] is heard.channel)
    return order.index(heard.kind)


@pytest.mark.rule("STATE-05")
@given(**ORDERS)
def test_interleaving_kinds(setting: Setting, choices: bytes, order: list[Kind]) -> None:
    other_interleaving(setting, choices, order)


# --- what concerns no list ------------------------------------------------------------------------

APART = (i.UpdatesWanted, *get_args(i.UpdatesAnswer), i.SurfaceAdopted)
OF_UPDATES = tuple(set(get_args(UpdatesEffect)) - {Note})


def without_what_concerns_no_list(setting: Setting, choices: bytes) -> None:
    """Subscriptions to single resources, their news, and what hosts hand out, leave lists alone.

    A run without them has the same catalogs, link and list channel, and the same effects but those
    of the subscriptions.
    """
    script = recorded(setting, choices)
    session = script.first()
    for step in run_of(script):
        if isinstance(step.heard, APART):
            assert all(isinstance(told, (*OF_UPDATES, Note)) for told in step.effects)
            continue
        session, effects = receive(session, step.heard, script.policy)
        assert _of_lists(effects) == _of_lists(step.effects), step.heard
        same = (session.link, session.listen, session.catalogs)
        assert same == (step.after.link, step.after.listen, step.after.catalogs), step.heard


def _of_lists(effects: Iterable[Effect]) -> list[Effect]:
    return [effect for effect in effects if not isinstance(effect, OF_UPDATES)]


@pytest.mark.rule("RES-01")
@pytest.mark.rule("RES-02")
@given(**PLAYS)
def test_leaving_out_what_concerns_no_list(setting: Setting, choices: bytes) -> None:
    without_what_concerns_no_list(setting, choices)


# --- notices --------------------------------------------------------------------------------------


def doubled_notices(setting: Setting, choices: bytes) -> None:
    """A notice that comes twice in a row leaves what one leaves: the very same object.

    Only notes come twice. A copy that comes when a walk has begun is a notice like any other: it
    cannot be told from news, so it spoils that walk (``test_session_machine`` shows that all ends
    well).
    """
    script = recorded(setting, choices)
    for step in run_of(script):
        if isinstance(step.heard, i.NoticeHeard):
            again, effects = receive(step.after, step.heard, script.policy)
            assert again is step.after
            assert all(isinstance(effect, Note) for effect in effects)


@pytest.mark.rule("NOTE-06")
@given(**PLAYS)
def test_doubling_a_notice(setting: Setting, choices: bytes) -> None:
    doubled_notices(setting, choices)


def further_notices(setting: Setting, choices: bytes) -> None:
    """A notice for a catalog that is doubted and waits changes nothing: the very same object.

    So its phase, window, gap and backoff are the same however many come. Nothing but notes is told.
    Rule: NOTE-06, NOTE-08, FAIL-20.
    """
    script = recorded(setting, choices)
    for step in run_of(script):
        session, serial = step.after, step.after.listen.serial
        for channel in CHANNELS:
            kinds = [kind for kind in KINDS if CHANNEL_OF[kind] is channel]
            notice = i.NoticeHeard(channel, serial, step.heard.now_ms + 1)
            again, effects = receive(session, notice, script.policy)
            for kind in kinds:
                before = session.catalog(kind)
                if before.phase is Phase.STALE and before.doubt is not None:
                    assert again.catalog(kind) is before
                    assert set(told(effects)) <= {Note, *kinds} - {kind}


@pytest.mark.rule("NOTE-08")
@pytest.mark.rule("FAIL-20")
@given(**PLAYS)
def test_further_notices_while_doubted_and_waiting(setting: Setting, choices: bytes) -> None:
    further_notices(setting, choices)


# --- pages ----------------------------------------------------------------------------------------

SPLITS = PLAYS | {"cuts": st.binary(min_size=1, max_size=8)}


def split_pages(setting: Setting, choices: bytes, cuts: bytes) -> None:
    """A page that comes as two leads to the same list, generation, scope and deadline.

    One half carries the lifetime and scope of the page; the other may promise a longer life, or be
    public where the page is private: the strictest page counts. What differs: the request between
    the halves and so the serials after it, and where the pages of an open walk end. Without jitter:
    it depends on the serial. Within bounds: more pages may be too many. Rule: DISC-19, TTL-20.
    """
    script = recorded(setting, choices, LONG_WALKS)
    halved = Halved(script, cuts)
    for step in run_of(script):
        effects = halved.hear(step)
        assert told(effects) == told(step.effects), step.heard
        assert halved.session() == joined(step.after), step.heard


@pytest.mark.rule("DISC-19")
@pytest.mark.rule("TTL-20")
@given(**SPLITS)
def test_splitting_pages(setting: Setting, choices: bytes, cuts: bytes) -> None:
    split_pages(setting, choices, cuts)


# --- each relation bites --------------------------------------------------------------------------


@frozen
class Fault:
    """A law that gets one thing wrong, which breaks a relation. ``seed`` lasts for one test."""

    name: str
    relation: Callable[..., None]
    given: dict[str, st.SearchStrategy[Any]]
    seed: faults.Seed


FAULTS = (
    Fault("windows end on a grid", shifted_clock, SHIFTS, faults.WINDOWS_ON_A_GRID),
    Fault("the empty cursor ends a walk", renamed_cursors, RENAMED, faults.EMPTY_CURSOR_ENDS),
    Fault("cursors must rise", renamed_cursors, RENAMED, faults.CURSORS_MUST_RISE),
    Fault("lists are sorted", renamed_keys, RENAMED, faults.LISTS_ARE_SORTED),
    Fault("keys have no case", renamed_keys, RENAMED, faults.KEYS_HAVE_NO_CASE),
    Fault("templates are not told", swapped_kinds, SWAPS, faults.TEMPLATES_ARE_NOT_TOLD),
    Fault("kinds share a counter", other_interleaving, ORDERS, faults.one_counter),
    Fault("updates are notices", without_what_concerns_no_list, PLAYS, faults.updates_are_notices),
    Fault("notices are counted", doubled_notices, PLAYS, faults.NOTICES_ARE_COUNTED),
    Fault("windows move", further_notices, PLAYS, faults.WINDOWS_MOVE),
    Fault("the last lifetime counts", split_pages, SPLITS, faults.LAST_LIFETIME_COUNTS),
    Fault("the last scope counts", split_pages, SPLITS, faults.LAST_SCOPE_COUNTS),
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_relation_bites(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the profile in force, with the same examples each time."""
    fault.seed(monkeypatch)
    hunting = settings(settings(), phases=[Stage.generate], derandomize=True, database=None)
    with pytest.raises(AssertionError):
        hunting(given(**fault.given)(fault.relation))()


def test_every_relation_is_shown_to_bite() -> None:
    tests = [one for one in globals().values() if getattr(one, "is_hypothesis_test", False)]
    assert len({fault.relation for fault in FAULTS}) == len(tests)
