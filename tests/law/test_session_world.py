"""The checks of a session bite: two kinds on one connection, and one thing wrong."""

from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve

from relist import inputs as i
from relist.check.explore import explore
from relist.check.isolation import ISOLATED
from relist.check.session_world import SESSION_POLICY, SessionWorld
from relist.inputs import SessionInput
from relist.machine import step
from relist.policy import Policy
from relist.session import Session, SessionStep, receive
from relist.values import Channel, LinkPhase, ListenPhase, Phase, Wire

MODERN = evolve(SESSION_POLICY, legacy_versions=())

Fault = Callable[[Session, SessionInput, Policy], SessionStep]


def _after(change: Callable[[Session, SessionInput, Session], Session]) -> Fault:
    """``receive``, and then this."""

    def wrong(session: Session, heard: SessionInput, policy: Policy) -> SessionStep:
        after, effects = receive(session, heard, policy)
        return SessionStep(change(session, heard, after), effects)

    return wrong


def _with_tools(session: Session, **changes: Any) -> Session:
    tools, *rest = session.catalogs
    return evolve(session, catalogs=(evolve(tools, **changes), *rest))


def _notices_reach_all(session: Session, heard: SessionInput, policy: Policy) -> SessionStep:
    after, effects = receive(session, heard, policy)
    if isinstance(heard, i.NoticeHeard) and heard.channel is Channel.PROMPTS:
        tools, *rest = after.catalogs
        tools, more = step(tools, i.ListChangedHeard(heard.now_ms), policy)
        return SessionStep(evolve(after, catalogs=(tools, *rest)), (*effects, *more))
    return SessionStep(after, effects)


def _lists_too_early(session: Session, heard: SessionInput, policy: Policy) -> SessionStep:
    after, effects = receive(session, heard, policy)
    tools, *rest = after.catalogs
    if tools.phase is not Phase.INITIALIZING or after.link.phase is not LinkPhase.LIVE:
        return SessionStep(after, effects)
    assert after.link.era is not None
    allowed = i.ListingAllowed(after.link.era, after.link.version, True, True, heard.now_ms)
    tools, more = step(tools, allowed, policy)
    return SessionStep(evolve(after, catalogs=(tools, *rest)), (*effects, *more))


def _believes_other_streams(session: Session, heard: SessionInput, policy: Policy) -> SessionStep:
    if isinstance(heard, i.PushOpened | i.PushEnded):
        heard = evolve(heard, serial=session.listen.serial)
    return receive(session, heard, policy)


def _forgets_coverage(_: Session, heard: SessionInput, after: Session) -> Session:
    standing = evolve(after.catalogs[0].standing, covered=True)
    ended = isinstance(heard, i.PushEnded) and after.listen.phase is ListenPhase.RESTING
    return _with_tools(after, standing=standing) if ended else after


def _moves_one_partition(_: Session, heard: SessionInput, after: Session) -> Session:
    standing = evolve(after.catalogs[0].standing, partition="elsewhere")
    moved = isinstance(heard, i.CredentialsChanged)
    return _with_tools(after, standing=standing) if moved else after


def _uses_a_serial_twice(before: Session, _: SessionInput, after: Session) -> Session:
    asked = after.listen.serial != before.listen.serial
    listen = evolve(after.listen, serial=before.listen.serial)
    return evolve(after, listen=listen) if asked else after


def _watches_on_a_lost_link(_: Session, heard: SessionInput, after: Session) -> Session:
    updates = evolve(after.updates, epoch=after.link.epoch)
    return evolve(after, updates=updates) if isinstance(heard, i.TransportLost) else after


FAULTS: tuple[tuple[str, Fault], ...] = (
    ("kinds-are-isolated", _notices_reach_all),
    ("listing-is-allowed", _lists_too_early),
    ("phases-agree", _after(_forgets_coverage)),
    ("one-partition", _after(_moves_one_partition)),
    ("push-is-current", _believes_other_streams),
    ("serials-rise", _after(_uses_a_serial_twice)),
    ("updates-follow", _after(_watches_on_a_lost_link)),
)


@pytest.mark.parametrize(("check", "fault"), FAULTS)
def test_a_check_bites(check: str, fault: Fault) -> None:
    checks = {check: ISOLATED[check]}
    world = SessionWorld(check, Wire.HTTP, MODERN, ("credentials change",), (), fault, checks)
    found = explore(world).counterexample
    assert found is not None
    assert found.claim.startswith(f"{check}: ")


def test_every_check_is_shown_to_bite() -> None:
    assert {check for check, _ in FAULTS} == set(ISOLATED)


def _hears_no_page(session: Session, heard: SessionInput, policy: Policy) -> SessionStep:
    lost = isinstance(heard, i.PageArrived)
    return SessionStep(session) if lost else receive(session, heard, policy)


def test_kinds_that_never_come_to_be_fresh_are_found() -> None:
    world = SessionWorld("deaf", Wire.HTTP, MODERN, receive=_hears_no_page, checks={})
    found = explore(world).counterexample
    assert found is not None
    assert found.claim == "recovers: it ends here"
    assert "link live, push open, tools discovering, prompts discovering" in str(found)
