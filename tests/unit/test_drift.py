"""The ledger of drift by example: who sees what, why not, and what a person may do about it."""

from typing import Any

import pytest
from attrs import evolve

from relist.drift import inputs as i
from relist.drift.classify import Relation, classify
from relist.drift.inputs import LedgerInput
from relist.drift.ledger import Ledger, PublishSurface, Record, standing
from relist.drift.policy import chosen, follows, joins, risk_of
from relist.drift.receive import receive
from relist.drift.review import review_of, reviews
from relist.drift.values import (
    CapabilityRef,
    ChangeClass,
    Chosen,
    ExactSelection,
    FollowPolicy,
    Hints,
    Newcomers,
    Profile,
    Publication,
    Review,
    Rule,
    ServerIdentity,
    ServerSelection,
    Subject,
    SurfaceManifest,
    Why,
    continues,
    in_order,
)
from relist.errors import ImpossibleAct, PolicyError
from relist.policy import Risk
from support.drift import AWAY, HARMLESS, HOME, MOVED, definition, exactly, inventory, ref

rule = pytest.mark.rule
A, B = ref("a"), ref("b")


class Desk:
    """A ledger that is told things, and what came of the last one."""

    def __init__(self, *told: LedgerInput) -> None:
        self.ledger = Ledger()
        self.words: list[str] = []
        self.published: list[Publication] = []
        for heard in told:
            self.tell(heard)

    def tell(self, heard: LedgerInput) -> "Desk":
        self.ledger, effects = receive(self.ledger, heard)
        self.words = [told.entry.what for told in effects if isinstance(told, Record)]
        self.published = [one.publication for one in effects if isinstance(one, PublishSurface)]
        return self

    def wish(self, profile: Profile) -> "Desk":
        return self.tell(i.ProfileSet(profile, "me", "", 0))

    def see(self, offered: dict[str, str], server: ServerIdentity = HOME, **more: Any) -> "Desk":
        return self.tell(inventory(offered, server, **more))

    def approve(self, *keys: str, consumer: str = "agent") -> "Desk":
        shown = {ref(key): self.now(ref(key)) for key in keys}
        return self.tell(i.Approved(consumer, shown, "me", "", 0))

    def now(self, about: CapabilityRef) -> Any:
        seen = self.ledger.version(about)
        assert seen is not None
        assert seen.definition is not None
        return seen.definition.id

    def stands(self, about: CapabilityRef = A, consumer: str = "agent") -> object:
        return standing(self.ledger, consumer, about)

    def shown(self, consumer: str = "agent") -> list[str]:
        return [about.key for about in in_order(self.ledger.publications[consumer].manifest.items)]

    def open(self, **more: Any) -> list[Review]:
        return list(reviews(self.ledger, **more))


@pytest.fixture
def desk() -> Desk:
    """One agent that wants a, which is there and approved; b is there as well."""
    return Desk().wish(exactly("agent", A)).see({"a": "1", "b": "1"}).approve("a")


# --- safe contraction -----------------------------------------------------------------------------


@rule("DRIFT-01", "DRIFT-02", "DRIFT-05", "DRIFT-06")
def test_wishes_and_sights_are_kept_apart(desk: Desk) -> None:
    profiles, first = desk.ledger.profiles, desk.now(A)
    desk.see({"a": "2", "b": "1"})
    assert desk.ledger.profiles == profiles  # the wish is for the reference, whatever is seen there
    assert desk.now(A) != first
    seen = desk.ledger.seen
    desk.wish(exactly("agent", B))
    assert desk.ledger.seen == seen
    assert len({A, ref("a", "away"), ref("a", subject=Subject.PROMPT), ref("b")}) == 4


@rule("DRIFT-40")
def test_time_carries_no_approval_over(desk: Desk) -> None:
    for at_ms in (1, 10**12):
        desk.see({"a": "2", "b": "1"}, at_ms=at_ms)
        assert (desk.shown(), desk.stands()) == ([], Why.CHANGED)


@rule("DRIFT-21", "DRIFT-22")
def test_a_change_leaves_the_surface_until_it_is_approved(desk: Desk) -> None:
    desk.see({"a": "2", "b": "1"})
    assert (desk.words, desk.shown(), desk.stands()) == (["changed"], [], Why.CHANGED)
    assert desk.approve("a").shown() == ["a"]


@rule("DRIFT-22")
def test_a_rejection_keeps_the_relation(desk: Desk) -> None:
    desk.see({"a": "2", "b": "1"})
    desk.tell(i.Rejected("agent", {A: desk.now(A)}, "me", "no", 0))
    assert (desk.words, desk.stands(), desk.open()) == (["rejected"], Why.REJECTED, [])
    assert desk.see({"a": "1", "b": "1"}).shown() == ["a"]
    assert desk.see({"a": "2", "b": "1"}).stands() is Why.REJECTED
    assert desk.approve("a").shown() == ["a"]


def test_what_was_approved_can_be_rejected(desk: Desk) -> None:
    desk.tell(i.Rejected("agent", {A: desk.now(A)}, "me", "", 0))
    assert (desk.shown(), desk.stands()) == ([], Why.REJECTED)


@rule("DRIFT-35", "DRIFT-36")
def test_what_is_gone_is_reviewed_when_it_returns(desk: Desk) -> None:
    assert desk.see({"b": "1"}).stands() is Why.GONE
    assert desk.see({"a": "1", "b": "1"}).words == ["returned"]
    assert desk.stands() is Why.RETURNED
    assert desk.approve("a").shown() == ["a"]


@rule("DRIFT-36")
def test_only_what_was_approved_again_is_approved_then(desk: Desk) -> None:
    desk.see({"a": "2", "b": "1"}).approve("a").see({"b": "1"}).see({"a": "2", "b": "1"})
    desk.approve("a")
    assert desk.see({"a": "1", "b": "1"}).stands() is Why.CHANGED


@rule("DRIFT-36")
@pytest.mark.parametrize(("server", "shown"), [(HOME, ["a"]), (AWAY, [])])
def test_an_equal_one_returns_by_policy_where_the_server_is_known(
    server: ServerIdentity, shown: list[str]
) -> None:
    about = ref("a", server.id)
    wish = exactly("agent", about, follow=FollowPolicy({}, frozenset({Risk.READ_ONLY})))
    desk = Desk().wish(wish).see({"a": "1"}, server)
    desk.tell(i.Approved("agent", {about: desk.now(about)}, "me", "", 0))
    desk.see({}, server).see({"a": "1"}, server)
    assert desk.shown() == shown


@rule("DRIFT-48")
def test_what_is_ambiguous_is_not_shown_and_settles_nothing(desk: Desk) -> None:
    assert desk.see({"a": "?", "b": "1"}).stands() is Why.AMBIGUOUS
    assert desk.see({"a": "1", "b": "1"}).shown() == ["a"]
    fresh = Desk().wish(exactly("agent", A)).see({"a": "?"})
    assert (fresh.words, fresh.stands()) == (["ambiguous"], Why.AMBIGUOUS)
    assert fresh.see({}).words == ["gone"]
    (review,) = fresh.open()
    assert review == Review("agent", A, Why.GONE, None)


# --- what proves nothing --------------------------------------------------------------------------


@rule("DRIFT-32", "DRIFT-33", "DRIFT-34")
@pytest.mark.parametrize(
    "heard",
    [
        i.ObservationFailed("home", Subject.TOOL, "timed out", 0),
        inventory({}, clean=False),
        inventory({}, partition="you"),
    ],
)
def test_a_failure_is_noted_once_and_changes_nothing(desk: Desk, heard: LedgerInput) -> None:
    before = desk.ledger
    desk.tell(heard)
    assert desk.words in (["failed"], ["not proved"])
    assert (desk.published, desk.shown()) == ([], ["a"])
    assert evolve(desk.ledger, failing={}, entries=before.entries) == before
    assert desk.tell(heard).words == []
    assert desk.see({"a": "1", "b": "1"}).ledger.failing == {}


@rule("DRIFT-23", "DRIFT-24")
def test_the_same_again_is_the_same_ledger(desk: Desk) -> None:
    before = desk.ledger
    assert desk.see({"a": "1", "b": "1"}).ledger is before


@rule("DRIFT-24", "DRIFT-41")
def test_a_new_upstream_of_the_same_definition_makes_no_noise(desk: Desk) -> None:
    taken = inventory({"a": "1", "b": "1"})
    other = evolve(taken.definitions["a"], upstream=definition("z").upstream)
    desk.tell(evolve(taken, definitions={**taken.definitions, "a": other}))
    assert (desk.words, desk.published) == ([], [])
    seen = desk.ledger.version(A)
    assert seen is not None
    assert seen.definition is other


@rule("DRIFT-44")
def test_nobody_is_disturbed_for_what_is_not_theirs(desk: Desk) -> None:
    desk.wish(exactly("other", B)).approve("b", consumer="other")
    desk.see({"a": "1", "b": "2"})
    assert [made.consumer for made in desk.published] == ["other"]


# --- servers --------------------------------------------------------------------------------------


@rule("DRIFT-11", "DRIFT-12", "DRIFT-13")
def test_another_server_under_the_same_name_shows_nothing_until_confirmed(desk: Desk) -> None:
    desk.see({"a": "1", "b": "1"}, MOVED)
    assert (desk.words, desk.shown(), desk.stands()) == (["identity changed"], [], Why.SERVER)
    desk.see({"a": "1"}, AWAY)
    with pytest.raises(ImpossibleAct, match="first confirm the server 'home'"):
        desk.approve("a")
    with pytest.raises(ImpossibleAct, match="was not seen like this"):
        desk.tell(i.ServerConfirmed(HOME, "me", "", 0))
    assert desk.tell(i.ServerConfirmed(MOVED, "me", "it moved", 0)).shown() == ["a"]
    assert desk.words == ["server confirmed"]


def test_a_server_that_moves_back_is_itself_again(desk: Desk) -> None:
    desk.see({"a": "1", "b": "1"}, MOVED).see({"a": "1", "b": "1"})
    assert desk.shown() == ["a"]


def test_an_unknown_server_cannot_be_confirmed(desk: Desk) -> None:
    with pytest.raises(ImpossibleAct, match=r"ServerConfirmed\.server 'away'"):
        desk.tell(i.ServerConfirmed(AWAY, "me", "", 0))


@rule("DRIFT-11")
def test_more_evidence_is_kept_and_less_is_a_doubt() -> None:
    more = evolve(AWAY, endpoint="x")
    desk = Desk().see({}, AWAY).see({}, more)
    assert desk.ledger.servers["away"].confirmed == more
    assert desk.see({}, AWAY).ledger.in_doubt("away")
    assert not desk.ledger.in_doubt("nobody")
    assert continues(AWAY, more)
    assert not continues(AWAY, HOME)


# --- following and joining ------------------------------------------------------------------------


FOLLOWS = FollowPolicy({Risk.READ_ONLY: frozenset({ChangeClass.TEXT})})


@rule("DRIFT-25")
def test_a_change_is_followed_by_policy_from_what_was_approved_last() -> None:
    desk = Desk().wish(exactly("agent", A, follow=FOLLOWS)).see({"a": "1"}).approve("a")
    assert desk.see({"a": "2"}).words == ["changed", "followed"]
    assert desk.shown() == ["a"]
    harmful = definition("a", "3", hints=Hints(read_only=False))
    taken = evolve(inventory({}), definitions={"a": harmful})
    assert desk.tell(taken).stands() is Why.CHANGED  # worse than the policy was made for


@rule("DRIFT-25", "DRIFT-28", "DRIFT-47")
def test_what_a_server_says_makes_a_risk_worse_and_never_better() -> None:
    choice = Chosen(Rule.ALLOW, Risk.SIDE_EFFECTS)
    hints = {
        HARMLESS: Risk.SIDE_EFFECTS,
        Hints(read_only=False): Risk.SIDE_EFFECTS,
        Hints(destructive=True): Risk.DESTRUCTIVE,
        Hints(open_world=True): Risk.DESTRUCTIVE,
    }
    for said, risk in hints.items():
        assert risk_of(choice, definition("a", hints=said)) is risk
    worse = definition("a", "1", hints=Hints(destructive=True))
    change = classify(worse, definition("a", "2"))
    profile = Profile("agent", (), FOLLOWS)
    assert not follows(profile, Chosen(Rule.ALLOW, Risk.READ_ONLY), change)
    assert not follows(profile, Chosen(Rule.ALLOW, Risk.READ_ONLY), classify(None, worse))
    same = classify(definition("a"), definition("a"))
    assert not follows(profile, Chosen(Rule.ALLOW, Risk.READ_ONLY), same)


JOIN = ServerSelection("home", Rule.ALLOW, Newcomers.JOIN, trust_annotations=True)


@rule("DRIFT-38", "DRIFT-46", "DRIFT-47")
@pytest.mark.parametrize(
    ("selection", "hints", "joined"),
    [
        (JOIN, HARMLESS, True),
        (JOIN, Hints(read_only=True), False),
        (JOIN, Hints(read_only=True, open_world=True), False),
        (JOIN, Hints(read_only=True, destructive=True, open_world=False), False),
        (JOIN, Hints(), False),
        (evolve(JOIN, trust_annotations=False), HARMLESS, False),
        (evolve(JOIN, newcomers=Newcomers.REVIEW), HARMLESS, False),
        (evolve(JOIN, server="away"), HARMLESS, False),
        (evolve(JOIN, items={A: Chosen(Rule.ALLOW)}), HARMLESS, False),
    ],
)
def test_which_newcomers_join(selection: ServerSelection, hints: Hints, joined: bool) -> None:
    profile = Profile("agent", (ExactSelection({}), selection))
    assert joins(profile, definition("a", hints=hints)) is joined


@rule("DRIFT-38")
def test_a_resource_needs_no_annotations_to_join() -> None:
    profile = Profile("agent", (evolve(JOIN, trust_annotations=False),))
    assert joins(profile, definition("u", subject=Subject.RESOURCE))


@rule("DRIFT-37", "DRIFT-38")
def test_newcomers_of_a_whole_server_and_of_an_exact_list() -> None:
    desk = Desk().wish(Profile("agent", (JOIN,))).wish(exactly("other", A)).see({"a": "1"})
    assert desk.words == ["appeared", "joined"]
    desk.see({"a": "1", "b": "1"})
    assert (desk.shown(), desk.shown("other")) == (["a", "b"], [])
    assert [review.ref for review in desk.open()] == [A]


def test_what_was_rejected_is_no_newcomer() -> None:
    desk = Desk().wish(Profile("agent", (JOIN,))).see({"a": "1"})
    desk.tell(i.Rejected("agent", {A: desk.now(A)}, "me", "", 0))
    assert desk.see({"a": "2"}).shown() == []


@rule("DRIFT-04")
def test_what_is_denied_is_not_shown_nor_asked_about(desk: Desk) -> None:
    denied = Profile("agent", (ExactSelection({A: Chosen(Rule.DENY)}),))
    assert desk.wish(denied).stands() is Why.DENIED
    assert (desk.shown(), desk.open()) == ([], [])
    assert desk.see({"a": "2", "b": "1"}).shown() == []
    assert desk.wish(exactly("agent", A)).see({"a": "1", "b": "1"}).shown() == ["a"]


def test_the_same_wish_again_is_nothing(desk: Desk) -> None:
    before = desk.ledger
    assert desk.wish(exactly("agent", A)).ledger is before


def test_what_is_not_selected_stands_nowhere(desk: Desk) -> None:
    assert desk.stands(B) is None
    assert desk.stands(A, "nobody") is None
    profile = Profile("agent", (evolve(JOIN, subjects=frozenset({Subject.PROMPT})),))
    assert chosen(profile, A) is None
    assert Desk().wish(profile).see({"a": "1"}).shown() == []
    elsewhere = Desk().wish(Profile("agent", (JOIN,))).see({"a": "1"}, AWAY)
    assert (elsewhere.shown(), elsewhere.open()) == ([], [])
    assert Desk().wish(exactly("agent", A)).stands() is Why.GONE


def test_one_review_compares_nothing_else() -> None:
    """A call that is withheld must not wait for all that is open besides."""
    desk = Desk().wish(exactly("agent", A, B))
    for text in ("1", "2"):
        both = {key: definition(key, inputSchema=text) for key in ("a", "b")}
        desk.tell(evolve(inventory({}), definitions=both))
        if text == "1":
            desk.approve("a", "b")
    compared: list[bytes] = []

    def relate(before: bytes, after: bytes) -> frozenset[Relation]:
        compared.append(after)
        return frozenset({Relation.UNPROVED})

    review = review_of(desk.ledger, "agent", B, relate)
    assert compared == [b"2"]
    assert review == list(reviews(desk.ledger, relate))[1]
    assert review_of(desk.ledger, "nobody", B, relate) is None


# --- rebinding ------------------------------------------------------------------------------------


def rebound(desk: Desk, new: CapabilityRef = B, **more: Any) -> LedgerInput:
    told = {"consumer": "agent", "old": A, "new": new, "id": desk.now(B), **more}
    return i.Rebound(who="me", why="", at_ms=0, **told)


@rule("DRIFT-09", "DRIFT-30", "DRIFT-31")
def test_a_rename_is_proposed_and_bound_by_a_person(desk: Desk) -> None:
    desk.see({"b": "1"})
    (review,) = desk.open()
    assert (review.why, review.candidates) == (Why.GONE, (B,))
    desk.tell(rebound(desk))
    assert (desk.words, desk.shown()) == (["rebound", "approved"], ["b"])
    assert desk.stands(A) is None
    assert desk.ledger.grants("agent", A).approved  # its history stays


@rule("DRIFT-14", "DRIFT-15", "DRIFT-16")
def test_aliases_come_first_and_prove_nothing(desk: Desk) -> None:
    desk.see({"b": "1", "c": "2"})
    named = {A: [ref("c"), ref("nowhere")]}
    (review,) = desk.open(aliases=named)
    assert review.candidates == (ref("c"), B)
    assert desk.shown() == []


@rule("DRIFT-13")
@pytest.mark.parametrize(
    ("other", "found"),
    [
        (ServerIdentity("away", "https://away.test"), (ref("x", "away"),)),
        (AWAY, ()),
    ],
)
def test_candidates_elsewhere_need_evidence(
    desk: Desk, other: ServerIdentity, found: tuple[CapabilityRef, ...]
) -> None:
    taken = inventory({"x": "1"}, other)
    desk.tell(taken)
    desk.see({})
    (review,) = desk.open()
    assert review.candidates == found


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"consumer": "nobody"}, r"Rebound\.consumer 'nobody' has no profile"),
        ({"old": ref("z")}, r"Rebound\.ref home/tool/z is not selected"),
        ({"new": A}, r"Rebound\.old home/tool/a is named by no selection, or new is"),
        ({"id": definition("z").id}, r"Rebound\.id .* is not the one there now"),
        ({"new": ref("z")}, r"Rebound\.ref home/tool/z is not there"),
    ],
)
def test_a_rebinding_that_cannot_be(desk: Desk, more: dict[str, Any], text: str) -> None:
    desk.see({"b": "1"})
    before = desk.ledger
    with pytest.raises(ImpossibleAct, match=text):
        desk.tell(rebound(desk, **more))
    assert desk.ledger is before


# --- acts that cannot be --------------------------------------------------------------------------


@rule("DRIFT-22")
def test_what_was_not_reviewed_cannot_be_approved(desk: Desk) -> None:
    old = desk.now(A)
    desk.see({"a": "2"})
    with pytest.raises(ImpossibleAct, match="is not the one there now"):
        desk.tell(i.Approved("agent", {A: old}, "me", "", 0))
    with pytest.raises(ImpossibleAct, match=r"Rejected\.items: .* was never seen of home/tool/a"):
        desk.tell(i.Rejected("agent", {A: definition("z").id}, "me", "", 0))
    with pytest.raises(ImpossibleAct, match="is not selected by 'agent'"):
        desk.tell(i.Rejected("agent", {B: desk.now(B)}, "me", "", 0))
    unseen = Desk().wish(exactly("agent", A))
    with pytest.raises(ImpossibleAct, match="never seen"):
        unseen.tell(i.Rejected("agent", {A: old}, "me", "", 0))


def test_several_are_approved_or_none(desk: Desk) -> None:
    desk.wish(exactly("agent", A, B)).see({"a": "2", "b": "2"})
    both = {A: desk.now(A), B: definition("b").id}
    with pytest.raises(ImpossibleAct):
        desk.tell(i.Approved("agent", both, "me", "", 0))
    assert desk.shown() == []


@pytest.mark.parametrize(
    ("profile", "text"),
    [
        (Profile("", ()), "consumer must not be empty"),
        (Profile("p", (JOIN, JOIN)), "the server 'home' as a whole twice"),
        (Profile("p", (JOIN, *exactly("p", A).selections)), "which of the two is meant"),
        (
            Profile("p", (evolve(JOIN, server="away", items={A: Chosen(Rule.ASK)}),)),
            "'home/tool/a' is not of the server 'away'",
        ),
        (
            Profile("p", (), FollowPolicy({Risk.READ_ONLY: frozenset({ChangeClass.SAFETY})})),
            "follow.classes of 'read only' may not hold: safety",
        ),
    ],
)
@rule("DRIFT-28", "DRIFT-39")
def test_a_profile_that_contradicts_itself(profile: Profile, text: str) -> None:
    with pytest.raises(PolicyError, match=text):
        Desk().wish(profile)


# --- classes and manifests ------------------------------------------------------------------------


def _tool(**fields: Any) -> Any:
    return definition("a", **fields)


@rule("DRIFT-27")
def test_a_port_that_says_nothing_proves_nothing() -> None:
    change = classify(_tool(inputSchema="1"), _tool(inputSchema="2"), lambda *_: frozenset())
    assert change.classes == {ChangeClass.INPUT_CHANGED}
    both = frozenset({Relation.WIDENED, Relation.TEXT})
    change = classify(_tool(outputSchema="1"), _tool(outputSchema="2"), lambda *_: both)
    assert change.classes == {ChangeClass.OUTPUT_WIDENED, ChangeClass.SCHEMA_TEXT}


@pytest.mark.parametrize("annotations", ["[1]", "nonsense", "[" * 100_000])
def test_annotations_that_are_none_are_a_matter_of_safety(annotations: str) -> None:
    change = classify(_tool(annotations="{}"), _tool(annotations=annotations))
    assert change.classes == {ChangeClass.SAFETY}


@rule("DRIFT-28")
def test_annotations_one_by_one() -> None:
    was = '{"readOnlyHint":1,"title":"a","x":1}'
    for now, classes in {
        '{"readOnlyHint":true,"title":"a","x":1}': {ChangeClass.SAFETY},
        '{"readOnlyHint":1,"title":"b","x":1}': {ChangeClass.TEXT},
        '{"readOnlyHint":1,"title":"a"}': {ChangeClass.OTHER},
    }.items():
        assert classify(_tool(annotations=was), _tool(annotations=now)).classes == classes
    for old, new in (
        (_tool(inputSchema="1"), _tool(inputSchema="2")),
        (_tool(), _tool(inputSchema="1")),
    ):
        assert classify(old, new).classes == {ChangeClass.INPUT_CHANGED}


def test_a_first_definition_is_all_new() -> None:
    change = classify(None, definition("a"))
    assert [one.name for one in change.fields] == ["description", "name"]
    assert all(one.before is None for one in change.fields)


@rule("DRIFT-17")
def test_a_manifest_has_one_digest_whatever_its_order() -> None:
    one = {A: definition("a").id, B: definition("b").id}
    other = dict(reversed(one.items()))
    assert SurfaceManifest(one).digest() == SurfaceManifest(other).digest()
    assert SurfaceManifest(one).digest() != SurfaceManifest({A: one[A]}).digest()
    assert str(A) == "home/tool/a"
    assert str(one[A]).startswith("relist1:")
