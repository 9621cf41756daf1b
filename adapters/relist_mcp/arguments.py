"""What one listed entry says of arguments and results. All of it is the peer's. Rule: CALL-26."""

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from mcp.shared.inbound import mcp_param_headers, x_mcp_header_map

from relist.messages import is_list, is_object
from relist.values import Item
from relist_mcp.schemas import VALUE_MAX, Fault, Schema, Unusable, fault_of, pointer

ENTRY_MAX = 4 * 1024 * 1024  # bytes of an entry that is read at all


class Definition:
    """One entry, read when it is needed. Each method raises Unusable for what cannot be read."""

    def __init__(self, item: Item) -> None:
        self._item = item

    @cached_property
    def _entry(self) -> Mapping[str, object]:
        if len(self._item.canonical_json) > ENTRY_MAX:
            raise Unusable("entry is too large")
        try:
            entry: Mapping[str, object] = json.loads(self._item.canonical_json)
        except (RecursionError, ValueError):  # digits without end are no number to Python
            raise Unusable("entry cannot be read") from None
        return entry

    @cached_property
    def _input(self) -> Schema:
        return Schema(self._entry.get("inputSchema"))

    @cached_property
    def _output(self) -> Schema:
        return Schema(self._entry.get("outputSchema"))

    def fault_of_call(self, arguments: object) -> Fault | None:
        """Where the arguments of a tool do not fit. Rule: CALL-03."""
        return self._input.fault_of(arguments)

    def fault_of_prompt(self, arguments: Mapping[str, object]) -> Fault | None:
        """The first argument of a prompt that is required and missing, or that is no text."""
        listed = self._entry.get("arguments")
        for told in listed if is_list(listed) else ():
            name = told.get("name") if is_object(told) else None
            if is_object(told) and told.get("required") is True and name not in arguments:
                return Fault(pointer([name]), "required")
        wrong = (name for name, value in arguments.items() if not isinstance(value, str))
        return next((Fault(pointer([name]), "type") for name in wrong), None)

    def fault_of_result(self, result: Mapping[str, object]) -> Fault | None:
        """Where a structured result does not fit; an error has none, nor has a tool without schema.

        Rule: CALL-18.
        """
        if "outputSchema" not in self._entry or result.get("isError") is True:
            return None
        if "structuredContent" not in result:
            return Fault("", "missing")
        return self._output.fault_of(result["structuredContent"])

    def headers(self, arguments: Mapping[str, Any]) -> dict[str, str]:
        """The headers that repeat arguments, by the schema in force. Rule: CALL-11, CALL-12."""
        return mcp_param_headers(x_mcp_header_map(self._entry.get("inputSchema")), arguments)


def plain(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], Fault | None]:
    """A copy of the arguments as JSON, which nobody else can change; or why they are none."""
    given = dict(arguments)
    fault = fault_of(given, VALUE_MAX)
    return ({}, fault) if fault is not None else (json.loads(json.dumps(given)), None)
