"""Reports of a run: a table for people, data for programs, and the explanation of a case.

Nothing here judges. All text that may come from a peer passes through ``plain``, and rich markup is
never parsed.
"""
