"""What ``relist pin``, ``review`` and the other commands about approvals do."""
