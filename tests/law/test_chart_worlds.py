"""The checks of the link chart and of the listen chart bite: steps that get one thing wrong."""

from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve

from relist import inputs as i
from relist.check.chart_worlds import POLICY, LinkWorld, ListenWorld
from relist.check.edge import ListenEdge
from relist.check.explore import explore
from relist.check.joined import LINK_ALWAYS, LISTEN_ALWAYS
from relist.effects import CloseTransport, OpenTransport, SendInitialized
from relist.machine import step_link, step_listen
from relist.rules.base import LinkStep, ListenStep
from relist.values import (
    Carrier,
    Channel,
    Failure,
    LinkPhase,
    ListenPhase,
    Wire,
    new_listen,
)

Fault = Callable[[Any, Any, Any], Any]


def _without(effect: type[Any]) -> Fault:
    def step(link: Any, heard: Any, policy: Any) -> Any:
        state, effects = step_link(link, heard, policy)
        return LinkStep(state, tuple(told for told in effects if not isinstance(told, effect)))

    return step


def _believes_other_epochs(link: Any, heard: Any, policy: Any) -> Any:
    if hasattr(heard, "epoch"):
        heard = evolve(heard, epoch=link.epoch)
    return step_link(link, heard, policy)


def _asks_again(link: Any, heard: Any, policy: Any) -> Any:
    state, effects = step_link(link, heard, policy)
    return LinkStep(state, effects * 2) if state.phase is LinkPhase.PROBING else (state, effects)


def _waits_for_ever(link: Any, heard: Any, policy: Any) -> Any:
    state, effects = step_link(link, heard, policy)
    return LinkStep(evolve(state, limit_at_ms=None), effects)


def _speaks_anything(link: Any, heard: Any, policy: Any) -> Any:
    state, effects = step_link(link, heard, policy)
    entered = state.phase is LinkPhase.LIVE is not link.phase
    return LinkStep(evolve(state, version="1999-01-01") if entered else state, effects)


def _never_retries(link: Any, heard: Any, policy: Any) -> Any:
    waits = link.phase is LinkPhase.WAITING and type(heard).__name__ == "TimePassed"
    return LinkStep(link) if waits else step_link(link, heard, policy)


def _remembers_failures(link: Any, heard: Any, policy: Any) -> Any:
    state, effects = step_link(link, heard, policy)
    closed = state.phase is LinkPhase.CLOSED
    return LinkStep(evolve(state, failures=link.failures) if closed else state, effects)


LINK_FAULTS = (
    ("one-transport", _without(CloseTransport)),
    ("one-transport", _without(OpenTransport)),
    ("one-question", _asks_again),
    ("late-for-the-link", _believes_other_epochs),
    ("time-is-set", _waits_for_ever),
    ("live-is-known", _without(SendInitialized)),
    ("live-is-known", _speaks_anything),
    ("link-is-heeded", _never_retries),
    ("link-goes-for-its-reason", _remembers_failures),
    ("settles", _never_retries),
)


@pytest.mark.parametrize(("check", "fault"), LINK_FAULTS)
def test_a_check_of_the_link_bites(check: str, fault: Fault) -> None:
    checks = {check: LINK_ALWAYS[check]} if check in LINK_ALWAYS else {}
    found = explore(LinkWorld(Wire.HTTP, step=fault, checks=checks)).counterexample
    assert found is not None
    assert found.claim.startswith(f"{check}: ")


def _grants_all(listen: Any, heard: Any, policy: Any) -> Any:
    state, effects = step_listen(listen, heard, policy)
    opened = state.phase is ListenPhase.OPEN
    return ListenStep(evolve(state, granted=frozenset(Channel)) if opened else state, effects)


def _believes_other_streams(listen: Any, heard: Any, policy: Any) -> Any:
    if hasattr(heard, "serial"):
        heard = evolve(heard, serial=listen.serial)
    return step_listen(listen, heard, policy)


def _never_cancels(listen: Any, heard: Any, policy: Any) -> Any:
    state, effects = step_listen(listen, heard, policy)
    return ListenStep(state, () if state.phase is ListenPhase.RESTING else effects)


def _gives_an_open_stream_a_limit(listen: Any, heard: Any, policy: Any) -> Any:
    state, effects = step_listen(listen, heard, policy)
    opened = state.phase is ListenPhase.OPEN
    return ListenStep(evolve(state, limit_at_ms=heard.now_ms + 1) if opened else state, effects)


def _asks_again_at_once(listen: Any, heard: Any, policy: Any) -> Any:
    state, effects = step_listen(listen, heard, policy)
    rests = state.due_at_ms is not None
    return ListenStep(evolve(state, due_at_ms=heard.now_ms) if rests else state, effects)


def _grants_nothing(listen: Any, heard: Any, policy: Any) -> Any:
    state, effects = step_listen(listen, heard, policy)
    return ListenStep(evolve(state, granted=frozenset()), effects)


LISTEN_FAULTS = (
    ("granted-is-open", _grants_all),
    ("late-for-push", _believes_other_streams),
    ("one-listen", _never_cancels),
    ("push-time-is-set", _gives_an_open_stream_a_limit),
    ("push-is-heeded", _grants_nothing),
    ("bounded-traffic", _asks_again_at_once),
)


@pytest.mark.parametrize(("check", "fault"), LISTEN_FAULTS)
def test_a_check_of_push_bites(check: str, fault: Fault) -> None:
    checks = {check: LISTEN_ALWAYS[check]} if check in LISTEN_ALWAYS else {}
    found = explore(ListenWorld(step=fault, checks=checks)).counterexample
    assert found is not None
    assert found.claim.startswith(f"{check}: ")


def test_every_check_of_both_is_shown_to_bite() -> None:
    assert {check for check, _ in LINK_FAULTS} >= set(LINK_ALWAYS)
    assert {check for check, _ in LISTEN_FAULTS} >= set(LISTEN_ALWAYS)


@pytest.mark.parametrize("code", [-32600, -32601, -32021])
def test_what_lasts_ends_push_for_good_by_the_law_and_by_its_checks(code: int) -> None:
    """No world says all of these."""
    wanted = i.PushWanted(frozenset({Channel.TOOLS}), Carrier.SUBSCRIPTION, 0)
    asked, _ = step_listen(new_listen(), wanted, POLICY)
    ended = i.PushEnded(asked.serial, Failure("error answer", code), 0)
    after, effects = step_listen(asked, ended, POLICY)
    assert after.phase is ListenPhase.OFF
    edge = ListenEdge(asked, ended, after, effects, POLICY)
    assert [check(edge) for check in LISTEN_ALWAYS.values()] == [None] * len(LISTEN_ALWAYS)
