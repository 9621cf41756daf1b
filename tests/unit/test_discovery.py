"""What the server offers may change on a live link (decision 0015), and eras proved wrong."""

import pytest

from relist import inputs as i
from relist.effects import (
    CloseTransport,
    Effect,
    OpenListen,
    OpenTransport,
    RequestDiscover,
    RequestInitialize,
    RequestPage,
    Withdraw,
)
from relist.machine import step_link
from relist.session import Session, new_session, receive
from relist.values import (
    KINDS,
    Capabilities,
    Channel,
    Failure,
    Kind,
    Link,
    LinkPhase,
    ListenPhase,
    Phase,
    Scope,
    Wire,
    new_link,
)
from support.alphabet import FULL
from support.one import LEGACY, METHOD_NOT_FOUND, MODERN, TRANSIENT, items, policy

rule = pytest.mark.rule
ONLY_TOOLS = Capabilities(frozenset({Kind.TOOLS}), frozenset({Channel.TOOLS}))
ONLY_PROMPTS = Capabilities(frozenset({Kind.PROMPTS}), frozenset({Channel.PROMPTS}))
UNKNOWN_VERSION = Failure("x", code=-32022)
LIFE_MS, GAP_MS = 1_000, 100


class Served:
    """A modern session with all lists fresh; discovery lasts for LIFE_MS."""

    def __init__(self, offer: Capabilities = FULL, ttl_ms: int | None = LIFE_MS) -> None:
        self.rules = policy(discovery_gap_ms=GAP_MS, discovery_lifetime_ms=None)
        self.session: Session = new_session(Wire.HTTP, "A")
        self.now_ms = 0
        self.told: tuple[Effect, ...] = ()
        self.hear(i.ConnectWanted(0))
        self.hear(i.TransportOpened(1, 0))
        self.answer(offer, ttl_ms)
        self.hear(i.PushOpened(1, offer.channels, 0))
        for kind in offer.kinds:
            self.page(kind)

    def hear(self, heard: i.SessionInput) -> None:
        self.session, self.told = receive(self.session, heard, self.rules)

    def answer(
        self, offer: Capabilities, ttl_ms: int | None = LIFE_MS, version: str = MODERN
    ) -> None:
        serial = self.session.link.serial
        self.hear(i.DiscoverAnswered(serial, (version,), offer, self.now_ms, ttl_ms))

    def rediscover(self, offer: Capabilities, version: str = MODERN) -> None:
        """The offer is out of date; somebody needs it, and the server answers."""
        self.now_ms = LIFE_MS
        self.need()
        self.answer(offer, version=version)

    def page(self, kind: Kind) -> None:
        serial = self.session.catalog(kind).serial
        page = i.PageArrived(kind, serial, items("a"), None, None, Scope.PRIVATE, self.now_ms)
        self.hear(page)

    def refuse_version(self, kind: Kind) -> None:
        """Somebody insists on a list, and the server does not speak our version."""
        self.hear(i.RefreshWanted(kind, self.now_ms))
        serial = self.session.catalog(kind).serial
        self.hear(i.PageFailed(kind, serial, UNKNOWN_VERSION, self.now_ms))

    def need(self) -> bool:
        """Somebody reads; whether that asks the server what it offers."""
        self.hear(i.ReadWanted(Kind.TOOLS, self.now_ms))
        return any(isinstance(told, RequestDiscover) for told in self.told)

    def phases(self) -> dict[Kind, Phase]:
        return {kind: self.session.catalog(kind).phase for kind in KINDS}

    def pages(self) -> list[Kind]:
        return [told.kind for told in self.told if isinstance(told, RequestPage)]


# --- when -----------------------------------------------------------------------------------------


@rule("LIFE-45")
@rule("TTL-10")
def test_an_outdated_offer_is_asked_for_again_at_the_next_need_and_not_before() -> None:
    client = Served()
    assert not client.need()
    client.now_ms = LIFE_MS - 1
    client.hear(i.TimePassed(client.now_ms))
    assert not client.need()
    client.now_ms = LIFE_MS
    client.hear(i.TimePassed(client.now_ms))
    assert not any(isinstance(told, RequestDiscover) for told in client.told)
    assert client.need()
    assert not client.need()  # it is on its way
    assert client.session.link.phase is LinkPhase.LIVE


@rule("LIFE-45")
def test_the_beginning_of_a_task_is_a_need() -> None:
    client = Served()
    client.now_ms = LIFE_MS
    client.hear(i.TaskBegan(LIFE_MS))
    assert client.told == (RequestDiscover(2, MODERN),)


def test_a_lifetime_of_zero_does_not_double_the_traffic() -> None:
    client = Served(ttl_ms=0)
    client.now_ms = GAP_MS - 1
    assert not client.need()
    client.now_ms = GAP_MS
    assert client.need()


def test_without_a_lifetime_policy_says_how_long_an_offer_is_good() -> None:
    client = Served(ttl_ms=None)
    client.now_ms = 10**9
    assert not client.need()


@pytest.mark.parametrize("failure", [TRANSIENT, METHOD_NOT_FOUND, None])
def test_without_an_answer_what_is_known_holds(failure: Failure | None) -> None:
    client = Served()
    client.now_ms = LIFE_MS
    client.need()
    before = client.phases()
    if failure is None:
        client.now_ms += client.rules.probe_limit_ms
        client.hear(i.TimePassed(client.now_ms))
    else:
        client.hear(i.DiscoverFailed(2, failure, client.now_ms))
    assert client.phases() == before
    assert client.session.link.phase is LinkPhase.LIVE
    assert not client.need()
    client.now_ms += client.rules.backoff_base_ms
    assert client.need()


@rule("LIFE-39")
def test_an_answer_that_nobody_awaits_changes_nothing() -> None:
    client = Served()
    before = client.session
    client.answer(ONLY_TOOLS)
    assert client.session is before


# --- what it changes ------------------------------------------------------------------------------


@rule("CAP-18")
def test_a_kind_that_vanishes_is_withdrawn() -> None:
    client = Served()
    client.rediscover(ONLY_TOOLS)
    gone = [told.kind for told in client.told if isinstance(told, Withdraw)]
    assert gone == [kind for kind in KINDS if kind is not Kind.TOOLS]
    assert client.phases() == {
        kind: Phase.FRESH if kind is Kind.TOOLS else Phase.UNSUPPORTED for kind in KINDS
    }


@rule("CAP-18")
@rule("SUB-34")
def test_a_kind_that_appears_is_listed_and_listened_for() -> None:
    client = Served(ONLY_TOOLS)
    client.rediscover(FULL)
    assert client.pages() == [kind for kind in KINDS if kind is not Kind.TOOLS]
    assert OpenListen(2, FULL.channels) in client.told
    assert client.session.listen.phase is ListenPhase.RENEWING
    assert client.session.catalog(Kind.TOOLS).standing.covered


@rule("CAP-21")
def test_an_offer_that_is_renewed_leaves_the_lists_alone() -> None:
    client = Served()
    before = {kind: client.session.catalog(kind).snapshot for kind in KINDS}
    client.rediscover(FULL)
    assert {kind: client.session.catalog(kind).snapshot for kind in KINDS} == before


@rule("SUB-27")
@rule("SUB-34")
def test_a_stream_that_takes_over_vouches_for_nothing_listed_before() -> None:
    client = Served(ONLY_TOOLS)
    client.rediscover(FULL)
    client.hear(i.PushOpened(2, FULL.channels, client.now_ms))
    assert client.phases()[Kind.TOOLS] is Phase.STALE
    assert all(client.session.catalog(kind).standing.covered for kind in KINDS)


@rule("SUB-14")
def test_while_renewing_the_old_stream_is_believed_and_the_new_one_not_credited() -> None:
    for serial, doubted in ((1, True), (2, True), (3, False)):
        client = Served(ONLY_TOOLS)
        client.rediscover(FULL)
        client.hear(i.NoticeHeard(Channel.TOOLS, serial, client.now_ms))
        assert (client.phases()[Kind.TOOLS] is Phase.STALE) is doubted


def test_the_same_offer_changes_nothing_but_its_lifetime() -> None:
    client = Served()
    client.now_ms = LIFE_MS
    client.need()
    before = client.session
    client.answer(FULL)
    assert client.told == ()
    assert client.session.catalogs == before.catalogs
    assert client.session.link.expires_at_ms == 2 * LIFE_MS


@rule("LIFE-26")
def test_a_version_that_is_offered_no_more_means_a_new_link() -> None:
    client = Served()
    client.rediscover(FULL, version="2027-01-01")
    assert CloseTransport(1) in client.told
    assert OpenTransport(2) in client.told


@rule("LIFE-24")
def test_a_refused_version_is_looked_into_at_once() -> None:
    client = Served()
    client.refuse_version(Kind.TOOLS)
    assert RequestDiscover(2, MODERN) in client.told


@rule("ATOM-13")
@rule("LIFE-39")
def test_a_refused_version_that_comes_late_is_not_looked_into() -> None:
    client = Served()
    before = client.session
    client.hear(i.PageFailed(Kind.TOOLS, 1, UNKNOWN_VERSION, 0))
    assert client.session is before
    client.hear(i.RefreshWanted(Kind.TOOLS, 0))
    before = client.session
    client.hear(i.PageFailed(Kind.TOOLS, 1, UNKNOWN_VERSION, 0))
    assert client.session is before


@rule("LIFE-45")
def test_a_server_that_contradicts_itself_is_asked_again_after_a_gap_only() -> None:
    """It offers a version and refuses it, or one kind and then another: no loop without time."""
    client = Served(ONLY_TOOLS)
    kind = Kind.TOOLS
    for offer in (ONLY_PROMPTS, ONLY_TOOLS) * 3:
        client.refuse_version(kind)
        if client.session.link.limit_at_ms is not None:
            client.answer(offer)
            (kind,) = offer.kinds
    assert kind is Kind.PROMPTS
    assert client.session.link.serial == 2
    client.now_ms = GAP_MS
    client.refuse_version(kind)
    assert client.told[0] == RequestDiscover(3, MODERN)


@rule("LIFE-45")
def test_the_gap_after_a_refused_version_outlives_the_link() -> None:
    """A server that offers a version only to new links does not get one link after another."""
    client = Served()
    for _ in range(3):
        client.refuse_version(Kind.TOOLS)
        client.answer(FULL, version="2027-01-01")
        client.hear(i.TransportOpened(client.session.link.epoch, 0))
        client.answer(FULL)
        client.hear(i.PushOpened(client.session.listen.serial, FULL.channels, 0))
    assert client.session.link.epoch == 2


# --- tasks ----------------------------------------------------------------------------------------


def _task(covered: bool, age_ms: int, oldest_ms: int | None) -> list[Kind]:
    client = Served(Capabilities(frozenset(KINDS), frozenset()) if not covered else FULL)
    client.rules = policy(task_max_age_ms=oldest_ms, unvouched_lifetime_ms=None)
    client.hear(i.TaskBegan(age_ms))
    return client.pages()


@rule("TTL-35")
def test_a_task_renews_what_nothing_vouches_for_and_is_old() -> None:
    assert _task(covered=False, age_ms=50, oldest_ms=50) == list(KINDS)
    assert _task(covered=False, age_ms=49, oldest_ms=50) == []
    assert _task(covered=True, age_ms=50, oldest_ms=50) == []
    assert _task(covered=False, age_ms=50, oldest_ms=None) == []


@rule("LIFE-45")
def test_a_discovery_that_fails_honours_retry_after_and_is_spread() -> None:
    for failure, rules in (
        (Failure("x", status=429, retry_after_ms=7_000), policy(discovery_gap_ms=1)),
        (Failure("x", status=503), policy(discovery_gap_ms=1, jitter_percent=50)),
    ):
        client = Served()
        client.rules, client.now_ms = rules, LIFE_MS
        assert client.need()
        serial = client.session.link.serial
        client.hear(i.DiscoverFailed(serial, failure, client.now_ms))
        waits_ms = rules.backoff_ms(1, "discovery", serial, failure)
        assert client.session.link.expires_at_ms == client.now_ms + waits_ms


@rule("TTL-35")
def test_a_task_looks_at_each_kind_by_itself() -> None:
    client = Served(ttl_ms=None)
    client.rules = policy(task_max_age_ms=50)
    client.hear(i.CredentialsChanged("A", 0))
    client.hear(i.TransportOpened(2, 0))
    client.answer(FULL, None)
    client.hear(i.PushOpened(client.session.listen.serial, frozenset({Channel.TOOLS}), 0))
    for kind in KINDS:
        client.page(kind)
    client.hear(i.TaskBegan(50))
    assert client.pages() == [Kind.PROMPTS, Kind.RESOURCES, Kind.TEMPLATES]


# --- eras that were remembered --------------------------------------------------------------------


def _remembered(wire: Wire, *, by_policy: bool) -> tuple[Link, list[object]]:
    """A link that was legacy, lost and opened again; and what it asks for first."""
    rules = policy(remember_process_era=by_policy)
    link, now_ms, told = new_link(wire), 0, list[object]()
    for heard in (
        i.ConnectWanted(0),
        i.TransportOpened(1, 0),
        i.DiscoverFailed(1, METHOD_NOT_FOUND, 0),
        i.InitializeAnswered(2, LEGACY, FULL, 0),
        i.TransportLost(1, 0),
        i.TimePassed(10**6),
        i.TransportOpened(2, now_ms),
    ):
        link, effects = step_link(link, heard, rules)
        told = list(effects)
    return link, told


@rule("LIFE-36")
@rule("LIFE-37")
@pytest.mark.parametrize("by_policy", [False, True])
def test_the_era_of_a_process_is_remembered_by_policy_only(by_policy: bool) -> None:
    asked = RequestInitialize if by_policy else RequestDiscover
    assert isinstance(_remembered(Wire.PIPE, by_policy=by_policy)[1][0], asked)
    assert isinstance(_remembered(Wire.HTTP, by_policy=by_policy)[1][0], RequestInitialize)


@rule("LIFE-37")
@pytest.mark.parametrize(
    ("failure", "forgotten"),
    [
        (METHOD_NOT_FOUND, True),
        (Failure("x", status=400), True),
        (Failure("x", status=503), False),
        (Failure("x", status=429), False),
        (Failure("network failure"), False),
    ],
)
def test_a_remembered_era_that_proves_wrong_is_probed_anew(
    failure: Failure, forgotten: bool
) -> None:
    link, _ = _remembered(Wire.HTTP, by_policy=False)
    link, _ = step_link(link, i.InitializeFailed(link.serial, failure, 0), policy())
    assert (link.era is None) is forgotten
    link, _ = step_link(link, i.TimePassed(10**7), policy())
    _, told = step_link(link, i.TransportOpened(link.epoch, 10**7), policy())
    assert isinstance(told[0], RequestDiscover if forgotten else RequestInitialize)


def test_without_an_answer_the_gap_is_kept_however_short_the_backoff_is() -> None:
    client = Served()
    client.rules = policy(discovery_gap_ms=9_000, discovery_lifetime_ms=None)
    client.now_ms = LIFE_MS
    client.need()
    client.hear(i.DiscoverFailed(2, TRANSIENT, client.now_ms))
    client.now_ms += 8_999
    assert not client.need()
    client.now_ms += 1
    assert client.need()
