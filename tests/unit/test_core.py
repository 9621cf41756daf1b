"""``Relist``: the one object with a state, around the pure session."""

from relist import inputs as i
from relist.admission import Call, Verdict, admit
from relist.core import Relist
from relist.effects import OpenTransport
from relist.values import Kind, Wire
from support.one import policy


def test_effects_are_handed_out_once_and_in_order() -> None:
    core = Relist(Wire.PIPE, policy())
    core.receive(i.ConnectWanted(0))
    core.receive(i.TransportLost(1, 0))
    core.receive(i.TimePassed(core.deadline_ms() or 0))
    opened = [told.epoch for told in core.effects() if isinstance(told, OpenTransport)]
    assert opened == [1, 2]
    assert core.effects() == ()


def test_a_call_is_judged_on_the_list_of_its_kind() -> None:
    core = Relist(Wire.PIPE, policy())
    call = Call("add", 1, None)
    for kind in Kind:
        expected = admit(core.session.catalog(kind), call, 5, core.policy)
        assert core.admit(call, kind, 5) == expected
    assert core.admit(call, Kind.TOOLS, 5).verdict is Verdict.VERIFY
    assert core.admit(call, Kind.RESOURCES, 5).verdict is Verdict.ADMIT
