"""The HTML page, in a real browser: its filter works, it asks for nothing, nobody writes on it."""

import re
from html.parser import HTMLParser
from pathlib import Path

import attrs
import pytest

from conformance.made import (
    MARKUP,
    hostile_report,
    left_the_machine,
    made_case,
    made_hello,
    made_report,
    made_result,
)
from relist.check.history import Event
from relist_conformance.report.html import FINDINGS_MAX, as_html
from relist_conformance.report.model import Report
from relist_conformance.report.sequence import ROWS_MAX, rows
from support.browser import CHROMIUM, Seen, see

browser = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not there")


class Page(HTMLParser):
    """The elements of a page: visible findings and cases, and all tags and addresses."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.findings: dict[str, bool] = {}
        self.columns: list[str] = []
        self.cases: list[str] = []
        self.groups: list[str] = []
        self._hidden_group = self._hidden_row = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.tags.append(tag)
        self.attributes += found.items()
        if tag == "article":
            self.findings[found["id"]] = "hidden" not in found
        if tag == "th" and "data-transport" in found and "hidden" not in found:
            self.columns.append(f"{found['data-transport']} {found['data-revision']}")
        if tag == "tbody" and "data-rule" in found:
            self._hidden_group = "hidden" in found
            self.groups += [] if self._hidden_group else [found["data-rule"]]
        if tag == "tr":
            self._hidden_row = "hidden" in found
            if found.get("class") == "case" and not (self._hidden_row or self._hidden_group):
                self.cases.append(found.get("id", "case"))

    @property
    def visible(self) -> int:
        return sum(self.findings.values())


def two_clients() -> tuple[Report, ...]:
    rule = dict.fromkeys(("2025-11-25", "2026-07-28"), "DISC-10")
    other = made_case(
        id="tools:other",
        title="a needle",
        rules=["DISC-10"],
        rule=rule,
        expect=[{"answer": {"of": "list", "items": ["a@1"]}}],
    )
    first = made_report(
        made_result("fail"),
        made_result("warn", "http", "2026-07-28"),
        made_result("pass", case=other),
    )
    second = made_report(
        made_result("pass"),
        made_result("untestable", "http", "2026-07-28", case=other, reason="too small"),
        hello=made_hello(name="another"),
    )
    return first, second


def seen(tmp_path: Path, text: str, fragment: str = "") -> Seen:
    page = tmp_path / "page.html"
    page.write_text(text, "utf-8")
    return see(page, fragment)


# --- in the browser -------------------------------------------------------------------------------


@browser
@pytest.mark.parametrize(
    ("fragment", "findings", "groups", "columns"),
    [
        ("", 2, ["DISC-10", "MADE-01"], 4),
        ("#?verdict=warn", 1, ["MADE-01"], 4),
        ("#?verdict=untestable", 0, ["DISC-10"], 4),
        ("#?rule=DISC-10", 0, ["DISC-10"], 4),
        ("#?transport=http", 1, ["DISC-10", "MADE-01"], 2),
        ("#?revision=2025-11-25", 1, ["DISC-10", "MADE-01"], 2),
        ("#?text=NEEDLE", 0, ["DISC-10"], 4),
        ("#?verdict=warn&transport=stdio", 0, [], 2),
    ],
)
def test_the_page_is_filtered(
    fragment: str, findings: int, groups: list[str], columns: int, tmp_path: Path
) -> None:
    done = seen(tmp_path, as_html(two_clients()), fragment)
    page = Page(done.dom)
    assert (page.visible, page.groups, len(page.columns)) == (findings, groups, columns)
    assert f"{findings} of 2 findings" in done.dom
    assert done.console == ()


@browser
def test_a_link_to_a_finding_opens_it(tmp_path: Path) -> None:
    done = seen(tmp_path, as_html([made_report(*[made_result("fail")] * 12)]), "#f0-7-0")
    opened = re.findall(r'<article id="(\S+)".*?<details open', done.dom.replace("\n", " "))
    assert len(opened) == 1
    assert re.search(r'id="f0-7-0"[^§]*?<details open', done.dom)


@browser
def test_a_hostile_client_does_nothing_and_the_page_asks_for_nothing(tmp_path: Path) -> None:
    reports = [hostile_report(), *two_clients()]
    done = seen(tmp_path, as_html(reports))
    assert done.console == ()
    assert done.requests == ()
    page = Page(done.dom)
    assert page.visible == 3
    assert page.tags.count("script") == 1
    assert "img" not in page.tags
    assert "onerror" not in dict(page.attributes)


@browser
def test_the_browser_would_see_it(tmp_path: Path) -> None:
    """What the test above looks for is found where it is: on a page without our policy."""
    evil = "<!doctype html><img src='http://127.0.0.1:9/x.png'><script>no_such_thing()</script>"
    done = seen(tmp_path, evil)
    assert done.requests == ("http://127.0.0.1:9/x.png",)
    assert "no_such_thing is not defined" in done.console[0]


@browser
def test_the_policy_holds_even_if_something_slipped_through(tmp_path: Path) -> None:
    inserted = "<body><img src='http://127.0.0.1:9/x.png'><script>document.title = 'owned'</script>"
    done = seen(tmp_path, as_html(two_clients()).replace("<body>", inserted))
    assert done.requests == ()
    assert "<title>owned" not in done.dom
    assert Page(done.dom).visible == 2  # ours runs all the same


# --- the text of it -------------------------------------------------------------------------------


def test_a_hostile_client_is_escaped_and_bounded() -> None:
    text = as_html([hostile_report()])
    assert len(text.encode()) < 200_000
    assert all(char.isprintable() or char == "\n" for char in text)
    assert text.count("</script>") == 1
    assert "&lt;/script&gt;" in text
    assert "{{7*7}}" in text  # a template would have said 49
    assert MARKUP not in text
    addresses = {value for name, value in Page(text).attributes if name in ("href", "src")}
    assert all(one.startswith(("#f", "https://")) for one in addresses)


def test_an_address_that_runs_is_no_link() -> None:
    case = made_case(source=[{"name": "x", "url": "https://example.com/"}])
    report = made_report(made_result("fail", case=case))
    rule = attrs.evolve(two_clients()[0].rules["DISC-10"], id="MADE-01")
    bad = tuple(attrs.evolve(one, url="javascript:alert(1)") for one in rule.sources)
    for sources, linked in ((rule.sources, True), (bad, False)):
        rules = {"MADE-01": attrs.evolve(rule, sources=sources)}
        text = as_html([attrs.evolve(report, rules=rules)])
        assert ('<a href="https://modelcontextprotocol.io' in text) == linked
        assert 'href="javascript' not in text


def test_the_matrix_says_what_each_cell_says() -> None:
    known = {("tools:made-up", "stdio", "2025-11-25", "MADE-01"): "waits for issue 7"}
    text = as_html([made_report(made_result("fail"), made_result("pass", "http"), known=known)])
    matrix = text.partition('id="matrix"')[2].partition("</table>")[0]
    assert matrix.count('<span class="fail known">FAIL (known)</span>') == 2  # the rule, the case
    assert matrix.count('<span class="pass">pass</span>') == 2
    assert '<a href="#f0-0-0">' in matrix
    assert "Known: waits for issue 7" in text


def test_a_case_that_broke_another_rule_says_nothing_of_this_one() -> None:
    expect = [
        {"answer": {"rule": "MADE-01", "of": "list", "items": ["a@1"]}},
        {"answer": {"rule": "MADE-02", "of": "list", "items": ["a@1"]}},
    ]
    case = made_case(
        rules=["MADE-01", "MADE-02"],
        expect=expect,
        rule=dict.fromkeys(("2025-11-25", "2026-07-28"), "MADE-01"),
    )
    matrix = as_html([made_report(made_result("fail", case=case))]).partition(
        'data-rule="MADE-02"'
    )[2]
    assert "another rule was broken here" in matrix.partition("</tbody>")[0]


def test_more_findings_than_a_page_can_show_are_counted() -> None:
    many = made_report(*[made_result("fail")] * (FINDINGS_MAX + 3))
    assert "And 3 findings more" in as_html([many])


# --- the diagram ----------------------------------------------------------------------------------

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


def told(*events: Event, witness: tuple[int, ...] = ()) -> list[str]:
    return [f"{row.shape}: {row.label}{' !' if row.shows else ''}" for row in rows(events, witness)]


def test_client_server_and_truth_are_drawn() -> None:
    items = [{"name": "a", "description": "a@1"}]
    page = {"tools": [*items, {"name": "b", "description": "other"}], "nextCursor": "2"}
    assert told(
        Event(0, 0, "truth", data={"pages": {"tools": (("a@1",), ("b@1",))}}),
        Event(1, 1, "open", "c1"),
        Event(2, 2, "in", "c1", {"id": 1, "method": "tools/list"}, {"page": 2}),
        Event(3, 3, "out", "c1", {"id": 1, "result": page}),
        Event(4, 4, "status", "c2", data={"code": 404}),
        Event(5, 5, "note", data={"changed": ["tools"]}),
        Event(6, 6, "out", "c1", {"id": 2, "error": {"code": -32601}}),
        Event(7, 7, "answer", data={"op": "need", "kind": "tools", "ok": {"items": items}}),
        Event(8, 8, "answer", data={"op": "believe", "kind": "tools", "ok": {"items": None}}),
        Event(9, 9, "fence", data={"passed": False}),
        Event(10, 9, "truth", data={"pages": {"tools": []}, "principal": "bob"}),
        witness=(7,),
    ) == [
        "truth: tools: a@1 | b@1",
        "server: connection opened",
        "to_server: tools/list (page 2)",
        "to_client: tools: a@1, b, and more",
        "to_client: HTTP 404",
        "truth: tools: changed",
        "to_client: error -32601",
        "client: offers a@1 !",
        "client: believes no list",
        "line: fence, not passed",
        "truth: bob: tools: none",
    ]


def test_each_thing_that_matters_has_a_short_label() -> None:
    planned = {"name": "a", "description": "a@1"}
    notice = {"method": "notifications/tools/list_changed", "params": {"_meta": {SUBSCRIPTION: 7}}}
    listen = {"toolsListChanged": True, "promptsListChanged": False}
    one = {"items": [planned], "state": "stale"}
    assert told(
        Event(0, 0, "ask", data={"op": "call", "name": "a", "planned": planned}),
        Event(1, 0, "in", "c", {"id": 1, "method": "tools/call", "params": {"name": "a"}}),
        Event(2, 0, "out", "c", {"id": 1, "error": {"code": -32602}}, {"http": 400}),
        Event(3, 0, "answer", data={"op": "call", "name": "a", "ok": {"outcome": "error"}}),
        Event(4, 0, "ask", data={"op": "credentials", "token": "relist-bob"}),
        Event(5, 0, "answer", data={"op": "credentials", "token": "relist-bob", "ok": {}}),
        Event(6, 0, "open", "d", data={"channel_kind": "stdio", "principal": "bob"}),
        Event(7, 0, "ask", data={"op": "advance", "ms": 60}),
        Event(8, 0, "ask", data={"op": "refresh", "kind": "tools"}),
        Event(9, 0, "answer", data={"op": "refresh", "kind": "tools", "ok": one}),
        Event(
            10,
            0,
            "in",
            "d",
            {"method": "subscriptions/listen", "params": {"notifications": listen}},
        ),
        Event(11, 0, "out", "d", notice),
        Event(12, 0, "in", "d", {"method": "notifications/cancelled", "params": {"requestId": 1}}),
        Event(13, 0, "out", "d", {"id": 2, "result": {"tools": []}}, {"malformed": True}),
        Event(14, 0, "note", "d", data={"held": "old"}),
        Event(15, 0, "note", data={"released": "old", "sent": False}),
        Event(16, 0, "note", "d", data={"unanswered": True}),
        Event(17, 0, "open", "g", data={"channel_kind": "get"}),
        Event(18, 0, "status", "g", data={"code": 404}),
        Event(19, 0, "status", "h", data={"code": 202}),
        Event(20, 0, "cut", "d"),
        Event(21, 0, "step", data={"op": "end_subscriptions"}),
        Event(22, 0, "note", data={"ended": "judged"}),
        witness=(21,),
    ) == [
        "client: is asked to call a as a@1",
        "to_server: tools/call a",
        "to_client: error -32602 (HTTP 400)",
        "client: call of a ends: error",
        "client: acts for bob",
        "server: connection opened for bob",
        "client: is told that 60 ms pass",
        "client: is asked: refresh tools",
        "client: refreshed: a@1 (stale)",
        "to_server: subscriptions/listen tools",
        "to_client: tools/list_changed for 7",
        "to_server: cancelled request 1",
        "to_client: tools: none (malformed)",
        "server: holds the answer 'old'",
        "server: releases 'old': nobody to send it to",
        "server: never answers",
        "to_server: HTTP GET",
        "to_client: HTTP 404",
        "server: cut off by the server",
        "server: step: end_subscriptions !",
        "line: the end",
    ]


def test_pings_steps_and_repeated_answers_are_left_out_unless_they_are_witness() -> None:
    ok = {"op": "need", "kind": "tools", "ok": {"items": []}}
    events = (
        Event(0, 0, "step", data={"op": "need"}),
        Event(1, 0, "answer", data={**ok, "ask": 1}),
        Event(2, 0, "out", "c1", {"id": "p", "method": "ping"}),
        Event(3, 0, "in", "c1", {"id": "p", "result": {}}),
        Event(4, 0, "answer", data={**ok, "ask": 2}),
        Event(5, 0, "answer", data={**ok, "ask": 3}),
    )
    assert told(*events) == ["client: offers none"]
    assert told(*events, witness=(5,)) == ["client: offers none", "client: offers none !"]


def test_over_http_what_only_carries_pings_is_left_out() -> None:
    post = {"channel_kind": "post"}
    assert told(
        Event(0, 0, "open", "get-1", data={"channel_kind": "get"}),
        Event(1, 0, "out", "get-1", {"id": "p", "method": "ping"}),
        Event(2, 0, "open", "post-2", data=post),
        Event(3, 0, "in", "post-2", {"id": "p", "result": {}}),
        Event(4, 0, "status", "post-2", data={"code": 202}),
        Event(5, 0, "close", "post-2"),
        Event(6, 0, "open", "post-3", data=post),
        Event(7, 0, "in", "post-3", {"id": 3, "method": "tools/list"}),
        Event(8, 0, "status", "post-3", data={"code": 404}),
        Event(9, 0, "close", "get-1"),
        Event(10, 0, "out", "get-1", {"id": "p", "method": "roots/list"}),
    ) == [
        "to_server: HTTP GET",
        "to_server: tools/list",
        "to_client: HTTP 404",
        "server: closed by the client",
        "to_client: roots/list",
    ]


def test_where_the_client_left_the_machine_is_marked_and_told() -> None:
    """Also where the event is no witness, and would be left out."""
    ok = {"op": "need", "kind": "tools", "ok": {"items": []}}
    events = [Event(n, n, "answer", data={**ok, "ask": n}) for n in range(500)]
    drawn = rows(events, (0,), 400)
    assert [row.at_ms for row in drawn if row.leaves] == [400]
    assert not any(row.leaves for row in rows(events, (0,)))
    text = as_html([left_the_machine()])
    assert "Left what the reference machine allows at #3: need was answered with [x@1]" in text
    assert "The machine then: link " in text
    assert text.count(' leaves"') == 1
    assert "Left what" not in as_html([made_report(made_result("fail"))])


def test_of_a_long_history_what_is_near_the_witness_is_drawn() -> None:
    events = [Event(n, n, "mark", data={"name": str(n)}) for n in range(500)]
    drawn = told(*events, witness=(0, 250))
    assert len(drawn) == ROWS_MAX + 2
    assert drawn[0] == "line: 0 !"
    assert "line: 250 !" in drawn
    assert drawn[-1].startswith("gap: ")
    assert sum(int(one.split()[1]) for one in drawn if one.startswith("gap")) == 500 - ROWS_MAX


def test_hovering_shows_frame_rule_and_address() -> None:
    report = two_clients()[0]
    rule = attrs.evolve(report.rules["DISC-10"], id="MADE-01")
    text = as_html([attrs.evolve(report, rules={"MADE-01": rule})])
    titles = re.findall(r"<title>(.*?)</title>", text, re.DOTALL)
    shown = [one for one in titles if one.startswith("#2 at 90 ms on c1: in")]
    assert len(shown) == 2
    assert "MADE-01: One-page answers and many-page answers" in shown[0]
    assert "https://modelcontextprotocol.io/specification" in shown[0]
