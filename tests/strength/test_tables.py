"""Mutants of the tables are what they are called, and the checks they are made for find them.

One for each thing a check can complain of; all mutants are for the strength run.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from relist.check.explore import explore
from relist.check.invariants import ALWAYS
from relist.check.joined import LINK_ALWAYS, LISTEN_ALWAYS
from relist.check.rows import declared_rows
from strength.tables import CHARTS, Mutant, grounds, judge, mutants, stepper

CHECKS: Mapping[str, Callable[..., str | None]] = {**ALWAYS, **LINK_ALWAYS, **LISTEN_ALWAYS}
MUTANTS: Mapping[tuple[str, str], Mutant] = {
    (name, mutant.name): mutant for name, chart in CHARTS.items() for mutant in mutants(chart)
}

BITES = """
link, link over http
  one-transport
    probing CredentialsChanged -> opening renew: only goes
  link-is-heeded
    waiting ConnectWanted -> opening open_transport: does nothing
    closed CredentialsChanged -> closed: goes to refused
    probing DiscoverAnswered [late] -> probing note_late: does nothing
  link-goes-for-its-reason
    probing DiscoverFailed [unauthorized] -> parked park: falls to the next row
    parked CloseWanted -> closed close: only goes
    live SessionExpired [first_expiry] -> opening renew: falls to the next row
listen, listen
  push-is-heeded
    asked PushReleased -> off release: does nothing
    resting PushOpened [current] -> open admit: only goes
    open PushWanted [asks_otherwise] -> renewing ask_beside: only goes
    resting PushWanted [asks_the_same] -> resting: acts as ask_later
    asked PushOpened [late] -> asked note_late: does nothing
catalog, small one page
  no-late-overwrite
    discovering PageArrived [late] -> discovering note_late: does nothing
  standing-is-as-told
    initializing LinkLost -> disconnected depart: only goes
  time-is-kept
    stale TimePassed [not_due] -> stale: acts as begin
    stale TimePassed [due] -> refreshing begin: does nothing
  answer-counts
    discovering PageArrived [clean_end] -> fresh publish: acts as set_aside
    discovering PageArrived [spoiled_end] -> stale set_aside: acts as fail_overlong
    discovering PageArrived [clean_end] -> fresh publish: acts as publish_and_begin
  notice-is-told
    fresh ListChangedHeard [heeded] -> stale doubt_noticed: only goes
catalog, small capabilities
  standing-is-as-told
    fresh CapabilitiesChanged [declared] -> fresh record_capabilities: does nothing
  phase-has-its-reason
    fresh CapabilitiesChanged [declared] -> fresh record_capabilities: goes to disconnected
  answer-counts
    discovering PageFailed [unknown_method] -> unsupported retire: only goes
catalog, small authorization
  answer-counts
    discovering PageFailed [unauthorized] -> stale park: acts as fail
catalog, small wishes
  wish-is-kept
    stale RefreshWanted -> refreshing begin: does nothing
    disconnected RefreshWanted -> disconnected want: does nothing
  phase-has-its-reason
    fresh StalenessProved [about_another_list] -> fresh: goes to stale
  notice-is-told
    fresh StalenessProved [about_another_list] -> fresh: acts as doubt_suspected
catalog, failures
  answer-counts
    discovering PageFailed [dead_cursor] -> stale start_over: acts as fail
    discovering PageFailed [transient] -> stale fail: acts as start_over
    discovering PageFailed [unmendable] -> stale give_in: acts as park
    discovering PageFailed [unmendable] -> stale give_in: acts as fail
    discovering PageArrived [more] -> discovering gather: does nothing
catalog, endless
  answer-counts
    refreshing PageArrived [overlong] -> stale fail_overlong: acts as set_aside
catalog, small no push, only reads
  notice-is-told
    fresh ListChangedHeard [unheeded] -> fresh note_unheeded: does nothing
"""
"""World, check, and a mutant of each kind that the check finds there."""


def _bites() -> Iterator[Any]:
    chart = world = check = ""
    for line in BITES.strip().splitlines():
        if not line.startswith(" "):
            chart, _, world = line.partition(", ")
        elif not line.startswith("    "):
            check = line.strip()
        else:
            yield pytest.param(chart, world, check, line.strip(), id=line.strip())


@pytest.mark.parametrize(("chart", "world", "check", "name"), list(_bites()))
def test_a_check_bites(chart: str, world: str, check: str, name: str) -> None:
    step, checks = stepper(CHARTS[chart], MUTANTS[chart, name]), {check: CHECKS[check]}
    (made,) = (w for make in CHARTS[chart].worlds if (w := make(step, checks)).name == world)
    found = explore(made).counterexample
    assert found is not None, "the mutant was not found"
    assert found.claim.startswith(f"{check}: ")


@pytest.mark.parametrize("name", CHARTS)
def test_every_declared_row_has_mutants_and_each_mutant_a_name(name: str) -> None:
    made = list(mutants(CHARTS[name]))
    assert {mutant.row for mutant in made} == declared_rows(CHARTS[name].table)
    assert len({mutant.name for mutant in made}) == len(made)


LISTEN = CHARTS["listen"]
WISH = "off PushWanted [pipe_carries] -> open rely_on_pipe: "


def _verdict(mutant: Mutant) -> str:
    return judge(LISTEN, mutant, grounds(LISTEN))


@pytest.mark.thorough
def test_what_does_nothing_is_found_and_what_is_right_survives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mutant = MUTANTS["listen", f"{WISH}does nothing"]
    right = mutant._replace(rows=LISTEN.table[mutant.heard][mutant.phase].rows)
    assert _verdict(mutant) == "push-is-heeded: PushWanted: off -> off (listen)"
    assert _verdict(right) == "survived"
    known = grounds(LISTEN)
    monkeypatch.setattr("strength.tables.GROWTH", 0)
    assert judge(LISTEN, right, known) == "unfinished"


@pytest.mark.thorough
def test_what_raises_and_what_keeps_others_from_happening_is_found() -> None:
    mutant = MUTANTS["listen", f"{WISH}holds when it should not"]
    assert _verdict(mutant) == "raises AssertionError (listen)"
    link, row = CHARTS["link"], "opening TransportOpened [probes] -> probing probe"
    mutant = MUTANTS["link", f"{row}: falls to the next row"]
    verdict = judge(link, mutant, grounds(link))
    assert verdict.startswith("never happens: probing DiscoverFailed [corrects_version]")
