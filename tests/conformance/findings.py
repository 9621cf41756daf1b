"""What the suite finds in clients of others: all that is neither passed nor beside the point.

One text of words for each case, by transport and revision as in ``pinned.COLUMNS``. Each finding
was looked up in the source of the client before it came here: ``specs/drivers.md`` says where.
"""

EVERYWHERE = "warn warn warn warn"
_SUBSCRIPTIONS_END_UNNOTICED = {
    "listen:ended:by-cancellation": "warn",
    "listen:ended:by-close": "warn",
    "listen:ended:by-error": "warn warn",
    "listen:ended:by-result": "warn warn",
}
_TAGS_ARE_NOT_READ = {"notice:foreign-tag": "warn", "notice:tag-of-another-type": "warn"}
_NEVER_RECONNECTS = {
    "reconnect:lists-again": EVERYWHERE,
    "reconnect:process-is-restarted": "warn",
    "session:lost": "fail",
}
_RESUMES_BROKEN_STREAMS = {"stream:broken-is-not-resumed": "warn"}
_OUTAGES_MEAN_LEGACY = {"era:server-fault-is-no-verdict": "warn"}
_OLD_LOOP = {
    "call:arguments-are-checked": "warn - warn -",
    "capability:undeclared": "fail - fail -",
    "capability:undeclared:tools": "fail - fail -",
    "paging:empty-cursor": "warn - warn -",
    "paging:repeated-item": "warn - warn -",
    "reconnect:lists-again": "warn - warn -",
    "session:lost": "fail",
}
_OF_THE_NEW_SDK = {"listen:not-resumed": "warn", "peer:no-answers": "fail fail"}
"""It resumes streams, and answers requests, in an era that has neither."""

_ANY_RESULT_TYPE = {
    "cache:input-required-list": "warn warn",
    "malformed:unknown-result-type": "fail fail",
}

_NO_GATE = {"call:arguments-are-checked": EVERYWHERE, "prompt:vanished": EVERYWHERE}
_SUBSCRIBES_UNDECLARED = {"resource:subscribe-undeclared": "fail fail"}

FINDINGS = {
    "sdk_v2.mjs": {
        **_NO_GATE,
        **_SUBSCRIBES_UNDECLARED,
        "capability:undeclared:not-empty": EVERYWHERE,
        "listen:not-resumed": "warn",
        "resource:input-required-is-not-kept": "fail fail",
        **_SUBSCRIPTIONS_END_UNNOTICED,
        **_TAGS_ARE_NOT_READ,
        **_NEVER_RECONNECTS,
        **_RESUMES_BROKEN_STREAMS,
        "paging:repeated-item": EVERYWHERE,
        "ttl:expired-page": "warn warn",
        "ttl:first-page-received-first": "warn warn",
        "ttl:negative-is-zero": "warn warn",
    },
    "sdk_v1.mjs": {
        **_OLD_LOOP,
        **_SUBSCRIBES_UNDECLARED,
        "paging:dead-cursors": "warn - warn -",
        "prompt:vanished": "warn - warn -",
    },
    "mcp1_client": {**_OLD_LOOP, "cancel:by-notification": "warn -"},
    "mcp_client": {
        **_NO_GATE,
        **_SUBSCRIBES_UNDECLARED,
        **_SUBSCRIPTIONS_END_UNNOTICED,
        **_TAGS_ARE_NOT_READ,
        **_NEVER_RECONNECTS,
        **_ANY_RESULT_TYPE,
        **_OF_THE_NEW_SDK,
        **_RESUMES_BROKEN_STREAMS,
        **_OUTAGES_MEAN_LEGACY,
        "capability:undeclared": "fail warn fail warn",
        "capability:undeclared:tools": "fail warn fail warn",
        "paging:repeated-item": EVERYWHERE,
    },
    "fastmcp_client": {
        "call:arguments-are-checked": "warn n/a warn n/a",
        "call:header-mismatch": "warn",
        "prompt:vanished": "warn n/a warn n/a",
        **_NEVER_RECONNECTS,
        **_RESUMES_BROKEN_STREAMS,
        **_OUTAGES_MEAN_LEGACY,
        "cache:input-required-list": "warn warn",
        "capability:undeclared": "fail warn fail warn",
        "capability:undeclared:tools": "fail warn fail warn",
        "paging:repeated-cursor": "warn fail warn fail",
        "paging:repeated-item": EVERYWHERE,
        "reconnect:lists-again": "warn n/a warn n/a",
    },
    "naive": {
        "call:arguments-are-checked": EVERYWHERE,
        **_SUBSCRIPTIONS_END_UNNOTICED,
        **_NEVER_RECONNECTS,
        **_ANY_RESULT_TYPE,
        **_OF_THE_NEW_SDK,
        "stream:cut": "warn",
        **_OUTAGES_MEAN_LEGACY,
        "failure:notice-while-waiting": EVERYWHERE,
        "stream:broken-is-not-resumed": "fail",
        **dict.fromkeys(
            (
                *("failure:keeps-last-good", "malformed:list-of-another-type", "malformed:no-list"),
                *("notice:next-access", "storm:burst", "storm:feedback"),
                *("paging:every-page", "paging:prompts", "paging:resources", "paging:templates"),
                "publication:failed-at-first",
                *("storm:all-kinds", "storm:feedback:across-kinds", "storm:hundreds-at-once"),
                "storm:while-listing",
            ),
            EVERYWHERE,
        ),
        **dict.fromkeys(
            (
                *("malformed:not-json", "ttl:expired-is-fetched-again"),
                *("ttl:negative-is-zero", "ttl:zero-is-stale"),
            ),
            "warn warn",
        ),
    },
}


def findings(verdicts: dict[str, str]) -> dict[str, str]:
    """Of these verdicts the cases that found something, or that nobody could judge."""
    told = {"warn", "fail", "inconclusive", "harness"}
    return {case: words for case, words in verdicts.items() if told & {*words.split()}}
