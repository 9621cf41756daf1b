"""What can be put on the wire at all: the SDK's transports end with anything else."""

import json

from relist.errors import ImpossibleAct


def check_sendable(value: object) -> None:
    """Raises ImpossibleAct for what is no JSON in UTF-8: a lone surrogate in a text, NaN, bytes."""
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError):  # UnicodeEncodeError is a ValueError
        # Not chained: the reason quotes the value.
        raise ImpossibleAct("what is to be sent is no JSON in UTF-8") from None
