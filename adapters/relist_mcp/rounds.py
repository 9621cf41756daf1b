"""Requests that the server answers with questions first (SEP-2322, modern era)."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, NoReturn

from mcp import MCPError
from mcp.client import InputRequiredRoundsExceededError
from mcp.client._input_required import run_input_required_driver
from mcp.client.session import ClientRequestContext, ClientSession
from mcp_types import (
    INTERNAL_ERROR,
    ErrorData,
    InputRequest,
    InputRequiredResult,
    InputResponse,
    InputResponses,
)
from pydantic import ValidationError

from relist.messages import is_object

Result = dict[str, Any]
Send = Callable[[dict[str, Any]], Awaitable[Result]]


class Completed(NamedTuple):
    """A final result; ``by_retry``: it took input responses or request state. Rule: RES-09."""

    result: Result
    by_retry: bool


async def complete(
    method: str, params: Mapping[str, Any], send: Send, session: ClientSession | None
) -> Completed:
    """Send the request, answer what is asked by the handlers of the session, and send it again.

    Raises what ``send`` does, and MCPError where nobody handles what is asked for, where the
    questions do not end, or for a result of the wrong shape.
    """
    first = _read(method, await send(dict(params)))
    if not isinstance(first, InputRequiredResult):
        return Completed(first, False)
    if session is None:
        malformed(method)

    async def dispatch(key: str, asked: InputRequest) -> InputResponse | ErrorData:
        meta = asked.params.meta if asked.params else None
        context = ClientRequestContext(session=session, request_id=key, meta=meta)
        return await session.dispatch_input_request(context, asked)

    async def retry(
        responses: InputResponses | None, state: str | None
    ) -> Result | InputRequiredResult:
        more: dict[str, Any] = {} if state is None else {"requestState": state}
        if responses is not None:
            more["inputResponses"] = {
                key: response.model_dump(by_alias=True, mode="json", exclude_none=True)
                for key, response in responses.items()
            }
        return _read(method, await send({**params, **more}))

    try:
        return Completed(
            await run_input_required_driver(first, dispatch=dispatch, retry=retry), True
        )
    except InputRequiredRoundsExceededError as error:
        text = f"{method} asked for input more than {error.max_rounds} times"
        raise MCPError(INTERNAL_ERROR, text) from None


def _read(method: str, result: Result) -> Result | InputRequiredResult:
    kind = result.get("resultType", "complete")
    if kind == "complete":
        return result
    try:
        if is_object(result) and kind == "input_required":
            return InputRequiredResult.model_validate(result)
    except ValidationError:
        pass  # not chained: the reason quotes what the server sent
    malformed(method)


def malformed(method: str) -> NoReturn:
    """Raise MCPError for a result that is of no use."""
    raise MCPError(INTERNAL_ERROR, f"malformed result of {method}")
