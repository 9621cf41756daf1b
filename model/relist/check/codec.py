"""Values as JSON and back, as the types of their fields say.

The expected type decides, never the data: no class is made but those that the type names, and depth
is bounded by it. Bytes are their UTF-8 text, or ``{"hex": ...}`` where they are none; a frozenset
is a sorted list; of a union what is no scalar stands under the name of its class.
"""

import json
import re
from collections.abc import Callable, Mapping
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin

import attrs

from relist.messages import INTEGER_MAX, is_integer, is_list, is_object

_HEX = re.compile(r"(?:[0-9a-f]{2})*")
_SHOWN_MAX = 40
_SCALARS = (bool, int, str)


class Malformed(ValueError):
    """JSON that does not say what was expected: one line that names the place."""


# --- JSON text ------------------------------------------------------------------------------------


def text_of(data: object) -> str:
    """JSON in one line of ASCII; what ``encode`` makes of equal values gives equal texts."""
    return json.dumps(data, separators=(",", ":"))


def parsed(text: str | bytes) -> Any:
    """The JSON in a text: names once, and no fractions, which nothing of ours has.

    Raises Malformed.
    """
    try:
        return json.loads(
            text, object_pairs_hook=_once, parse_float=_fraction, parse_constant=_fraction
        )
    except Malformed:
        raise
    except RecursionError:
        raise Malformed("is nested too deeply") from None
    except ValueError:
        raise Malformed("is not JSON") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Malformed(f"names {_shown(twice)} twice")
    return found


def _fraction(text: str) -> Any:
    raise Malformed(f"holds {_shown(text)}, which is no integer")


# --- to JSON --------------------------------------------------------------------------------------


def encode(value: Any, kind: Any) -> Any:
    """``value``, which is of the type ``kind``, as JSON values."""
    if isinstance(value, bytes):
        return _bytes(value)
    if isinstance(value, Enum):
        data: Any = value.value
    elif isinstance(value, tuple | frozenset):
        inner, *_ = (get_args(one)[0] for one in _members(kind))
        some = [encode(one, inner) for one in cast("tuple[Any, ...]", value)]
        return sorted(some, key=text_of) if isinstance(value, frozenset) else some
    elif attrs.has(value.__class__):
        data = {a.name: encode(getattr(value, a.name), a.type) for a in _fields(value.__class__)}
    else:
        return value
    return {value.__class__.__name__: data} if len(_members(kind)) > 1 else data


def _bytes(value: bytes) -> Any:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"hex": value.hex()}


# --- from JSON ------------------------------------------------------------------------------------


def decode(data: object, kind: Any, at: str) -> Any:
    """The value of type ``kind`` that these JSON values say; ``at`` is where they stand.

    A field that is missing has its default. Raises Malformed, and whatever a class refuses.
    """
    members = _members(kind)
    if data is None and NoneType in get_args(kind):
        return None
    if len(members) != 1:
        return _one_of(data, members, at)
    (kind,) = members
    origin = get_origin(kind)
    if origin in (tuple, frozenset):
        return _many(data, origin, get_args(kind)[0], at)
    if origin is Literal:
        return _among(data, {one: one for one in get_args(kind)}, at)
    if attrs.has(kind):
        return _instance(data, kind, at)
    if issubclass(kind, Enum):
        return _among(data, {member.value: member for member in kind}, at)
    if kind is bytes:
        return _bytes_of(data, at)
    if type(data) is not kind:
        raise Malformed(f"{at} must be {_NAMES[kind]}, not {_name(data)}")
    if kind is int and not is_integer(data):
        raise Malformed(f"{at} is an integer beyond {INTEGER_MAX}")
    return data


def _one_of(data: object, members: tuple[Any, ...], at: str) -> Any:
    if type(data) in _SCALARS and type(data) in members:
        return decode(data, type(data), at)
    named = {member.__name__: member for member in members if member not in _SCALARS}
    if not is_object(data) or len(data) != 1:
        raise Malformed(f"{at} must be an object with one name in it")
    ((name, inner),) = data.items()
    if name not in named:
        raise Malformed(f"{at} names {_shown(name)}, which is not known")
    return decode(inner, named[name], f"{at}.{name}")


def _many(data: object, container: Callable[..., Any], inner: Any, at: str) -> Any:
    if not is_list(data):
        raise Malformed(f"{at} must be a list, not {_name(data)}")
    some = [decode(one, inner, f"{at}[{number}]") for number, one in enumerate(data)]
    found = container(some)
    if len(found) < len(some):
        raise Malformed(f"{at} names something twice")
    return found


def _instance(data: object, kind: type[Any], at: str) -> Any:
    if not is_object(data):
        raise Malformed(f"{at} must be an object, not {_name(data)}")
    fields = {a.name: a for a in _fields(kind)}
    for name in data:
        if name not in fields:
            raise Malformed(f"{at} has {_shown(name)}, which is no field of {kind.__name__}")
    for name, a in fields.items():
        if name not in data and a.default is attrs.NOTHING:
            raise Malformed(f"{at} lacks {name!r}")
    return kind(**{name: decode(data[name], fields[name].type, f"{at}.{name}") for name in data})


def _among(data: object, known: Mapping[Any, Any], at: str) -> Any:
    for value, meant in known.items():
        if type(data) is type(value) and data == value:
            return meant
    shown = _shown(data) if isinstance(data, _SCALARS) else _name(data)
    raise Malformed(f"{at} is {shown}, not one of {', '.join(map(repr, known))}")


def _bytes_of(data: object, at: str) -> bytes:
    if isinstance(data, str):
        try:
            return data.encode()
        except UnicodeEncodeError:
            raise Malformed(f"{at} holds half of a surrogate pair") from None
    if is_object(data) and set(data) == {"hex"}:
        text = data["hex"]
        if isinstance(text, str) and _HEX.fullmatch(text):
            return bytes.fromhex(text)
    raise Malformed(f"{at} must be a text, or an object with 'hex' and hexadecimal digits")


# --- the types ------------------------------------------------------------------------------------


def schema(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """JSON Schema of what ``encode`` makes of the type; classes are added to ``definitions``."""
    members = _members(kind)
    if NoneType in get_args(kind):
        inner = schema(Union[members], definitions)  # noqa: UP007
        return {"anyOf": [{"type": "null"}, *inner.get("anyOf", (inner,))]}
    if len(members) != 1:
        return {"anyOf": [_member(one, definitions) for one in members]}
    (kind,) = members
    origin = get_origin(kind)
    if origin in (tuple, frozenset):
        listed = {"type": "array", "items": schema(get_args(kind)[0], definitions)}
        return listed | ({"uniqueItems": True} if origin is frozenset else {})
    if origin is Literal:
        return {"enum": list(get_args(kind))}
    if attrs.has(kind):
        _define(kind, definitions)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    if issubclass(kind, Enum):
        return {"enum": [member.value for member in kind]}
    return {**_SCHEMA_OF[kind]}


def _member(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    found = schema(kind, definitions)
    if kind in _SCALARS:
        return found
    name: str = kind.__name__
    return _object({name: found}, [name])


def _define(kind: type[Any], definitions: dict[str, Any]) -> None:
    if kind.__name__ in definitions:
        return
    definitions[kind.__name__] = {}  # it may stand in itself
    fields = _fields(kind)
    properties = {a.name: schema(a.type, definitions) for a in fields}
    required = [a.name for a in fields if a.default is attrs.NOTHING]
    about = (kind.__doc__ or "").partition("\n")[0]
    definitions[kind.__name__] = {"description": about, **_object(properties, required)}


def _object(properties: Mapping[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": dict(properties),
        "required": required,
    }


_SCHEMA_OF: Mapping[type, dict[str, Any]] = {
    bool: {"type": "boolean"},
    int: {"type": "integer", "minimum": -INTEGER_MAX, "maximum": INTEGER_MAX},
    str: {"type": "string"},
    bytes: {
        "anyOf": [
            {"type": "string"},
            _object({"hex": {"type": "string", "pattern": f"^{_HEX.pattern}$"}}, ["hex"]),
        ]
    },
}


def _members(kind: Any) -> tuple[Any, ...]:
    """The types in a union but None, or the type itself."""
    if get_origin(kind) not in (Union, UnionType):
        return (kind,)
    return tuple(member for member in get_args(kind) if member is not NoneType)


def _fields(kind: type[Any]) -> tuple["attrs.Attribute[Any]", ...]:
    """What an instance is made of."""
    return tuple(a for a in attrs.fields(kind) if a.init)


def _name(data: object) -> str:
    """What kind of JSON value this is."""
    return _NAMES[type(data)]


_NAMES: Mapping[type, str] = {
    **{NoneType: "null", bool: "a boolean", int: "an integer", str: "a text"},
    **{float: "a fraction", dict: "an object", list: "a list"},
}


def _shown(data: object) -> str:
    """For an error: short, and without control characters."""
    text = repr(data)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."
