"""A publisher among those who commit, read and listen: every promise, after every step.

Then the same with one thing wrong at a time: each promise is seen to bite.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, frozen
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

import support.audience
from relist import publication, publisher
from relist.values import KINDS, Channel, Kind
from support.audience import TOPICS, URIS, VIEWS, Audience, Place, Violation

PLACES = st.tuples(st.sampled_from(VIEWS), st.sampled_from(KINDS))
BUSY: Place = ("readers", Kind.TOOLS)
LETTERS = st.permutations("abcde").map("".join)
LISTS = st.builds(lambda one, end: one[:end], LETTERS, st.integers(0, 5)) | st.sampled_from(
    ["", "abc", "cba", "abC", "x"]
)


class PublisherMachine(RuleBasedStateMachine):
    """Most of it happens in one place, so that things meet."""

    @initialize(alone=st.booleans())
    def start(self, alone: bool) -> None:
        self.all = Audience(alone)

    @rule(place=PLACES | st.just(BUSY), letters=LISTS)
    def commit(self, place: Place, letters: str) -> None:
        self.all.commit(place, letters)

    @rule(lists=st.lists(LISTS, min_size=2, max_size=8), between_ms=st.sampled_from([0, 1, 9, 15]))
    def storm(self, lists: list[str], between_ms: int) -> None:
        for letters in lists:
            self.all.commit(BUSY, letters)
            self.all.wait(between_ms)

    @rule(place=PLACES | st.just(BUSY))
    def begin(self, place: Place) -> None:
        self.all.begin(place)

    @rule(place=PLACES | st.just(BUSY))
    def read(self, place: Place) -> None:
        self.all.read(place)

    @precondition(lambda self: self.all.walks)
    @rule(number=st.integers(0, 9))
    def go_on(self, number: int) -> None:
        self.all.go_on(number)

    @precondition(lambda self: self.all.walks)
    @rule(place=PLACES, number=st.integers(0, 9))
    def ask_elsewhere(self, place: Place, number: int) -> None:
        self.all.ask_junk(place, self.all.walks[number % len(self.all.walks)].cursor)

    @rule(place=PLACES, cursor=st.text(max_size=5))
    def ask_junk(self, place: Place, cursor: str) -> None:
        self.all.ask_junk(place, cursor)

    @rule(
        name=st.sampled_from("xyz"),
        view=st.sampled_from(VIEWS),
        topics=st.sets(st.sampled_from(TOPICS)),
    )
    def subscribe(self, name: str, view: str, topics: Any) -> None:
        self.all.subscribe(name, view, topics)

    @rule(name=st.sampled_from("xyz"))
    def leave(self, name: str) -> None:
        self.all.leave(name)

    @rule(uri=st.sampled_from(URIS), view=st.sampled_from(VIEWS) | st.none())
    def update(self, uri: str, view: str | None) -> None:
        self.all.update(uri, view)

    @rule(for_ms=st.sampled_from([1, 9, 10, 39, 40, 200]))
    def wait(self, for_ms: int) -> None:
        self.all.wait(for_ms)

    def teardown(self) -> None:
        if hasattr(self, "all") and not self.all.broken:
            self.all.settle()


TestPublisher = PublisherMachine.TestCase


# --- seeded faults --------------------------------------------------------------------------------


@frozen
class Fault:
    """One function of the law gets it wrong, and breaks this promise."""

    name: str
    function: str
    wrong: Callable[[Callable[..., Any]], Callable[..., Any]]
    breaks: str


def _moved_window(right: Callable[..., Any]) -> Callable[..., Any]:
    """Each change begins the window anew: a storm starves everybody."""

    def wrong(view: Any, topic: Any, now_ms: int, policy: Any) -> Any:
        due = [evolve(w, due_at_ms=None) if w.topic == topic else w for w in view.windows]
        return right(evolve(view, windows=tuple(due)), topic, now_ms, policy)

    return wrong


def _no_gap(right: Callable[..., Any]) -> Callable[..., Any]:
    """Notices follow each other as fast as windows do."""
    return lambda view, topic, now_ms, policy: right(
        view, topic, now_ms, evolve(policy, gap_ms=policy.merge_ms)
    )


def _told_at_once(right: Callable[..., Any]) -> Callable[..., Any]:
    """The notice leaves, and the list comes into force with the next commit."""

    def wrong(view: Any, kind: Any, items: Any, *more: Any) -> Any:
        after = right(view, kind, items, *more)
        at = KINDS.index(kind)
        late = evolve(after.shown[at], now=view.shown[at].now, known=(), mixed=True)
        return evolve(after, shown=(*after.shown[:at], late, *after.shown[at + 1 :]))

    return wrong


def _always_told(_: Callable[..., Any]) -> Callable[..., Any]:
    """What came back unseen, and what nobody holds otherwise, is told of all the same."""
    return property(lambda shown: True)  # type: ignore[return-value]


def _back_is_back(_: Callable[..., Any]) -> Callable[..., Any]:
    """What came back is never told of, though somebody saw it gone."""
    return property(lambda shown: shown.known not in (None, shown.now.items))  # type: ignore[return-value]


def _undeclared(right: Callable[..., Any]) -> Callable[..., Any]:
    """Everything that is asked for is granted and told of."""
    return lambda asked, offer: frozenset(asked)


def _to_all(right: Callable[..., Any]) -> Callable[..., Any]:
    """Every subscriber of the view is told, whatever it asked for."""

    def wrong(name: str, view: Any, now_ms: int) -> Any:
        after, told = right(name, view, now_ms)
        everybody = tuple(one.name for one in view.subscribers)
        return after, tuple(announced._replace(to=everybody) for announced in told)

    return wrong


def _of_another_view(right: Callable[..., Any]) -> Callable[..., Any]:
    """Notices bear the name of another view."""

    def wrong(name: str, view: Any, now_ms: int) -> Any:
        after, told = right(name, view, now_ms)
        return after, tuple(announced._replace(view="readers") for announced in told)

    return wrong


def _as_given(_: Callable[..., Any]) -> Callable[..., Any]:
    """Lists stay in the order in which they were given."""
    return tuple


def _torn(right: Callable[..., Any]) -> Callable[..., Any]:
    """A cursor is a place in whatever is in force now."""

    def wrong(shown: Any, cursor: str) -> Any:
        found = right(shown, cursor)
        return found and (shown.now, found[1])

    return wrong


def _no_versions(right: Callable[..., Any]) -> Callable[..., Any]:
    """All versions are kept for ever."""
    return lambda view, kind, cursor, policy: right(
        view, kind, cursor, evolve(policy, walks_max=1_000)
    )


def _always_fresh(right: Callable[..., Any]) -> Callable[..., Any]:
    """What is outdated bears a lifetime as well."""

    def wrong(view: Any, kind: Any, cursor: Any, policy: Any) -> Any:
        after, served = right(view, kind, cursor, policy)
        return after, served and served._replace(ttl_ms=policy.ttl_ms)

    return wrong


def _never_done(right: Callable[..., Any]) -> Callable[..., Any]:
    """What was told is still to be told."""

    def wrong(name: str, view: Any, now_ms: int) -> Any:
        after, told = right(name, view, now_ms)
        return evolve(after, windows=view.windows), told

    return wrong


def _forgotten_update(right: Callable[..., Any]) -> Callable[..., Any]:
    """An update of a resource is told of only if nobody else hears of anything."""
    return lambda view, *more: view if len(view.subscribers) > 1 else right(view, *more)


def _dead_is_empty(right: Callable[..., Any]) -> Callable[..., Any]:
    """A cursor that means nothing begins the list anew."""
    return lambda shown, cursor: right(shown, cursor) or (shown.now, 0)


def _new_object(right: Callable[..., Any]) -> Callable[..., Any]:
    """A commit that changes nothing opens a window."""

    def wrong(view: Any, kind: Any, items: Any, now_ms: int, pushes: bool, policy: Any) -> Any:
        after = right(view, kind, items, now_ms, pushes, policy)
        return publication._open(after, Channel.TOOLS, now_ms, policy)

    return wrong


def _windows_kept(_: Callable[..., Any]) -> Callable[..., Any]:
    """Each commit leaves a window."""
    return lambda view, topic, now_ms, policy: evolve(
        view, windows=(*view.windows, publication.Window(topic, now_ms + policy.gap_ms, None))
    )


FAULTS = [
    Fault("moved window", "_open", _moved_window, "bounded-lag"),
    Fault("no gap", "_open", _no_gap, "bounded-traffic"),
    Fault("windows pile up", "_open", _windows_kept, "bounded-state"),
    Fault(
        "told at once",
        "commit",
        _told_at_once,
        "committed-before-notice",
    ),
    Fault("always told", "Shown.outdated", _always_told, "visible-change"),
    Fault("back is back", "Shown.outdated", _back_is_back, "bounded-lag"),
    Fault("undeclared granted", "granted", _undeclared, "declared-only"),
    Fault("never done", "elapse", _never_done, "wakes-ahead"),
    Fault("told to all", "elapse", _to_all, "asked-only"),
    Fault("of another view", "elapse", _of_another_view, "views-stay-apart"),
    Fault("order as given", "arrange", _as_given, "order-of-the-set"),
    Fault("torn walk", "_find", _torn, "one-version"),
    Fault("versions kept", "page", _no_versions, "bounded-state"),
    Fault("always fresh", "page", _always_fresh, "hints-are-true"),
    Fault("forgotten update", "updated", _forgotten_update, "bounded-lag"),
    Fault("no dead cursor", "_find", _dead_is_empty, "dead-cursors"),
    Fault("new for nothing", "commit", _new_object, "nothing-for-nothing"),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_seeded_fault_breaks_its_promise(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, _, name = fault.function.rpartition(".")
    for module in (publication, publisher):
        place: Any = getattr(module, owner, None) if owner else module
        if place is not None and hasattr(place, name):
            monkeypatch.setattr(place, name, fault.wrong(getattr(place, name)))
            if owner:
                break
    monkeypatch.setattr(Audience, "watched", fault.breaks)
    with pytest.raises(Violation, match=fault.breaks):
        run_state_machine_as_test(PublisherMachine, settings=_hunting())


def _hunting() -> settings:
    return settings(
        max_examples=20 * settings().max_examples,  # it ends with the first that is found
        phases=[Phase.generate],
        derandomize=True,
        database=None,
        report_multiple_bugs=False,
        print_blob=False,
    )


def test_each_promise_is_seen_to_bite() -> None:
    text = Path(support.audience.__file__).read_text()
    named = set(re.findall(r'promise\(\s*"([\w-]+)"', text))
    assert named == {fault.breaks for fault in FAULTS}
