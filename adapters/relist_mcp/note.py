"""A short, truthful text about a change, which a host may show to its model. Pure.

Names and URIs in it are text of the server, and a model reads it: each is quoted as a JSON string
in plain ASCII, so that it can neither end its quotes nor hide what it says, and cut short. No other
text of the server is in it: neither descriptions nor names of fields that MCP does not have.
"""

import json

from relist.values import Item, Kind
from relist_mcp.changes import Change, Changed

NAME_MAX = 64  # characters of a name as it is quoted
CHARS_MAX = 400
_TITLES = {
    Kind.TOOLS: "Tools",
    Kind.PROMPTS: "Prompts",
    Kind.RESOURCES: "Resources",
    Kind.TEMPLATES: "Resource templates",
}
_FIELDS = frozenset(
    (  # all that the entries of a list have in MCP
        *("_meta", "annotations", "arguments", "description", "execution", "icons"),
        *("inputSchema", "mimeType", "name", "outputSchema", "size", "title", "uri"),
        "uriTemplate",
    )
)
_SHORTEST = len('"", ')  # of a named entry

_Parts = tuple[tuple[str, tuple[str, ...], int], ...]
"""What became of entries, those that may be named, and how many there are."""


def note_of(change: Change | None, chars_max: int = CHARS_MAX) -> str | None:
    """What has changed, in at most ``chars_max`` characters; None if there is nothing to say.

    Names as many entries as there is room for, in the order of the list, and counts the others.
    None, too, where there is no room even for the counts.
    """
    if change is None:
        return None
    most = max(0, chars_max // _SHORTEST)  # beyond it there is no room anyway
    parts = _parts(change, most)
    if not parts:
        return None
    became = "withdrawn" if change.generation is None else "changed"
    named = max(len(names) for _, names, _ in parts)
    while named >= 0:
        told = "; ".join(_part(*part, named) for part in parts)
        text = f"{_TITLES[change.kind]} {became}: {told}."
        if len(text) <= chars_max:
            return text
        named -= 1
    return None


def _parts(change: Change, most: int) -> _Parts:
    """Only parts in which there is something."""
    parts = (
        ("added", tuple(map(_entry, change.added[:most])), len(change.added)),
        ("removed", tuple(map(_entry, change.removed[:most])), len(change.removed)),
        ("changed", tuple(map(_changed, change.changed[:most])), len(change.changed)),
    )
    return tuple(part for part in parts if part[2])


def _part(verb: str, names: tuple[str, ...], count: int, named: int) -> str:
    if named == 0:
        return f"{count} {verb}"
    told, rest = ", ".join(names[:named]), count - min(named, len(names))
    return f"{verb} {told} and {rest} more" if rest else f"{verb} {told}"


def _entry(item: Item) -> str:
    return quoted(item.key)


def _changed(one: Changed) -> str:
    known = [name for name in one.fields if name in _FIELDS]
    more = ["other fields"] if len(known) < len(one.fields) else []
    return f"{quoted(one.after.key)} ({', '.join([*known, *more])})"


def quoted(text: str) -> str:
    """A text of a server as a JSON string in ASCII; dots behind it say that it was cut."""
    shown = ""
    for character in text[:NAME_MAX]:
        escaped = json.dumps(character)[1:-1] if character != "\x7f" else "\\u007f"
        if len(shown) + len(escaped) > NAME_MAX:
            return f'"{shown}"...'
        shown += escaped
    return f'"{shown}"' if len(text) <= NAME_MAX else f'"{shown}"...'
