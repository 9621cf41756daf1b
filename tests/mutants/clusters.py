"""The kinds of fault that people report in public, and which defects stand for each.

The letters are those of the project's log of bug reports (161 of them, read in August 2026).
"""

from collections.abc import Mapping

from attrs import frozen


@frozen
class Cluster:
    """A kind of fault, the defects that show it, or why no client can be judged by it here."""

    name: str
    defects: tuple[str, ...] = ()
    why_not: str = ""


CLUSTERS: Mapping[str, Cluster] = {
    "A": Cluster("a notice is ignored", ("deaf-to-notices", "deaf-to-prompts")),
    "B": Cluster("refreshed, but not shown to the application", ("shows-the-first-list",)),
    "C": Cluster("an older answer wins", ("late-answer-wins", "forgets-to-walk-again")),
    "D": Cluster("the reader waits for itself", ("hears-nothing-during-a-call",)),
    "E": Cluster("storms and feedback", ("lists-on-each-notice", "does-not-space")),
    "F": Cluster("first page only", ("first-page-only", "relists-first-page-only")),
    "G": Cluster("rules of cursors", ("empty-cursor-ends", "walks-without-end")),
    "H": Cluster("a failed refresh ruins the list", ("empties-on-failure", "missing-is-empty")),
    "I": Cluster("reconnects", ("keeps-a-lost-session", "trusts-over-a-reconnect")),
    "J": Cluster("the life of a subscription", ("error-ends-nothing", "listens-once")),
    "K": Cluster("no channel for notices", ("waits-for-the-stream", "trusts-its-own-filter")),
    "L": Cluster("capability gating", ("asks-for-everything", "method-not-found-passes")),
    "M": Cluster("prompts and templates left behind", ("deaf-to-prompts", "forgets-templates")),
    "N": Cluster("lifetimes", ("zero-means-no-limit", "polls", "milliseconds-for-seconds")),
    "O": Cluster("shared by several users", ("private-is-public",)),
    "P": Cluster("a call on an old definition", ("calls-whatever",)),
    "Q": Cluster(
        "drift and approval",
        why_not="A driver has no approvals; `drift.md` has a test for each rule of ours.",
    ),
    "R": Cluster("unstable order", ("sorts-by-name",)),
    "S": Cluster("duplicates", ("offers-repeated-items",)),
    "T": Cluster(
        "proxies and gateways",
        why_not="A proxy is a client and a server at once: a later matter of several servers.",
    ),
    "U": Cluster("the order of the handshake", ("lists-before-ready", "notice-for-answer")),
}
