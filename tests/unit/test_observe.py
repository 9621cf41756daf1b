"""A step under watch is the step itself, whole, and is held to the promises of every machine."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from relist.check.observe import Observed, broken, observe
from relist.check.trace import read_header, read_step
from relist.inputs import ConnectWanted, PageArrived
from relist.session import new_session, receive
from relist.values import KINDS, Phase, Wire
from support.play import SETTINGS, Setting
from support.traced import QUICK, a_notice_during_a_walk, played


def leads(edges: Sequence[Any], before: object, after: object) -> bool:
    """Whether these edges lead from one state to the other without a gap."""
    for edge in edges:
        if edge.before is not before:
            return False
        before = edge.after
    return before is after


@given(st.sampled_from(SETTINGS), st.binary(max_size=25))
def test_every_step_of_a_machine_is_seen(setting: Setting, script: bytes) -> None:
    first, *rest = played(setting, script)
    policy = read_header(first).policy
    session = new_session(setting.wire, "A")
    for heard in (read_step(line).heard for line in rest):
        observed = observe(session, heard, policy)
        whole = observed.whole
        assert (whole.after, whole.effects) == receive(session, heard, policy)
        assert leads(observed.links, session.link, whole.after.link)
        assert leads(observed.listens, session.listen, whole.after.listen)
        for kind in KINDS:
            of_kind = [edge for edge in observed.catalogs if edge.before.kind is kind]
            assert leads(of_kind, session.catalog(kind), whole.after.catalog(kind))
        edges: tuple[Any, ...] = (*observed.links, *observed.listens, *observed.catalogs)
        told = Counter(effect for edge in edges for effect in edge.effects)
        assert told <= Counter(whole.effects)
        session = whole.after


def last_observed(count: int) -> Observed:
    """The last of so many steps of a session that does everything right."""
    session = new_session(Wire.PIPE, "A")
    *before, last = a_notice_during_a_walk()[:count]
    for heard in before:
        session = receive(session, heard, QUICK).state
    return observe(session, last, QUICK)


CONNECTED, ALLOWED, LISTED = (last_observed(count) for count in (1, 3, 9))


def without_link_effects() -> Observed:
    (edge,) = CONNECTED.links
    return CONNECTED._replace(links=(edge._replace(effects=()),))


def without_push_effects() -> Observed:
    (edge,) = ALLOWED.listens
    return ALLOWED._replace(listens=(edge._replace(effects=()),))


def with_a_walk_left_over() -> Observed:
    (edge,) = LISTED.catalogs
    return LISTED._replace(catalogs=(edge._replace(after=evolve(edge.after, phase=Phase.STALE)),))


def with_another_kind_touched() -> Observed:
    whole, prompts = LISTED.whole, LISTED.whole.after.catalogs[1]
    tools, _, *rest = whole.after.catalogs
    after = evolve(whole.after, catalogs=(tools, evolve(prompts, generation=3), *rest))
    return LISTED._replace(whole=whole._replace(after=after))


@pytest.mark.parametrize(
    ("observed", "complaint"),
    [
        (without_link_effects(), "one-transport: link: opens [], epoch 0 -> 1"),
        (without_push_effects(), "one-listen: push: "),
        (with_a_walk_left_over(), "bounded-lag: tools: stale, and no walk will ever begin"),
        (with_another_kind_touched(), "kinds-are-isolated: session: prompts changed as well"),
    ],
)
def test_each_machine_is_held_to_its_promises(observed: Observed, complaint: str) -> None:
    found = [str(one) for one in broken(observed)]
    assert any(one.startswith(complaint) for one in found), found


def test_who_does_right_breaks_nothing() -> None:
    assert isinstance(CONNECTED.whole.heard, ConnectWanted)
    assert isinstance(LISTED.whole.heard, PageArrived)
    for observed in (CONNECTED, ALLOWED, LISTED):
        assert list(broken(observed)) == []
