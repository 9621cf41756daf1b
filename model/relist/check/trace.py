"""A trace: what a session was told, line by line, and what it did; and what it does on replay.

JSON Lines. The first is a ``Header``, each other a ``Step``: the input, the effects that followed,
and where things stood then. The items in it are what the server sent; credentials are in no input.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from attrs import evolve, frozen

import relist
from relist.check.codec import Malformed, decode, encode, parsed, schema, text_of
from relist.check.observe import Broken, Observed, broken, observe
from relist.effects import Effect, Publish
from relist.errors import ImpossibleAct, PolicyError
from relist.inputs import PageArrived, SessionInput
from relist.messages import is_list, is_object
from relist.policy import Policy
from relist.session import Session, deadline_ms, new_session
from relist.snapshot import digest
from relist.values import Doubt, LinkPhase, ListenPhase, Phase, Wire

FORMAT: Literal[1] = 1


@frozen
class Header:
    """How a session began: its policy, its wire, and for whom, by a harmless digest."""

    format: Literal[1]
    relist: str
    wire: Wire
    partition: str
    policy: Policy


@frozen
class Standing:
    """Where a catalog stands."""

    phase: Phase
    doubt: Doubt | None
    generation: int


@frozen
class Stood:
    """Where a session stands: its link, push, and catalogs, and when it wants to be woken."""

    link: LinkPhase
    push: ListenPhase
    tools: Standing
    prompts: Standing
    resources: Standing
    resource_templates: Standing
    wake_at_ms: int | None


class Step(NamedTuple):
    """One line: what was heard, and what was recorded of what came of it (JSON)."""

    heard: SessionInput
    effects: Sequence[object]
    after: Mapping[str, object]


# --- to text --------------------------------------------------------------------------------------


def header_line(policy: Policy, wire: Wire, partition: str) -> str:
    """The first line, without its end."""
    header = Header(FORMAT, relist.__version__, wire, partition, policy)
    return text_of(encode(header, Header))


def step_line(
    heard: SessionInput, effects: Iterable[Effect], after: Session, policy: Policy
) -> str:
    """One more line, without its end."""
    step = {
        "heard": encode(heard, SessionInput),
        "effects": [told(effect) for effect in effects],
        "after": encode(stood(after, policy), Stood),
    }
    return text_of(step)


def told(effect: Effect) -> Any:
    """An effect as JSON; of a published list only how long it is, and its digest."""
    if not isinstance(effect, Publish):
        return encode(effect, Effect)
    items, listed = len(effect.snapshot.items), digest(effect.snapshot)
    data = encode(evolve(effect, snapshot=evolve(effect.snapshot, items=())), Effect)
    data["Publish"]["snapshot"]["items"] = {"count": items, "sha256": listed}
    return data


def stood(session: Session, policy: Policy) -> Stood:
    """Where a session stands."""
    catalogs = {c.kind.value: Standing(c.phase, c.doubt, c.generation) for c in session.catalogs}
    link, push = session.link.phase, session.listen.phase
    wake_at_ms = deadline_ms(session, policy)
    return Stood(link=link, push=push, **catalogs, wake_at_ms=wake_at_ms)


# --- from text ------------------------------------------------------------------------------------


def read_header(line: str | bytes) -> Header:
    """The header in this line. Raises Malformed."""
    data = _object(line)
    version = data.get("format")
    if type(version) is int and version != FORMAT:
        raise Malformed(f"is of trace format {version!r:.20}; this version reads {FORMAT}")
    try:
        header: Header = decode(data, Header, "header")
    except PolicyError as error:
        raise Malformed(f"header: {error}") from None
    return header


def read_step(line: str | bytes) -> Step:
    """The step in this line. What the session did is not looked into. Raises Malformed."""
    data = _object(line)
    if set(data) != {"heard", "effects", "after"}:
        raise Malformed("must have 'heard', 'effects' and 'after', and nothing else")
    effects, after = data["effects"], data["after"]
    if not is_list(effects):
        raise Malformed("effects must be a list")
    if not is_object(after):
        raise Malformed("after must be an object")
    heard: SessionInput = decode(data["heard"], SessionInput, "heard")
    _check_items(heard)
    return Step(heard, effects, after)


def _object(line: str | bytes) -> Mapping[str, object]:
    data = parsed(line)
    if not is_object(data):
        raise Malformed("must be an object")
    return data


def _check_items(heard: SessionInput) -> None:
    """Whoever shows a list reads its items as JSON."""
    for number, item in enumerate(heard.items if isinstance(heard, PageArrived) else ()):
        at = f"heard.PageArrived.items[{number}].canonical_json"
        try:
            if not is_object(json.loads(item.canonical_json)):
                raise Malformed(f"{at} is no object")
        except Malformed:
            raise
        except (ValueError, RecursionError):
            raise Malformed(f"{at} is not JSON") from None


def trace_schema() -> Any:
    """JSON Schema of one line of a trace: a header or a step."""
    definitions: dict[str, Any] = {}
    parts = {
        "heard": schema(SessionInput, definitions),
        "effects": {"type": "array", "items": {"type": "object", "maxProperties": 1}},
        "after": schema(Stood, definitions),
    }
    step = {
        "type": "object",
        "additionalProperties": False,
        "properties": parts,
        "required": list(parts),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of a Relist trace",
        "description": "The first line is a Header, each other a step. See relist.check.trace.",
        "oneOf": [schema(Header, definitions), {"$ref": "#/$defs/Step"}],
        "$defs": {**definitions, "Step": step},
    }


# --- replay ---------------------------------------------------------------------------------------


class Replayed(NamedTuple):
    """What this version of the law makes of a step.

    ``observed`` is None for an act that it refuses: nothing changes by that. ``broken`` are the
    promises that it broke, ``differs`` says what is otherwise than recorded, if anything is.
    """

    number: int
    heard: SessionInput
    observed: Observed | None
    broken: tuple[Broken, ...]
    differs: str | None


def replay(header: Header, steps: Iterable[Step]) -> Iterator[Replayed]:
    """Feed a session what was recorded, and judge each step. Pure."""
    session, policy = new_session(header.wire, header.partition), header.policy
    for number, step in enumerate(steps, 1):
        try:
            observed = observe(session, step.heard, policy)
        except ImpossibleAct as error:
            yield Replayed(number, step.heard, None, (), f"the act is refused: {error}")
            continue
        session = observed.whole.after
        found = [told(effect) for effect in observed.whole.effects]
        stands = encode(stood(session, policy), Stood)
        differs = _difference(step, found, stands)
        yield Replayed(number, step.heard, observed, tuple(broken(observed)), differs)


def _difference(step: Step, effects: Sequence[object], after: Mapping[str, object]) -> str | None:
    """The first thing that is otherwise than recorded."""
    for number in range(max(len(step.effects), len(effects))):
        was, now = (list(some[number : number + 1]) for some in (step.effects, effects))
        if was != now:
            return f"effect {number + 1} was {_shown(was)}, now {_shown(now)}"
    for name in sorted({*step.after, *after}):
        was, now = ([some[name]] if name in some else [] for some in (step.after, after))
        if was != now:
            return f"{name} was {_shown(was)}, now {_shown(now)}"
    return None


def _shown(one: list[object]) -> str:
    return text_of(one[0]) if one else "nothing"
