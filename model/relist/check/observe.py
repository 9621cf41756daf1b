"""A step of a session under watch: what each of its machines did, and every promise that it broke.

``observe`` does what ``receive`` does and shows the steps in it; ``broken`` holds them to all named
checks. Tests, live clients and replayed traces share this.
"""

from collections.abc import Iterator
from typing import NamedTuple

from relist import inputs as i
from relist.check import invariants, isolation
from relist.check.edge import Edge, LinkEdge, ListenEdge
from relist.check.isolation import SessionEdge
from relist.check.joined import LINK_ALWAYS, LISTEN_ALWAYS
from relist.effects import CatalogEffect
from relist.inputs import CatalogInput, SessionInput
from relist.machine import step_link, step_listen
from relist.policy import Policy
from relist.session import Run, Session
from relist.values import KINDS, Kind


class Broken(NamedTuple):
    """A promise that a step broke: its name, whose step it was, and what is wrong."""

    name: str
    where: str
    complaint: str

    def __str__(self) -> str:
        return f"{self.name}: {self.where}: {self.complaint}"


class Observed(NamedTuple):
    """A step of a session, and those of its machines in it, each in order."""

    whole: SessionEdge
    links: tuple[LinkEdge, ...]
    listens: tuple[ListenEdge, ...]
    catalogs: tuple[Edge, ...]


def observe(session: Session, heard: SessionInput, policy: Policy) -> Observed:
    """What ``receive`` makes of this, with the steps in it. Pure.

    Raises ImpossibleAct as ``receive`` does.
    """
    run = _Watched(session, policy, heard.now_ms)
    after, effects = run.hear(heard)
    whole = SessionEdge(session, heard, after, effects, policy)
    return Observed(whole, tuple(run.links), tuple(run.listens), tuple(run.edges))


def broken(observed: Observed) -> Iterator[Broken]:
    """Every promise that this step broke: of the catalogs, the link, push, and the session."""
    for edge in observed.catalogs:
        where = edge.before.kind.value
        yield from (Broken(name, where, why) for name, why in invariants.broken(edge))
    for name, link_check in LINK_ALWAYS.items():
        for link in observed.links:
            if (why := link_check(link)) is not None:
                yield Broken(name, "link", why)
    for name, listen_check in LISTEN_ALWAYS.items():
        for listen in observed.listens:
            if (why := listen_check(listen)) is not None:
                yield Broken(name, "push", why)
    for name, why in isolation.broken(observed.whole):
        yield Broken(name, "session", why)


class _Watched(Run):
    """Writes down each step of a machine. What steps ask for is a pure function, asked again."""

    def __init__(self, session: Session, policy: Policy, now_ms: int) -> None:
        super().__init__(session, policy, now_ms)
        self.links: list[LinkEdge] = []
        self.listens: list[ListenEdge] = []
        self.edges: list[Edge] = []

    def link(self, heard: i.LinkInput) -> None:
        before, told = self._link, step_link(self._link, heard, self._policy).effects
        super().link(heard)
        self.links.append(LinkEdge(before, heard, self._link, told, self._policy))

    def listen(self, heard: i.ListenInput) -> None:
        before, told = self._listen, step_listen(self._listen, heard, self._policy).effects
        super().listen(heard)
        self.listens.append(ListenEdge(before, heard, self._listen, told, self._policy))

    def catalog(self, kind: Kind, heard: CatalogInput) -> None:
        index, count = KINDS.index(kind), len(self.effects)
        before = self._catalogs[index]
        super().catalog(kind, heard)
        told: tuple[CatalogEffect, ...] = tuple(self.effects[count:])  # type: ignore[arg-type]
        self.edges.append(Edge(before, heard, self._catalogs[index], told, self._policy))
