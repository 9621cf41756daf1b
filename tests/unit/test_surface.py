"""What the model was given: adoption, lag, and calls planned on it."""

import pytest

from relist import inputs as i
from relist.admission import Verdict, admit, plan
from relist.core import Relist
from relist.errors import ImpossibleAct
from relist.policy import Risk
from relist.surface import Adoption, Lag, lag
from relist.values import Capabilities, Channel, Kind, Phase, Scope, Wire
from support.one import MODERN, items, policy

rule = pytest.mark.rule
TOOLS = Kind.TOOLS
OFFER = Capabilities(frozenset({TOOLS}), frozenset({Channel.TOOLS}))


class Host:
    """A session with one list, and a host that adopts it."""

    def __init__(self) -> None:
        self.core = Relist(Wire.PIPE, policy(), "A")
        self.core.receive(i.ConnectWanted(0))
        self.core.receive(i.TransportOpened(1, 0))
        self.core.receive(i.DiscoverAnswered(1, (MODERN,), OFFER, 0))
        self.core.receive(i.PushOpened(1, frozenset({Channel.TOOLS}), 0))
        self.page("a", "b")

    def page(self, *texts: str, scope: Scope = Scope.PRIVATE) -> None:
        serial = self.core.session.catalog(TOOLS).serial
        heard = i.PageArrived(TOOLS, serial, items(*texts), None, None, scope, 0)
        self.core.receive(heard)

    def relist(self, *texts: str, scope: Scope = Scope.PRIVATE) -> None:
        self.core.receive(i.RefreshWanted(TOOLS, 0))
        self.page(*texts, scope=scope)

    def adopt(self, generation: int, count: int) -> Adoption | None:
        self.core.receive(i.SurfaceAdopted(TOOLS, generation, count, 5))
        return self.core.session.adoption(TOOLS)

    def lag(self) -> Lag:
        session = self.core.session
        return lag(session.catalog(TOOLS), session.adoption(TOOLS))


@rule("OBS-04")
@rule("OBS-05")
def test_a_published_list_is_not_yet_adopted() -> None:
    host = Host()
    assert host.lag() == Lag(None, 0, 2)
    host.adopt(1, 2)
    assert host.lag() == Lag(0, 2, 2)
    host.relist("a", "b", "c")
    assert host.lag() == Lag(1, 2, 3)
    host.adopt(2, 1)
    assert host.lag() == Lag(0, 1, 3)


@rule("ATOM-16")
def test_adopting_changes_no_list() -> None:
    host = Host()
    before = host.core.session.catalogs
    host.core.effects()
    adoption = host.adopt(1, 1)
    assert adoption == Adoption(1, 1, items("a", "b"), 5)
    assert host.core.session.catalogs == before
    assert host.core.effects() == ()


@pytest.mark.parametrize(
    ("generation", "count", "named"),
    [(0, 0, "generation"), (2, 0, "generation"), (1, 3, "count"), (1, -1, "count")],
)
def test_what_was_never_published_cannot_be_adopted(
    generation: int, count: int, named: str
) -> None:
    host = Host()
    before = host.core.session
    with pytest.raises(ImpossibleAct, match=f"SurfaceAdopted.{named}"):
        host.adopt(generation, count)
    assert host.core.session is before


@rule("AUTH-03")
def test_a_withdrawn_list_is_nobodys_surface() -> None:
    host = Host()
    host.adopt(1, 2)
    host.core.receive(i.CredentialsChanged("B", 9))
    assert host.core.session.adoption(TOOLS) is None


@rule("AUTH-03")
def test_a_private_surface_does_not_outlive_its_partition_behind_a_public_list() -> None:
    host = Host()
    host.adopt(1, 2)
    host.relist("a", scope=Scope.PUBLIC)
    host.core.receive(i.CredentialsChanged("A", 9))
    assert host.core.session.adoption(TOOLS) is not None
    host.core.receive(i.CredentialsChanged("B", 9))
    assert host.core.session.adoption(TOOLS) is None


def test_the_surface_made_of_a_public_list_is_for_every_partition() -> None:
    host = Host()
    host.relist("a", scope=Scope.PUBLIC)
    adoption = host.adopt(2, 1)
    host.core.receive(i.CredentialsChanged("B", 9))
    assert host.core.session.adoption(TOOLS) == adoption


def test_the_surface_of_one_kind_is_not_that_of_another() -> None:
    host = Host()
    host.adopt(1, 2)
    assert host.core.session.adoption(Kind.PROMPTS) is None


@rule("CALL-21")
def test_a_call_is_planned_on_the_surface() -> None:
    host = Host()
    adoption = host.adopt(1, 2)
    assert adoption is not None
    call = plan(adoption, "a", Risk.READ_ONLY)
    assert (call.generation, call.planned, call.risk) == (1, items("a")[0], Risk.READ_ONLY)
    host.relist("a", "c")
    catalog = host.core.session.catalog(TOOLS)
    assert catalog.phase is Phase.FRESH
    assert admit(catalog, call, 0, policy()).verdict is Verdict.CHECK  # the entry is the same
    gone = plan(adoption, "b")
    assert admit(catalog, gone, 0, policy()).verdict is Verdict.REFUSE


@rule("CALL-21")
def test_what_an_older_surface_held_is_not_known() -> None:
    host = Host()
    host.relist("a", "c")
    adoption = host.adopt(1, 7)
    assert adoption is not None
    assert plan(adoption, "a").planned is None
    verdict = admit(host.core.session.catalog(TOOLS), plan(adoption, "a"), 0, policy()).verdict
    assert verdict is Verdict.REFUSE
