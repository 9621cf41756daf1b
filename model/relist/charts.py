"""THE LAW: what a catalog may do, declared as a chart.

Read a row as: when this is heard in that phase, and the guard holds, do the action and go there.
Guards and actions are names; ``rules/`` defines them, ``machine.py`` compiles the chart to the
table that runs. Nothing else changes a phase. The guards of one (phase, input) cell exclude each
other and leave nothing out. A cell that is not declared stands in CATALOG_DEFAULTS with its reason.

    DISCONNECTED -> INITIALIZING -> DISCOVERING -> FRESH
    FRESH -(doubt)-> STALE -(due)-> REFRESHING -> FRESH
    a failed or spoiled walk -> STALE; a lost link -> DISCONNECTED, a new one -> INITIALIZING

DISCOVERING and REFRESHING are *walking*: exactly one open walk with exactly one outstanding
request, so single flight is structural. No other phase holds any. Whatever happened, a catalog
whose server is quiet and answers ends in FRESH, unless it is parked, or lazy and nobody asks, or of
a kind that the server does not have.

Rule: STATE-01 to STATE-04, ATOM-14.
"""

from functools import reduce
from typing import Any

from statemachine import State, StateMachine

from relist.values import LinkPhase, ListenPhase, Phase


def _or(one: Any, other: Any) -> Any:
    return one | other


def _stay(*states: State, **what: str) -> Any:
    """Transitions that keep the phase."""
    return reduce(_or, [state.to(state, internal=True, **what) for state in states])


def _go(*states: State, to: State, **what: str) -> Any:
    """Transitions of a group of states to one state."""
    return reduce(_or, [state.to(to, **what) for state in states])


class CatalogChart(StateMachine):
    """One catalog of one server. States are named after the members of ``Phase``."""

    disconnected = State(value=Phase.DISCONNECTED, initial=True)
    initializing = State(value=Phase.INITIALIZING)
    discovering = State(value=Phase.DISCOVERING)
    fresh = State(value=Phase.FRESH)
    stale = State(value=Phase.STALE)
    refreshing = State(value=Phase.REFRESHING)
    unsupported = State(value=Phase.UNSUPPORTED)

    _walking = (discovering, refreshing)
    _settled = (fresh, stale, unsupported)
    _live = (initializing, *_walking, *_settled)

    # The link: a lost or replaced one ends the open walk; what rested on it is doubted.
    link_opened = _go(disconnected, *_live, to=initializing, on="arrive")
    link_lost = _go(*_live, to=disconnected, on="depart")
    credentials_changed = _go(*_live, to=initializing, on="change_partition") | _stay(
        disconnected, on="change_partition"
    )

    # What the server offers: an undeclared kind is never requested.
    listing_allowed = (
        initializing.to(unsupported, cond="undeclared", on="withdraw")
        | initializing.to(fresh, cond="list_holds", on="keep")
        | initializing.to(stale, cond="held_back", on="hold_back")
        | initializing.to(discovering, cond="must_list", on="begin_here")
    )
    capabilities_changed = (
        _go(*_walking, fresh, stale, to=unsupported, cond="undeclared", on="withdraw")
        | _stay(*_walking, fresh, stale, cond="declared", on="record_capabilities")
        | unsupported.to(discovering, cond="must_list", on="begin_here")
        | unsupported.to(stale, cond="held_back", on="hold_back")
        | _stay(unsupported, cond="undeclared", on="record_capabilities")
    )

    # Reasons for doubt: about a published list they make it stale, an open walk they spoil.
    list_changed_heard = (
        fresh.to(stale, cond="heeded", on="doubt_noticed")
        | _stay(*_walking, cond="heeded", on="spoil_noticed")
        | _stay(stale, cond="heeded", on="keep_doubting")
        | _stay(fresh, *_walking, stale, cond="unheeded", on="note_unheeded")
        | _stay(initializing, on="doubt_early")
    )
    coverage_gained = (
        fresh.to(stale, on="cover_and_doubt")
        | _stay(*_walking, on="cover_and_spoil")
        | _stay(initializing, stale, unsupported, on="cover")
    )
    coverage_lost = (
        fresh.to(stale, on="uncover_and_doubt")
        | _stay(*_walking, on="uncover_and_spoil")
        | _stay(initializing, stale, unsupported, on="uncover")
    )
    staleness_proved = (
        fresh.to(stale, cond="about_this_list", on="doubt_suspected")
        | _stay(*_walking, cond="about_this_list", on="spoil_suspected")
        | _stay(fresh, *_walking, cond="about_another_list")
    )

    # Wishes: a read is served by what is fresh or by the open walk, the others by a later walk.
    # They work without any notice (NOTE-09), and many of them ask for one walk.
    read_wanted = (
        fresh.to(refreshing, cond="expired", on="begin")
        | _stay(fresh, cond="unexpired")
        | stale.to(refreshing, cond="lazily_due", on="begin")
        | _stay(stale, cond="not_lazily_due", on="want")
        | _stay(disconnected, initializing, on="want")
    )
    verification_wanted = (
        fresh.to(refreshing, on="begin")
        | stale.to(refreshing, cond="nothing_forbids", on="begin")
        | _stay(stale, cond="something_forbids", on="want")
        | _stay(disconnected, initializing, *_walking, on="want")
    )
    refresh_wanted = _go(fresh, stale, to=refreshing, on="begin") | _stay(
        disconnected, initializing, *_walking, on="want"
    )

    # Time: looked at, never a timer of its own.
    time_passed = (
        stale.to(refreshing, cond="due", on="begin")
        | _stay(stale, cond="not_due")
        | fresh.to(refreshing, cond="poll_due", on="begin")
        | _stay(fresh, cond="no_poll_due")
        | _go(*_walking, to=stale, cond="gave_up", on="give_up")
        | _stay(*_walking, cond="in_time")
    )

    # Answers: pages gather aside; only a complete, clean walk makes the list fresh.
    page_arrived = (
        _stay(*_walking, cond="more", on="gather")
        | _go(*_walking, to=fresh, cond="clean_end", on="publish")
        | _go(*_walking, to=refreshing, cond="clean_end_but_wanted", on="publish_and_begin")
        | _go(*_walking, to=stale, cond="spoiled_end", on="set_aside")
        | _go(*_walking, to=stale, cond="overlong", on="fail_overlong")
        | _stay(*_walking, cond="late", on="note_late")
    )
    page_failed = (
        _stay(*_walking, cond="late", on="note_late")
        | _go(*_walking, to=stale, cond="transient", on="fail")
        | _go(*_walking, to=stale, cond="unauthorized", on="park")
        | _go(*_walking, to=stale, cond="unmendable", on="give_in")
        | _go(*_walking, to=stale, cond="dead_cursor", on="start_over")
        | _go(*_walking, to=unsupported, cond="unknown_method", on="retire")
    )


_IDLE_LINK = "no link, so the link and listen charts send none"
_NOT_YET = "ListingAllowed brings the whole of it later"
_NO_LIST = "there is no list to doubt, and none is ever requested"
_NO_WALK = "no walk is open, so the answer is late"

# (phase, input) -> (what to do, why). "nothing": same state object; "note_late": a Note besides.
CATALOG_DEFAULTS: dict[tuple[str, str], tuple[str, str]] = {
    ("disconnected", "link_lost"): ("nothing", "already without a link"),
    **{
        (phase, "listing_allowed"): ("nothing", "said once for each epoch, in initializing")
        for phase in ("disconnected", "discovering", "fresh", "stale", "refreshing", "unsupported")
    },
    ("disconnected", "capabilities_changed"): ("nothing", _NOT_YET),
    ("initializing", "capabilities_changed"): ("nothing", _NOT_YET),
    ("disconnected", "list_changed_heard"): ("nothing", _IDLE_LINK),
    ("unsupported", "list_changed_heard"): ("note_unheeded", _NO_LIST),
    ("disconnected", "coverage_gained"): ("nothing", _IDLE_LINK),
    ("disconnected", "coverage_lost"): ("nothing", _IDLE_LINK),
    ("disconnected", "staleness_proved"): ("nothing", "nothing can be called; listed again anyway"),
    ("initializing", "staleness_proved"): ("nothing", "nothing can be called yet"),
    ("stale", "staleness_proved"): ("nothing", "doubted already, a walk is due"),
    ("unsupported", "staleness_proved"): ("nothing", _NO_LIST),
    ("discovering", "read_wanted"): ("nothing", "the open walk serves it"),
    ("refreshing", "read_wanted"): ("nothing", "the open walk serves it"),
    ("unsupported", "read_wanted"): (
        "nothing",
        "reads say so; an undeclared kind is not asked for",
    ),
    ("unsupported", "verification_wanted"): ("nothing", "no such call can be made"),
    ("unsupported", "refresh_wanted"): ("nothing", "an undeclared kind is not asked for"),
    ("disconnected", "time_passed"): ("nothing", "nothing is pending"),
    ("initializing", "time_passed"): ("nothing", "the link and listen charts watch the time"),
    ("unsupported", "time_passed"): ("nothing", "nothing is pending"),
    **{
        (phase, answer): ("note_late", _NO_WALK)
        for phase in ("disconnected", "initializing", "fresh", "stale", "unsupported")
        for answer in ("page_arrived", "page_failed")
    },
}


class LinkChart(StateMachine):
    """The connection to one server: transport, era, version. States are those of ``LinkPhase``."""

    closed = State(value=LinkPhase.CLOSED, initial=True)
    opening = State(value=LinkPhase.OPENING)
    probing = State(value=LinkPhase.PROBING)
    handshaking = State(value=LinkPhase.HANDSHAKING)
    live = State(value=LinkPhase.LIVE)
    waiting = State(value=LinkPhase.WAITING)
    parked = State(value=LinkPhase.PARKED)
    refused = State(value=LinkPhase.REFUSED)

    _asking = (probing, handshaking)
    _up = (opening, *_asking, live)

    connect_wanted = _go(closed, waiting, parked, refused, to=opening, on="open_transport")
    close_wanted = _go(*_up, waiting, parked, refused, to=closed, on="close")
    credentials_changed = (
        _go(*_up, to=opening, on="renew")
        | _go(waiting, parked, to=opening, on="open_transport")
        | _stay(closed, refused)
    )
    time_passed = (
        waiting.to(opening, cond="due", on="open_transport")
        | _stay(waiting, cond="not_due")
        | opening.to(waiting, cond="overdue", on="give_up")
        | probing.to(handshaking, cond="silence_means_legacy", on="shake")
        | probing.to(waiting, cond="silence_means_outage", on="give_up")
        | handshaking.to(waiting, cond="overdue", on="give_up")
        | _stay(live, cond="overdue", on="know_as_before")
        | _stay(opening, *_asking, live, cond="not_overdue")
    )

    transport_opened = (
        opening.to(probing, cond="probes", on="probe")
        | opening.to(handshaking, cond="knows_legacy", on="shake")
        | _stay(opening, cond="of_another_epoch", on="note_late")
    )
    transport_lost = _go(*_up, to=waiting, cond="of_this_epoch", on="lose") | _stay(
        *_up, cond="of_another_epoch", on="note_late"
    )
    session_expired = (
        live.to(opening, cond="first_expiry", on="renew")
        | live.to(waiting, cond="repeated_expiry", on="give_up")
        | _stay(live, cond="of_another_epoch", on="note_late")
    )

    # A live modern link asks again what the server offers, when that is out of date and needed.
    discovery_wanted = _stay(live, cond="out_of_date", on="discover_again") | _stay(
        live, cond="up_to_date"
    )
    discover_answered = (
        probing.to(live, cond="shares_modern", on="go_modern")
        | probing.to(handshaking, cond="shares_only_legacy", on="shake_listed")
        | probing.to(refused, cond="shares_nothing", on="refuse")
        | _stay(live, cond="still_speaks_it", on="know_anew")
        | live.to(opening, cond="speaks_it_no_more", on="renew")
        | _stay(probing, live, cond="late", on="note_late")
    )
    discover_failed = (
        _stay(probing, cond="corrects_version", on="probe_listed")
        | probing.to(handshaking, cond="proves_legacy", on="shake_listed")
        | probing.to(refused, cond="proves_no_common_version", on="refuse")
        | probing.to(parked, cond="unauthorized", on="park")
        | probing.to(waiting, cond="unavailable", on="give_up")
        | _stay(live, cond="timely", on="know_as_before")
        | _stay(probing, live, cond="late", on="note_late")
    )
    initialize_answered = (
        handshaking.to(live, cond="acceptable", on="go_legacy")
        | handshaking.to(refused, cond="unacceptable", on="refuse")
        | _stay(handshaking, cond="late", on="note_late")
    )
    initialize_failed = (
        handshaking.to(probing, cond="corrects_version", on="probe_listed")
        | handshaking.to(refused, cond="proves_no_common_version", on="refuse")
        | handshaking.to(parked, cond="unauthorized", on="park")
        | handshaking.to(waiting, cond="handshake_failed", on="forget_era")
        | _stay(handshaking, cond="late", on="note_late")
    )


_LINK_PHASES = tuple(phase.value for phase in LinkPhase)
_LATE = "the answer belongs to a request that was given up"


def _elsewhere(*declared: str) -> tuple[str, ...]:
    return tuple(phase for phase in _LINK_PHASES if phase not in declared)


LINK_DEFAULTS: dict[tuple[str, str], tuple[str, str]] = {
    **{
        (phase, "connect_wanted"): ("nothing", "already on the way")
        for phase in ("opening", "probing", "handshaking", "live")
    },
    ("closed", "close_wanted"): ("nothing", "closed already"),
    **{
        (phase, "time_passed"): ("nothing", "nothing is pending")
        for phase in ("closed", "parked", "refused")
    },
    **{
        (phase, "discovery_wanted"): ("nothing", "whatever opens the link finds out")
        for phase in _elsewhere("live")
    },
    **{
        (phase, "transport_opened"): ("note_late", "no transport of this epoch is being opened")
        for phase in _elsewhere("opening")
    },
    **{
        (phase, "transport_lost"): ("nothing", "its loss is known, or it was closed by us")
        for phase in ("closed", "waiting", "parked", "refused")
    },
    **{
        (phase, "session_expired"): ("nothing", "only a live session can expire")
        for phase in _elsewhere("live")
    },
    **{
        (phase, event): ("note_late", _LATE)
        for event in ("discover_answered", "discover_failed")
        for phase in _elsewhere("probing", "live")
    },
    **{
        (phase, event): ("note_late", _LATE)
        for event in ("initialize_answered", "initialize_failed")
        for phase in _elsewhere("handshaking")
    },
}


class ListenChart(StateMachine):
    """A channel that carries notices. States are those of ``ListenPhase``.

    A subscription that asks for something else is renewed: the old stream stands until the new one
    is acknowledged. An open stream itself has no deadline (SUB-29).
    """

    off = State(value=ListenPhase.OFF, initial=True)
    asked = State(value=ListenPhase.ASKED)
    open = State(value=ListenPhase.OPEN)
    renewing = State(value=ListenPhase.RENEWING)
    resting = State(value=ListenPhase.RESTING)

    push_wanted = (
        off.to(open, cond="pipe_carries", on="rely_on_pipe")
        | off.to(asked, cond="must_ask", on="ask_first")
        | _stay(off, cond="nothing_to_ask")
        | _stay(asked, renewing, cond="asks_otherwise", on="ask_instead")
        | open.to(renewing, cond="asks_otherwise", on="ask_beside")
        | _stay(resting, cond="asks_otherwise", on="ask_later")
        | _go(asked, open, renewing, resting, to=off, cond="asks_nothing", on="hang_up")
        | _stay(asked, open, renewing, resting, cond="asks_the_same")
    )
    push_released = _go(asked, open, renewing, resting, to=off, on="release")
    push_opened = (
        _go(asked, resting, to=open, cond="current", on="admit")
        | renewing.to(open, cond="current", on="take_over")
        | _stay(asked, renewing, resting, cond="late", on="note_late")
    )
    push_ended = (
        _go(asked, open, to=resting, cond="may_come_back", on="rest")
        | _go(asked, open, to=off, cond="never_comes_back", on="go_without")
        | renewing.to(open, cond="new_one_failed", on="keep_old")
        | renewing.to(asked, cond="old_one_ended", on="lose_old")
        | _stay(asked, open, renewing, cond="late", on="note_late")
    )
    time_passed = (
        asked.to(resting, cond="unanswered", on="give_up")
        | renewing.to(open, cond="unanswered", on="keep_old")
        | _stay(asked, renewing, cond="may_be_answered")
        | resting.to(asked, cond="due", on="ask_again")
        | open.to(renewing, cond="due", on="ask_again")
        | _stay(open, resting, cond="not_due")
    )


LISTEN_DEFAULTS: dict[tuple[str, str], tuple[str, str]] = {
    ("off", "push_released"): ("nothing", "there is none"),
    ("off", "push_opened"): ("note_late", "nothing was asked for"),
    ("open", "push_opened"): ("note_late", "an acknowledgement comes once"),
    ("off", "push_ended"): ("note_late", "its end is known"),
    ("resting", "push_ended"): ("note_late", "its end is known"),
    ("off", "time_passed"): ("nothing", "nothing is pending"),
}
