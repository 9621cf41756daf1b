"""Calls through the gate: ``relist.admission`` judges, this drives it and sends what it admits.

Nothing is awaited between the verdict and the sending, and all that was heard is fed before it. A
call that was sent is never cancelled because a list changes. Rule: CALL-07, CALL-22.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property, lru_cache, partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from attrs import evolve
from mcp import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    REQUEST_TIMEOUT,
    CallToolResult,
    GetPromptResult,
)
from pydantic import BaseModel, ValidationError

from relist import effects as e
from relist import inputs as i
from relist.admission import (
    Admission,
    Call,
    Refusal,
    Verdict,
    after_rejection,
    arguments_checked,
    plan,
    proves_staleness,
)
from relist.errors import ImpossibleAct
from relist.policy import Risk
from relist.surface import Adoption
from relist.values import Catalog, Era, Failure, Item, Kind, LinkPhase, Phase, Scope, Snapshot, Wire
from relist_mcp import refusals as r
from relist_mcp.arguments import Definition, plain
from relist_mcp.changes import Changed, fields
from relist_mcp.exchange import now_ms
from relist_mcp.loop import Fed, Loop
from relist_mcp.rounds import Completed, complete, malformed
from relist_mcp.schemas import Fault, Unusable
from relist_mcp.view import ENDED, is_quiet

if TYPE_CHECKING:
    from relist_mcp.catalogs import Catalogs

HISTORY_MAX = 16  # lists of a kind on which calls may have been planned, and that are kept
DEFINITIONS_MAX = 256  # entries whose schemas are kept compiled

_UNANSWERED = (CONNECTION_CLOSED, REQUEST_TIMEOUT)  # codes that the SDK gives to a lost request
_UNLISTED = (Phase.DISCONNECTED, Phase.INITIALIZING)
_PLAIN: Final = {
    Refusal.UNSUPPORTED: r.Unsupported,
    Refusal.REMOVED: r.Removed,
    Refusal.AMBIGUOUS: r.Ambiguous,
    Refusal.UNAUTHORIZED: r.Unauthorized,
}

Check = Callable[[Item], Fault | None]
Again = Callable[[], Awaitable[object]]  # may it be sent once more? Raises CallRefused.
Send = Callable[[Item | None, Again], Awaitable[Completed]]
_ModelT = TypeVar("_ModelT", bound=BaseModel)


class Calls:
    """The calls of one ``Catalogs``."""

    def __init__(self, catalogs: "Catalogs", loop: Loop) -> None:
        self._catalogs, self._loop = catalogs, loop
        self._published: dict[Kind, tuple[Snapshot, ...]] = {}
        self._asked: dict[Kind, int] = {}  # the newest ticket of a wish for verification

    @cached_property
    def _definition(self) -> Callable[[Item], Definition]:
        return lru_cache(DEFINITIONS_MAX)(Definition)

    def observe(self, fed: Fed) -> None:
        """Remember what was published, so that a call planned on it can be compared.

        What was private to somebody else is forgotten. Rule: AUTH-03.
        """
        for effect in fed.effects:
            if isinstance(effect, e.Publish):
                lists = (*self._published.get(effect.kind, ()), effect.snapshot)
                self._published[effect.kind] = lists[-HISTORY_MAX:]
        if isinstance(fed.heard, i.CredentialsChanged):
            for kind, lists in self._published.items():
                kept = [one for one in lists if _is_for(one, fed.heard.partition)]
                self._published[kind] = tuple(kept)

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any], planned: int | None, risk: Risk
    ) -> CallToolResult:
        """See ``Catalogs.call_tool``."""
        method, given = "tools/call", self._plain(Kind.TOOLS, name, arguments)
        sent: Item | None = None

        async def send(item: Item | None, again: Again) -> Completed:
            nonlocal sent
            sent = item
            headers = self._headers(item, given)
            params = {"arguments": given}
            return await self.send(Kind.TOOLS, method, name, params, again, headers)

        def check(item: Item) -> Fault | None:
            return self._definition(item).fault_of_call(given)

        call = self._plan(Kind.TOOLS, name, planned, risk)
        raw = (await self._made(Kind.TOOLS, call, check, send)).result
        result = parsed(method, CallToolResult, raw)
        assert sent is not None
        self._check_result(sent, raw, result)
        return result

    async def get_prompt(
        self, name: str, arguments: Mapping[str, str], planned: int | None
    ) -> GetPromptResult:
        """See ``Catalogs.get_prompt``."""
        method, given = "prompts/get", self._plain(Kind.PROMPTS, name, arguments)

        async def send(_: Item | None, again: Again) -> Completed:
            return await self.send(Kind.PROMPTS, method, name, {"arguments": given}, again)

        def check(item: Item) -> Fault | None:
            return self._definition(item).fault_of_prompt(given)

        call = self._plan(Kind.PROMPTS, name, planned, Risk.READ_ONLY)
        made = await self._made(Kind.PROMPTS, call, check, send)
        return parsed(method, GetPromptResult, made.result)

    async def read_resource(self, uri: str) -> Completed:
        """The raw result of a read. Whether it is listed is no matter. Rule: CALL-24, RES-13."""

        async def send(_: Item | None, again: Again) -> Completed:
            return await self.send(Kind.RESOURCES, "resources/read", uri, {}, again)

        return await self._made(Kind.RESOURCES, Call(uri, 0), lambda _: None, send)

    # --- planning ---------------------------------------------------------------------------------

    def _plain(self, kind: Kind, key: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        given, fault = plain(arguments)
        if fault is not None:
            raise r.InvalidArguments(kind, key, fault)
        return given

    def _plan(self, kind: Kind, key: str, planned: int | None, risk: Risk) -> Call:
        """The call on the generation that was named, adopted as surface, or is published now.

        Generation 0: nothing is published yet. Raises ImpossibleAct for one that never was.
        Rule: CALL-21.
        """
        session = self._catalogs.session
        catalog, adoption = session.catalog(kind), session.adoption(kind)
        if planned is None and adoption is None:
            planned = 0 if catalog.snapshot is None else catalog.snapshot.generation
        elif planned is None:
            assert adoption is not None
            planned = adoption.generation
        elif not 1 <= planned <= catalog.generation:
            raise ImpossibleAct(
                f"planned generation {planned} was never published"
                f" ({kind.value}: newest is {catalog.generation})"
            )
        for listed in self._published.get(kind, ()):
            if listed.generation == planned:
                return plan(Adoption(planned, len(listed.items), listed.items, 0), key, risk)
        return Call(key, planned, None, risk)

    # --- the gate ---------------------------------------------------------------------------------

    async def _made(self, kind: Kind, call: Call, check: Check, send: Send) -> Completed:
        """Send the call once it is admitted; once more where the law says so.

        It is made for whoever asked, or not at all. Raises CallRefused.
        Rule: AUTH-03, CALL-08, CALL-10, RES-11, RES-12.
        """
        partition = self._catalog(kind).standing.partition
        while True:
            admitted = await self._admitted(kind, call, check, partition)
            generation = self._catalog(kind).generation
            same = evolve(admitted.call, planned=admitted.item, asked=None)
            same_again = partial(self._admitted, kind, same, check, partition)
            try:
                return await send(admitted.item, same_again)
            except r.Rejected as rejected:
                failure = Failure("error answer", rejected.code)
                unlisted = kind is Kind.RESOURCES and admitted.item is None
                if generation and not unlisted and proves_staleness(failure, kind):
                    self._loop.tell(i.StalenessProved(kind, generation, now_ms()))
                again = after_rejection(self._catalog(kind), admitted.call, failure)
                if again.verdict is Verdict.REFUSE:
                    raise
                call = again.call

    async def _admitted(self, kind: Kind, call: Call, check: Check, partition: str) -> Admission:
        """The verdict that lets the call be sent, on the list as it is at this moment.

        Raises CallRefused for any other that is final.
        """
        ticket, fault = None, Fault("", "")
        while True:
            await self._listable(kind, call.key)
            self._check_partition(kind, call.key, partition)
            call = self._replanned(kind, call)
            verdict = self._loop.core.admit(call, kind, now_ms())
            call, item = verdict.call, verdict.item
            match verdict.verdict:
                case Verdict.ADMIT if self._loop.waiting:
                    self._loop.drain()  # judged again on all that was heard
                case Verdict.ADMIT:
                    self.check_exposed(kind, call.key, item)
                    return verdict
                case Verdict.REFUSE:
                    self._refuse(kind, verdict, fault)
                case Verdict.CHECK:
                    assert item is not None
                    found = self._fault(kind, item, check)
                    call = arguments_checked(call, item, found is None)
                    fault = found or fault
                case Verdict.VERIFY:
                    if ticket is None or (self._loop.has_fed(ticket) and self._is_quiet(kind)):
                        ticket = self._verify(kind)
                    await self._loop.moved()

    def check_exposed(self, kind: Kind, key: str, item: Item | None) -> None:
        """Raises Withheld for what the consumer of a profile may not see. See ``drift.guard``."""
        if (guard := self._catalogs.guard) is not None:
            guard.check(self._catalogs.session, kind, key, item)

    def _verify(self, kind: Kind) -> int:
        """Ask for a walk. Calls that ask before it begins share it; the first list needs no other.

        Returns the ticket of the wish.
        """
        asked = self._asked.get(kind)
        if asked is None or self._loop.has_fed(asked):
            first = self._catalog(kind).snapshot is None
            wish = i.ReadWanted if first else i.VerificationWanted
            asked = self._asked[kind] = self._loop.tell(wish(kind, now_ms()))
        return asked

    async def _listable(self, kind: Kind, key: str) -> None:
        """Wait until lists of this kind may be asked for.

        Raises CallRefused if that cannot be: the law knows nothing of links. Rule: CALL-24.
        """
        while True:
            link = self._catalogs.session.link.phase
            if link is LinkPhase.PARKED:
                raise r.Unauthorized(kind, key)
            if link in ENDED:
                raise r.Unreachable(kind, key, f"the link is {link.value}")
            if link is LinkPhase.LIVE and self._catalog(kind).phase not in _UNLISTED:
                return
            await self._loop.moved()

    def _check_partition(self, kind: Kind, key: str, partition: str) -> None:
        if self._catalog(kind).standing.partition != partition:
            raise r.Unauthorized(kind, key, "credentials changed meanwhile")

    def _replanned(self, kind: Kind, call: Call) -> Call:
        """What was asked for before anything was published is planned on the first list."""
        newest = self._newest(kind)
        if call.generation or newest is None or kind is Kind.RESOURCES:
            return call
        return evolve(call, generation=newest.generation, planned=entry(newest, call.key))

    def _fault(self, kind: Kind, item: Item, check: Check) -> Fault | None:
        try:
            return check(item)
        except Unusable as unusable:
            raise r.UnusableSchema(kind, item.key, str(unusable)) from None

    def _refuse(self, kind: Kind, verdict: Admission, fault: Fault) -> NoReturn:
        refusal, call = verdict.refusal, verdict.call
        if refusal is Refusal.CHANGED:
            raise r.ChangedSincePlanned(kind, call.key, self._changed(kind, call))
        if refusal is Refusal.INVALID:
            raise r.InvalidArguments(kind, call.key, fault)
        if refusal is Refusal.UNVERIFIABLE:
            raise r.Unverifiable(kind, call.key, self._catalog(kind).doubt)
        assert refusal is not None
        raise _PLAIN[refusal](kind, call.key)

    def _changed(self, kind: Kind, call: Call) -> Changed | None:
        newest = self._newest(kind)
        now = entry(newest, call.key)
        if call.planned is None or now is None:
            return None
        try:
            return Changed(call.planned, now, fields(call.planned, now))
        except (RecursionError, ValueError):  # no entry that could be read
            return None

    def _newest(self, kind: Kind) -> Snapshot | None:
        """The newest complete list, published or held back."""
        catalog = self._catalog(kind)
        lists = (one for one in (catalog.snapshot, catalog.candidate) if one is not None)
        return max(lists, key=lambda one: one.walk, default=None)

    def _is_quiet(self, kind: Kind) -> bool:
        return is_quiet(self._catalog(kind), self._catalogs.policy)

    def _catalog(self, kind: Kind) -> Catalog:
        return self._catalogs.session.catalog(kind)

    # --- sending ----------------------------------------------------------------------------------

    async def send(
        self,
        kind: Kind,
        method: str,
        key: str,
        params: Mapping[str, Any],
        again: Again,
        headers: Mapping[str, str] | None = None,
    ) -> Completed:
        """Send what was admitted, and answer what is asked meanwhile.

        Raises Rejected for an error answer, MCPError for a lost request. Questions that were put to
        one user are not answered as another; and while somebody thought about the answer, the entry
        may have changed, so each later round passes the gate anew. Rule: AUTH-03, CALL-02.
        """
        about = {"uri" if kind is Kind.RESOURCES else "name": key}
        rounds = count()

        async def request(params: dict[str, Any]) -> dict[str, Any]:
            if next(rounds):
                await again()
            try:
                return await self._catalogs.request(method, params, name=key, headers=headers)
            except MCPError as error:
                if error.code in _UNANSWERED:
                    raise
                raise r.Rejected(kind, key, error.error) from error

        if self._catalogs.session.link.era is not Era.MODERN:
            return Completed(await request({**about, **params}), False)
        session = self._catalogs.sdk_session
        return await complete(method, {**about, **params}, request, session)

    def _headers(self, item: Item | None, given: Mapping[str, Any]) -> dict[str, str]:
        link = self._catalogs.session.link
        if item is None or link.era is not Era.MODERN or link.wire is not Wire.HTTP:
            return {}
        return self._definition(item).headers(given)

    def _check_result(self, item: Item, raw: Mapping[str, Any], result: CallToolResult) -> None:
        """Against the schema in force when the call was sent, whatever is listed by now."""
        try:
            fault = self._definition(item).fault_of_result(raw)
        except Unusable as unusable:
            raise r.InvalidResult(f"output {unusable}", result) from None
        if fault is not None:
            where = f"structured result does not fit at {fault.path!r} ({fault.keyword})"
            raise r.InvalidResult(where, result, fault)


def parsed(method: str, model: type[_ModelT], raw: Mapping[str, Any]) -> _ModelT:
    """The result as its model. Raises MCPError for one of the wrong shape."""
    try:
        return model.model_validate(raw)
    except ValidationError:
        pass  # not chained: the reason quotes what the server sent
    malformed(method)


def _is_for(listed: Snapshot, partition: str) -> bool:
    return listed.scope is Scope.PUBLIC or listed.partition == partition


def entry(listed: Snapshot | None, key: str) -> Item | None:
    """The entry of this key, if there is a list and it holds one."""
    if listed is None:
        return None
    return next((item for item in listed.items if item.key == key), None)
