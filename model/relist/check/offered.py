"""What a client told its application, held against the lists that the machine published.

Of one event only the first fault is told. ``None``: the machine would have told the same, or nobody
can know better.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from attrs import frozen

from relist.check.following import name_of, text_of
from relist.check.history import Event, History, mapping
from relist.check.partial import is_cut_text
from relist.check.plainly import quoted, shown
from relist.check.replayed import Reason, Replayed
from relist.check.walked import Labels, Listed, Walks
from relist.messages import NAMES, is_integer, is_list
from relist.values import Kind, LinkPhase

LISTING = ("need", "believe", "refresh")


@frozen
class Told:
    """A list that an application was told: asked for and answered in these events.

    ``labels`` None: no list.
    """

    op: str
    kind: Kind
    asked: Event
    event: Event
    labels: Labels | None
    state: str

    @property
    def claims(self) -> bool:
        """Whether the list was given for good."""
        return self.state != "stale"


class Offered:
    """All that was told so far, and by what it may be explained."""

    def __init__(self, history: History, replayed: Replayed) -> None:
        self.told: list[Told] = []
        self.asks: dict[str, Event] = {}
        self._history = history
        self._replayed = replayed
        self._newest = dict.fromkeys(Kind, -1)
        """When the walk began whose list was shown."""
        self._shown: dict[tuple[Kind, int], Event] = {}
        """By the beginning of its walk: in which answer a list was shown first."""
        self._calls: dict[str, Event] = {}
        """Calls that have not been answered."""
        self._acts_for: list[tuple[int, str]] = [(-1, "")]
        self._advanced: list[tuple[int, int]] = []

    def ask(self, event: Event) -> None:
        """A command was put to the driver."""
        name = name_of(event.data.get("ask"))
        self.asks[name] = event
        if event.data.get("op") == "call":
            self._calls[name] = event

    def advances(self, event: Event, ms: int = 0) -> None:
        """Time is made to pass; ``ms`` where only the client's clock shows it."""
        self._advanced.append((event.seq, ms))

    def take(self, event: Event) -> str | None:
        """What is wrong with an answer of the driver."""
        name = name_of(event.data.get("ask"))
        self._calls.pop(name, None)
        ask, ok = self.asks.get(name), mapping(event.data.get("ok"))
        if ask is None or ok is None:
            return None
        op = event.data.get("op")
        if op == "advance":
            ms = ask.data.get("ms")
            self.advances(event, ms if is_integer(ms) else 0)
        elif op == "credentials":
            self._acts_for.append((ask.seq, self._replayed.partition))
        elif op == "call":
            return self._called(event, ask, ok)
        elif op in LISTING and (told := read_told(event, ask, ok)) is not None:
            return self._listing(told)
        return None

    def planned(self, event: Event) -> str | None:
        """What is wrong with a call that was planned on a tool which has been shown otherwise."""
        params = mapping((event.message or {}).get("params")) or {}
        name = text_of(params.get("name"))
        asks = [one for one in self._calls.values() if one.data.get("name") == name]
        planned = mapping(asks[0].data.get("planned")) if len(asks) == 1 else None
        if planned is None:
            return None
        wanted = (planned.get("name"), planned.get("description"))
        lists = [one.labels for one in self.told if one.kind is Kind.TOOLS and one.labels]
        now = [label for label in lists[-1] if label[0] == wanted[0]] if lists else []
        if not now or wanted in now:
            return None
        return (
            f"tools/call was sent for {quoted(wanted[0])} as planned on {quoted(wanted[1])},"
            f" after the client had shown {quoted(now[0][1])}"
        )

    def known(self, reason: Reason) -> int | None:
        """Since when the client knows of it for sure: of a lost link once it has another one."""
        machine = self._replayed.machine
        if reason.proved >= 0:
            return reason.proved
        live = machine.link.phase is LinkPhase.LIVE and machine.live_seq > reason.seq
        return machine.live_seq if live else None

    def lists_later(self, kind: Kind, seq: int) -> bool:
        """Whether the client asks for the list once more after this event."""
        method = NAMES[kind].method
        return any(
            one.seq > seq and one.kind == "in" and (one.message or {}).get("method") == method
            for one in self._history
        )

    # --- one answer ---

    def _called(self, event: Event, ask: Event, ok: Mapping[str, Any]) -> str | None:
        """A result of a call comes from the server."""
        name, called = text_of(ask.data.get("name")), self._replayed.called
        sent = any(ask.seq < seq < event.seq and name == one for seq, one in called)
        if ok.get("outcome") != "result" or sent:
            return None
        return f"a result of {quoted(name)} was told, and no tools/call had been sent for it"

    def _listing(self, told: Told) -> str | None:
        kind, replayed = told.kind, self._replayed
        if kind in replayed.lost:
            return None
        walks = replayed.walks[kind]
        if told.labels is None:
            text, lists = self._nothing(told, walks), list[Listed]()
        else:
            text, lists = self._judged(told, told.labels, walks)
        if text is not None:
            offer = "no list" if told.labels is None else shown(told.labels)
            return f"{told.op} was answered with {offer}, {text}"
        self.told.append(told)
        if lists:
            self._newest[kind] = max(self._newest[kind], min(one.begin for one in lists))
        for one in lists:
            self._shown.setdefault((kind, one.begin), told.event)
        return None

    def _nothing(self, told: Told, walks: Walks) -> str | None:
        """No list, and not for the first time, where the server has given one."""
        machine = self._replayed.machine
        live = machine.link.phase is LinkPhase.LIVE and told.kind in machine.offers
        if told.op == "believe" or not live or walks.open:
            return None
        waited = [
            one
            for one in self.told
            if one.kind is told.kind and one.labels is None and one.op != "believe"
        ]
        acted_for = self._acted_for(told)
        for end in (one.end for one in walks.ended if one.partition in acted_for):
            # Whoever had waited for that list got none either: it was not given up before it came.
            spans = any(one.asked.seq < end < one.event.seq for one in waited)
            if spans and max(machine.live_seq, walks.refused) < end < told.asked.seq:
                return f"and not for the first time since the server had given one (#{end})"
        return None

    def _judged(self, told: Told, labels: Labels, walks: Walks) -> tuple[str | None, list[Listed]]:
        """What is wrong with a list that was told, and which lists it may be."""
        if self._withdrawn(told):
            return "and the server does not have the kind", []
        lists = [one for one in walks.ended if one.shows(labels)]
        if not lists:
            return _of_no_walk(labels, walks), []
        lists = [one for one in lists if one.public or one.partition in self._acted_for(told)]
        if not lists:
            return "which was listed for somebody else", []
        newest = self._newest[told.kind]
        current = [one for one in lists if one.begin >= newest or one.end > told.asked.seq]
        if not current:
            return f"an older list (#{lists[-1].end}) than one that was shown before", []
        asked_at = self._replayed.asked_at[told.kind]
        text = (
            self._doubted(told, current, asked_at)
            or self._expired(told, current, asked_at)
            or _not_refreshed(told, asked_at)
        )
        return text, current

    def _acted_for(self, told: Told) -> set[str]:
        """For whom the client acted while it was asked."""
        before = [token for seq, token in self._acts_for if seq <= told.asked.seq]
        return {*before[-1:], *(token for seq, token in self._acts_for if seq > told.asked.seq)}

    def _withdrawn(self, told: Told) -> bool:
        machine = self._replayed.machine
        live = machine.link.phase is LinkPhase.LIVE and told.asked.seq > machine.live_seq
        return live and told.kind not in machine.offers

    def _doubted(self, told: Told, lists: list[Listed], asked_at: int) -> str | None:
        """The client knew that its list may be wrong, and neither said so nor asked again."""
        reason = self._replayed.reasons.get(told.kind)
        known = None if reason is None else self.known(reason)
        if reason is None or known is None or told.asked.seq < known or not told.claims:
            return None
        if told.state == "fresh":
            newer = any(one.begin > reason.seq for one in lists)
            return None if newer else f"called fresh, though {reason.told}"
        if asked_at > reason.seq or told.op == "believe":
            return None
        if self.lists_later(told.kind, told.event.seq):
            return None
        return f"given for good without {NAMES[told.kind].method}, though {reason.told}"

    def _expired(self, told: Told, lists: list[Listed], asked_at: int) -> str | None:
        """Whichever it may be had outlived its lifetime, and none was asked for."""
        fresh, live = told.state == "fresh", self._replayed.machine.link.phase is LinkPhase.LIVE
        if not (fresh or (told.claims and live and told.op != "believe")):
            return None
        for one in lists:
            first = self._shown.get((told.kind, one.begin))
            if first is None or one.lifetime_ms is None or asked_at > first.seq:
                return None
            if first.seq >= told.asked.seq or self._passed_ms(first, told) < one.lifetime_ms:
                return None
        method, ms = NAMES[told.kind].method, min(one.lifetime_ms or 0 for one in lists)
        lifetime = f"its lifetime was over {ms} ms after it was listed"
        return f"given for good without {method}, though {lifetime}"

    def _passed_ms(self, first: Event, told: Told) -> int:
        """How much time passed between these for sure: 0 where none was made to pass."""
        steps = [ms for seq, ms in self._advanced if first.seq < seq < told.asked.seq]
        if not steps:
            return 0
        return sum(steps) or told.asked.at_ms - first.at_ms - 1


def read_told(event: Event, ask: Event, ok: Mapping[str, Any]) -> Told | None:
    """A list that was told, or that there is none; None if it cannot be read."""
    told_kind = event.data.get("kind")
    kind = next((one for one in Kind if one.value == told_kind), None)
    items, said = ok.get("items"), (text_of(event.data.get("op")), text_of(ok.get("state")))
    if kind is None or not (items is None or is_list(items)):
        return None
    found = [mapping(item) or {} for item in items or ()]
    labels = [(one.get("name"), one.get("description")) for one in found]
    read = [(one, told) for one, told in labels if isinstance(one, str) and isinstance(told, str)]
    if len(read) < len(labels) or any(is_cut_text(one) for label in read for one in label):
        return None
    return Told(said[0], kind, ask, event, None if items is None else tuple(sorted(read)), said[1])


def _not_refreshed(told: Told, asked_at: int) -> str | None:
    """A refresh asks the server."""
    if told.op != "refresh" or not told.claims or asked_at > told.asked.seq:
        return None
    return f"without {NAMES[told.kind].method} since it was asked"


def _of_no_walk(labels: Labels, walks: Walks) -> str | None:
    """What a list is that no walk came to."""
    pages = walks.pages
    if not labels:
        return "and no listing was empty" if pages or walks.refused >= 0 else None
    if any(one.shows(tuple(sorted(set(labels)))) for one in walks.ended):
        twice = [label for label, times in Counter(labels).items() if times > 1]
        return f"which holds {shown(tuple(twice[:1]))} more than once"
    for page in walks.unused:
        if set(labels) <= set(page.labels):
            return f"which only an answer held that {page.why} (#{page.seq})"
    for walked in pages:
        for count in range(1, len(walked) + 1):
            if labels == tuple(sorted(label for page in walked[:count] for label in page)):
                return f"which is no more than the first {_pages(count)} of a longer list"
    known = {label for walked in pages for page in walked for label in page}
    if set(labels) <= known | {label for page in walks.unused for label in page.labels}:
        return "which no listing gave: it is put together from several, or a part of one"
    return f"which no answer to {NAMES[walks.kind].method} held"


def _pages(count: int) -> str:
    return "page" if count == 1 else f"{count} pages"
