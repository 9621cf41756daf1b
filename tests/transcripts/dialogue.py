"""Dialogues with one session: commands in, what came of them out, both as text.

A transcript is a text file: its purpose first, then commands (lines that begin with ``> ``), each
followed by what came of it, indented. Times are virtual; ``->`` shows changes of phase, in capitals
the effects are as the adapter gets them. ``wake-up`` tells a new deadline, counted from now.
"""

import shlex
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from attrs import evolve, fields

from relist import effects as e
from relist import inputs as i
from relist import resources
from relist.admission import Admission, Call, Verdict, admit, arguments_checked
from relist.core import Relist
from relist.errors import RelistError
from relist.messages import NAMES
from relist.policy import Policy
from relist.scope import cache_key
from relist.session import Session
from relist.values import (
    CHANNEL_OF,
    KINDS,
    Capabilities,
    Channel,
    Era,
    Failure,
    Items,
    Kind,
    LinkPhase,
    Scope,
    Snapshot,
    Wire,
)
from support.one import LEGACY, MODERN, SEED, items

MARK = "> "
KIND_OF = {kind.value.removeprefix("resource_"): kind for kind in KINDS}


class Words(NamedTuple):
    """A command's words: those that stand alone, and those of the form ``key=value``."""

    alone: list[str]
    said: dict[str, str]

    def number(self, key: str) -> int | None:
        return int(self.said[key]) if key in self.said else None

    def kind(self) -> Kind:
        return KIND_OF[self.alone.pop(0)]


def played(text: str) -> str:
    """The transcript as it would be now: same purpose and commands, what came of them anew."""
    dialogue = Dialogue()
    told: list[str] = []
    for line in text.splitlines():
        if line.startswith(MARK):
            told += [line, *(f"    {came}" for came in dialogue.hear(line.removeprefix(MARK)))]
        elif not line.startswith("    "):
            told.append(line)
    return "\n".join(told) + "\n"


class Dialogue:
    """A session under a virtual clock, and the host's side of it: planned calls, kept contents."""

    def __init__(self) -> None:
        self._rules: dict[str, Any] = {"seed": SEED, "jitter_percent": 0}
        self._wire = Wire.HTTP
        self._made: Relist | None = None
        self._now_ms = 0
        self._wake_ms: int | None = None
        self._calls: dict[str, Call] = {}
        self._contents: resources.Contents = {}

    @property
    def core(self) -> Relist:
        """The session, made when it is first needed: wire and policy are said before that."""
        if self._made is None:
            self._made = Relist(self._wire, Policy(**self._rules), "A")
        return self._made

    def hear(self, line: str) -> Iterator[str]:
        """What comes of one command."""
        first, *rest = shlex.split(line, comments=True)
        command: Callable[[Words], Iterator[str]] = getattr(self, f"_{first}")
        said = dict(word.split("=", 1) for word in rest if "=" in word)
        yield from command(Words([word for word in rest if "=" not in word], said))

    # --- setting out ------------------------------------------------------------------------------

    def _policy(self, words: Words) -> Iterator[str]:
        for name, value in words.said.items():
            self._rules[name] = {"true": True, "none": None}.get(value, value)
            if value.isdigit():
                self._rules[name] = int(value)
            elif name.endswith("_versions"):
                self._rules[name] = tuple(filter(None, value.split(",")))
        yield from ()

    def _over(self, words: Words) -> Iterator[str]:
        self._wire = Wire(words.alone[0])
        yield from ()

    def _live(self, words: Words) -> Iterator[str]:
        """A live link to a server of this era and these capabilities; only the end is told."""
        era = words.alone.pop(0)
        for quiet in self._to_live(era, words):
            told = list(self._tell(quiet))
        yield from told

    def _to_live(self, era: str, words: Words) -> Iterator[i.SessionInput]:
        now_ms = self._now_ms
        yield i.ConnectWanted(now_ms)
        yield i.TransportOpened(self.core.session.link.epoch, now_ms)
        offered = capabilities(words.alone)
        if era == "modern":
            yield i.DiscoverAnswered(self.core.session.link.serial, (MODERN,), offered, now_ms)
        else:
            if self.core.session.link.phase is LinkPhase.PROBING:
                unknown = Failure("error answer", code=-32601)
                yield i.DiscoverFailed(self.core.session.link.serial, unknown, now_ms)
            serial = self.core.session.link.serial
            yield i.InitializeAnswered(serial, words.said.get("version", LEGACY), offered, now_ms)
        listen = self.core.session.listen
        if listen.limit_at_ms is not None:
            yield i.PushOpened(listen.serial, listen.topics, now_ms)

    # --- time -------------------------------------------------------------------------------------

    def _wait(self, words: Words) -> Iterator[str]:
        """The clock moves, and the session looks at it."""
        self._now_ms += int(words.alone[0])
        yield from self._tell(i.TimePassed(self._now_ms))

    def _wake(self, _: Words) -> Iterator[str]:
        """The clock moves to the deadline."""
        at_ms = self.core.deadline_ms()
        assert at_ms is not None, "nothing is pending"
        yield f"{at_ms - self._now_ms} ms later"
        self._now_ms = at_ms
        yield from self._tell(i.TimePassed(at_ms))

    # --- the link ---------------------------------------------------------------------------------

    def _connect(self, _: Words) -> Iterator[str]:
        yield from self._tell(i.ConnectWanted(self._now_ms))

    def _close(self, _: Words) -> Iterator[str]:
        yield from self._tell(i.CloseWanted(self._now_ms))

    def _credentials(self, words: Words) -> Iterator[str]:
        yield from self._tell(i.CredentialsChanged(words.alone[0], self._now_ms))

    def _transport(self, words: Words) -> Iterator[str]:
        epoch, now_ms = self._epoch(words), self._now_ms
        opened = words.alone == ["opened"]
        heard = i.TransportOpened(epoch, now_ms) if opened else i.TransportLost(epoch, now_ms)
        yield from self._tell(heard)

    def _session(self, words: Words) -> Iterator[str]:
        assert words.alone == ["expired"]
        yield from self._tell(i.SessionExpired(self._epoch(words), self._now_ms))

    def _discover(self, words: Words) -> Iterator[str]:
        serial, how = self._serial(words, self.core.session.link.serial), words.alone.pop(0)
        if how == "failed":
            yield from self._tell(i.DiscoverFailed(serial, failure(words), self._now_ms))
            return
        versions = tuple(filter(None, words.said.get("versions", MODERN).split(",")))
        offered = capabilities(words.alone)
        yield from self._tell(i.DiscoverAnswered(serial, versions, offered, self._now_ms))

    def _initialize(self, words: Words) -> Iterator[str]:
        serial, how = self._serial(words, self.core.session.link.serial), words.alone.pop(0)
        if how == "failed":
            yield from self._tell(i.InitializeFailed(serial, failure(words), self._now_ms))
            return
        version, offered = words.said.get("version", LEGACY), capabilities(words.alone)
        yield from self._tell(i.InitializeAnswered(serial, version, offered, self._now_ms))

    # --- push -------------------------------------------------------------------------------------

    def _push(self, words: Words) -> Iterator[str]:
        serial, how = self._serial(words, self.core.session.listen.serial), words.alone.pop(0)
        if how == "opened":
            granted = frozenset(Channel(name) for name in words.alone)
            yield from self._tell(i.PushOpened(serial, granted, self._now_ms))
        else:
            cause = failure(words) if words.said else None
            yield from self._tell(i.PushEnded(serial, cause, self._now_ms))

    def _notice(self, words: Words) -> Iterator[str]:
        """``tag=``: the serial of its subscription, ``none`` for an untagged one."""
        session = self.core.session
        tag = session.listen.serial if session.link.era is Era.MODERN else None
        if "tag" in words.said:
            tag = None if words.said["tag"] == "none" else int(words.said["tag"])
        yield from self._tell(i.NoticeHeard(Channel(words.alone[0]), tag, self._now_ms))

    # --- lists ------------------------------------------------------------------------------------

    def _page(self, words: Words) -> Iterator[str]:
        kind = words.kind()
        heard = i.PageArrived(
            kind,
            self._serial(words, self.core.session.catalog(kind).serial),
            items(*words.alone),
            words.said.get("next"),
            words.number("ttl_ms"),
            Scope(words.said.get("scope", "private")),
            self._now_ms,
        )
        yield from self._tell(heard)

    def _fail(self, words: Words) -> Iterator[str]:
        kind = words.kind()
        serial = self._serial(words, self.core.session.catalog(kind).serial)
        yield from self._tell(i.PageFailed(kind, serial, failure(words), self._now_ms))

    def _want(self, words: Words) -> Iterator[str]:
        yield from self._tell(i.ReadWanted(words.kind(), self._now_ms))

    def _refresh(self, words: Words) -> Iterator[str]:
        yield from self._tell(i.RefreshWanted(words.kind(), self._now_ms))

    def _prove(self, words: Words) -> Iterator[str]:
        """A call planned on this generation was rejected as only a stale list explains."""
        proved = i.StalenessProved(words.kind(), int(words.said["generation"]), self._now_ms)
        yield from self._tell(proved)

    # --- the host ---------------------------------------------------------------------------------

    def _read(self, words: Words) -> Iterator[str]:
        for word in words.alone or KIND_OF:
            found = self.core.read(KIND_OF[word], self._now_ms)
            doubt = f" ({found.doubt.value})" if found.doubt else ""
            held = f", {said(found.snapshot)}" if found.snapshot else ""
            age = f", {found.age_ms} ms old" if found.snapshot else ""
            yield f"{word}: {found.hit.value}{doubt}{held}{age}"

    def _key(self, words: Words) -> Iterator[str]:
        """Under what the list may be kept and shown."""
        key = cache_key(self.core.session.catalog(words.kind()), "server")
        yield "no list" if key is None else f"{key.version} partition {key.partition!r}"

    def _plan(self, words: Words) -> Iterator[str]:
        """A model plans a call on what it was shown: the list as it is now."""
        kind, name = words.kind(), words.alone[0]
        snapshot = self.core.session.catalog(kind).snapshot
        assert snapshot is not None
        planned = next((entry for entry in snapshot.items if entry.key == name), None)
        self._calls[name] = Call(name, snapshot.generation, planned)
        yield f"{name} of generation {snapshot.generation}"

    def _call(self, words: Words) -> Iterator[str]:
        """May the planned call be sent? ``invalid``: its arguments do not fit the schema."""
        kind, name = words.kind(), words.alone.pop(0)
        yield from self._judged(name, self._admit(kind, self._calls[name]))
        while self._last.verdict is Verdict.CHECK:
            item = self._last.item
            assert item is not None
            call = arguments_checked(self._last.call, item, "invalid" not in words.alone)
            yield from self._judged(name, self._admit(kind, call))

    def _admit(self, kind: Kind, call: Call) -> Admission:
        return admit(self.core.session.catalog(kind), call, self._now_ms, self.core.policy)

    def _judged(self, name: str, found: Admission) -> Iterator[str]:
        self._calls[name], self._last = found.call, found
        why = f" ({found.refusal.value})" if found.refusal else ""
        entry = f" {found.item.canonical_json.decode()}" if found.item else ""
        yield f"{found.verdict.value}{entry}{why}"

    def _keep(self, words: Words) -> Iterator[str]:
        """A resource was read, with this lifetime."""
        self._contents = resources.keep(
            self._contents,
            words.alone[0],
            b"body",
            ttl_ms=words.number("ttl_ms"),
            scope=Scope.PRIVATE,
            partition="A",
            by_retry=False,
            now_ms=self._now_ms,
            policy=self.core.policy,
        )
        yield from ()

    def _updated(self, words: Words) -> Iterator[str]:
        """The content of a resource changed: no input of the session."""
        self._contents = resources.updated(self._contents, words.alone[0])
        yield from ()

    def _look(self, words: Words) -> Iterator[str]:
        held = resources.look_up(self._contents, words.alone[0], "A", self._now_ms)
        yield "must be read" if held is None else "may be served"

    # --- telling ----------------------------------------------------------------------------------

    def _epoch(self, words: Words) -> int:
        return self._serial(words, self.core.session.link.epoch, "epoch")

    def _serial(self, words: Words, current: int, key: str = "serial") -> int:
        number = words.number(key)
        return current if number is None else number

    def _tell(self, heard: i.SessionInput) -> Iterator[str]:
        before = self.core.session
        try:
            self.core.receive(heard)
        except RelistError as error:
            yield f"raises {type(error).__name__}: {error}"
            return
        after, told = self.core.session, self.core.effects()
        moved: dict[str, list[str]] = {}
        for (name, was), now in zip(phases(before).items(), phases(after).values(), strict=True):
            if was != now:
                moved.setdefault(f"{was} -> {now}", []).append(name)
        yield from (f"{', '.join(names)} {way}" for way, names in moved.items())
        yield from map(effect_text, told)
        if not (moved or told):
            yield "nothing changed" if after is before else "no effect"
        wake_ms = self.core.deadline_ms()
        if wake_ms != self._wake_ms:
            yield "no wake-up" if wake_ms is None else f"wake-up in {wake_ms - self._now_ms} ms"
        self._wake_ms = wake_ms


def phases(session: Session) -> dict[str, str]:
    """Where every machine of the session stands, by its name."""
    named = {"link": session.link.phase.name, "listen": session.listen.phase.name}
    catalogs = zip(KIND_OF, session.catalogs, strict=True)
    return named | {name: catalog.phase.name for name, catalog in catalogs}


def capabilities(words: list[str]) -> Capabilities:
    """``tools`` is declared, ``tools+`` with listChanged; resources brings templates."""
    names = [word.rstrip("+") for word in words]
    kinds = frozenset(kind for kind in KINDS if NAMES[kind].capability in names)
    pushed = {word.rstrip("+") for word in words if word.endswith("+")}
    return Capabilities(
        kinds, frozenset(CHANNEL_OF[kind] for kind in kinds if NAMES[kind].capability in pushed)
    )


def failure(words: Words) -> Failure:
    """``code=``, ``status=``, ``retry_after_ms=``, ``supported=``."""
    supported = tuple(filter(None, words.said.get("supported", "").split(",")))
    return evolve(
        Failure("failed", supported=supported),
        code=words.number("code"),
        status=words.number("status"),
        retry_after_ms=words.number("retry_after_ms"),
    )


def said(snapshot: Snapshot) -> str:
    """A list in a few words."""
    marks = "" if snapshot.clean else ", spoiled"
    marks += f", ambiguous {' '.join(sorted(snapshot.ambiguous))}" if snapshot.ambiguous else ""
    marks += ", public" if snapshot.scope is Scope.PUBLIC else ""
    return f"generation {snapshot.generation}: {entries(snapshot.items)}{marks}"


def entries(listed: Items) -> str:
    """The entries as the page wrote them."""
    return " ".join(entry.canonical_json.decode() for entry in listed) or "(empty)"


def effect_text(told: e.Effect) -> str:
    """An effect: its name and its values."""
    match told:
        case e.Publish():
            changed = "changed" if told.changed else "only checked"
            return f"Publish {told.kind.value} {said(told.snapshot)} ({changed})"
        case e.Note():
            values = " ".join(str(value) for value in told.values)
            return f"Note {told.rule} {told.text} [{values}]"
        case _:
            values = " ".join(_value(getattr(told, f.name)) for f in fields(type(told)))
            return f"{type(told).__name__} {values}".rstrip()


def _value(value: Any) -> str:
    if isinstance(value, frozenset):
        return ",".join(sorted(channel.value for channel in value))
    if value is None:
        return ""
    return repr(value) if isinstance(value, str) else str(getattr(value, "value", value))
