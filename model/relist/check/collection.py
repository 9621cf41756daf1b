"""All worlds that are explored, by name, and what must happen somewhere in them.

``relist explore`` and the tests share this list.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from attrs import evolve, frozen

from relist.check.chart_worlds import LinkWorld, ListenWorld
from relist.check.explore import Explorable
from relist.check.rows import declared_rows
from relist.check.session_world import ACTS, OFFERS, PAIRS, SESSION_POLICY, SessionWorld
from relist.check.setting import Setting
from relist.check.world import World
from relist.check.worlds import ENVIRONMENTS, FEATURES
from relist.check.worlds import LARGER as LARGER_SETTINGS
from relist.machine import CATALOG_TABLE, LINK_TABLE, LISTEN_TABLE
from relist.policy import Policy
from relist.values import Doubt, LinkPhase, ListenPhase, Phase, Wire

Names = tuple[str, ...]


@frozen
class Entry:
    """A world that can be made: ``about`` says what is looked at in it."""

    name: str
    about: str
    make: Callable[[], Explorable[Any]]


def _catalog(setting: Setting, about: str) -> Entry:
    return Entry(setting.name, about, partial(World, setting))


def _session(name: str, wire: Wire, policy: Policy, acts: Names = (), offers: Names = ()) -> Entry:
    make = partial(SessionWorld, name, wire, policy, acts, offers)
    return Entry(name, "two kinds in one session", make)


_LEGACY = evolve(SESSION_POLICY, modern_versions=())
_MODERN = evolve(SESSION_POLICY, legacy_versions=())
_OUTDATED = evolve(_MODERN, discovery_lifetime_ms=1, discovery_gap_ms=1)
_READ, _TASK = ("a read of tools is wanted",), ("a task begins",)
_ALL = tuple(act for act in ACTS if act not in _TASK)

SESSIONS = (
    _session("session, legacy on a pipe", Wire.PIPE, _LEGACY),
    _session("session, legacy over http", Wire.HTTP, _LEGACY),
    _session("session, modern over http", Wire.HTTP, _MODERN),
    _session("session, new offers", Wire.HTTP, _OUTDATED, _TASK, ("tools alone",)),
)
"""Two kinds on one connection."""

DEFAULT: tuple[Entry, ...] = (
    *(_catalog(setting, "one catalog in an environment") for setting in ENVIRONMENTS),
    *(_catalog(setting, "one catalog and what can happen besides") for setting in FEATURES),
    *(
        Entry(f"link over {wire.value}", "the link chart, any server", partial(LinkWorld, wire))
        for wire in Wire
    ),
    Entry("listen", "the listen chart, any server", ListenWorld),
    *SESSIONS,
)
"""Seconds each, a minute together."""

LARGER: tuple[Entry, ...] = (
    *(_catalog(setting, "one catalog, larger") for setting in LARGER_SETTINGS),
    _session("session, legacy on a pipe, all acts", Wire.PIPE, _LEGACY, _ALL),
    _session("session, legacy over http, all acts", Wire.HTTP, _LEGACY, _ALL),
    _session("session, modern over http, all acts", Wire.HTTP, _MODERN, _ALL),
    _session("session, all new offers", Wire.HTTP, _OUTDATED, _READ, tuple(OFFERS)),
)
"""Up to minutes each, ten together."""


def must_happen() -> frozenset[str]:
    """What must be seen in some default world: a law that does nothing keeps every promise.

    Every row and phase of the three charts, every doubt, every pair of phases of two kinds.
    """
    rows = (declared_rows(table) for table in (CATALOG_TABLE, LINK_TABLE, LISTEN_TABLE))
    phases = (phase.value for phase in (*Phase, *LinkPhase, *ListenPhase))
    doubts = (f"doubt {doubt.value}" for doubt in Doubt)
    return frozenset(phases).union(PAIRS, doubts, *rows)
