"""What a history holds only a part of: recorders cut what is too long, and say so in its place."""

import json
import re
from collections.abc import Mapping

from relist.messages import is_list, is_object

CUT = "relist-cut"
"""The key, or the one key of the last entry of a list, that says how many entries are missing."""

_CUT_TEXT = re.compile(r"… \(\d+ characters more, sha256 [0-9a-f]{16}\)\Z")


def is_cut_text(value: object) -> bool:
    """Whether this is the beginning of a text that was longer."""
    return isinstance(value, str) and _CUT_TEXT.search(value) is not None


def is_cut(value: object) -> bool:
    """Whether something is missing anywhere in this, or it is nested too deeply to tell."""
    try:
        text = json.dumps(value)
    except (ValueError, RecursionError):
        return True
    return f'"{CUT}"' in text or "characters more, sha256 " in text


def is_cut_page(message: Mapping[str, object], field: str) -> bool:
    """Whether something is missing of what a page says of its items, and of the next page.

    Whatever else is missing, such as a part of a schema, is of no matter here.
    """
    result = message.get("result")
    if CUT in message or not is_object(result):
        return CUT in message
    entries = result.get(field)
    told = [result.get("nextCursor")]
    for entry in entries if is_list(entries) else ():
        if is_object(entry):
            told += [entry.get(name) for name in ("name", "uri", "uriTemplate", "description")]
            told += [CUT] if CUT in entry and "name" not in entry else []
    return CUT in result or CUT in told or any(is_cut_text(one) for one in told)
