"""Two runs and what they have to do with each other: scripts, what else they could say, how alike.

A script is what one session heard in a play, in order. It is heard again in another wording, and
the two runs are compared step by step.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from attrs import evolve, fields, frozen, has

from relist import inputs as i
from relist.effects import Effect, Note
from relist.inputs import SessionInput
from relist.policy import Policy
from relist.session import Session, new_session, receive
from relist.values import CHANNEL_OF, KINDS, Kind, Wire
from support.play import Play
from support.stage import POLICY, Setting

AnyT = TypeVar("AnyT")


@frozen
class Script:
    """What a session heard, in order, and the session that heard it."""

    wire: Wire
    policy: Policy
    heard: tuple[SessionInput, ...]

    def first(self) -> Session:
        """The session before it heard anything."""
        return new_session(self.wire, "A")


@frozen
class Heard:
    """One step of a run."""

    heard: SessionInput
    before: Session
    after: Session
    effects: tuple[Effect, ...]


class _Recorder(Play):
    """A play that keeps what was heard, and checks nothing."""

    def __init__(self, setting: Setting, policy: Policy) -> None:
        self.heard: list[SessionInput] = []
        super().__init__(setting, policy)

    def hear(self, heard: SessionInput) -> None:
        self.heard.append(heard)
        self.session, effects = receive(self.session, heard, self.policy)
        for effect in effects:
            self._perform(effect)


def recorded(setting: Setting, choices: bytes, policy: Policy = POLICY) -> Script:
    """What a session hears in a play of these choices, after its lists came for the first time."""
    play = _Recorder(setting, policy)
    play.run()
    play.run()
    for choice in choices:
        play.act(choice)
    return Script(setting.wire, play.policy, tuple(play.heard))


def run_of(script: Script) -> Iterator[Heard]:
    """The script, step by step."""
    session = script.first()
    for heard in script.heard:
        before = session
        session, effects = receive(before, heard, script.policy)
        yield Heard(heard, before, session, effects)


class Wording:
    """The same value in other words: ``word`` says how each leaf reads, by the name of its field.

    Leaves are what is neither a value class nor a tuple nor a set.
    """

    def __init__(self, word: Callable[[str, Any], Any]) -> None:
        self._word = word
        self._said: dict[int, tuple[object, Any]] = {}  # the value itself, so that its id stays its

    def __call__(self, value: AnyT) -> AnyT:
        """The value in these words. What is shared is worded once."""
        worded: AnyT = self._worded("", value)
        return worded

    def _worded(self, name: str, value: Any) -> Any:
        if isinstance(value, tuple | frozenset):
            return type(value)(self._worded(name, part) for part in value)
        if not has(type(value)):
            return self._word(name, value)
        said = self._said.get(id(value))
        if said is None:
            given = (field.name for field in fields(type(value)) if field.init)
            parts = (self._worded(part, getattr(value, part)) for part in given)
            said = self._said[id(value)] = value, type(value)(*parts)
        return said[1]


def assert_same_but_for(script: Script, wording: Wording, *, blind_to: str = "") -> None:
    """Heard in other words, the script leads to the same states and effects in those words.

    ``blind_to`` is the name of a field that is not compared.
    """
    blind = Wording(lambda name, value: None if name == blind_to else value)
    session = script.first()
    for step in run_of(script):
        session, effects = receive(session, wording(step.heard), script.policy)
        assert effects == wording(step.effects), step.heard
        seen, expected = session, wording(step.after)
        if blind_to:
            seen, expected = blind(seen), blind(expected)
        assert seen == expected, step.heard


def concerned(heard: SessionInput) -> frozenset[Kind]:
    """The kinds that this is about; none for what is about the session as a whole."""
    if isinstance(heard, i.NoticeHeard):
        return frozenset(kind for kind in KINDS if CHANNEL_OF[kind] is heard.channel)
    kind: Kind | None = getattr(heard, "kind", None)
    return frozenset() if kind is None else frozenset({kind})


def independent(one: SessionInput, other: SessionInput) -> bool:
    """Whether these are about different kinds, at the same time."""
    mine, yours = concerned(one), concerned(other)
    return one.now_ms == other.now_ms and bool(mine) and bool(yours) and not mine & yours


def told(effects: Iterable[Effect]) -> Mapping[Hashable, list[Effect]]:
    """Effects by the kind they are about, in order; all notes together, without order or values."""
    by_kind: dict[Hashable, list[Effect]] = defaultdict(list)
    for effect in effects:
        if isinstance(effect, Note):
            by_kind[Note].append(evolve(effect, values=()))
        else:
            by_kind[getattr(effect, "kind", None)].append(effect)
    by_kind[Note].sort(key=str)
    return by_kind
