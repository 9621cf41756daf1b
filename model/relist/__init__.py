"""Relist: a pure state machine that keeps an MCP client's catalogs correct.

Values in, values out: no I/O, no clock, no randomness. Start with ``charts.py`` (the law) and
``values.py`` (its vocabulary).
"""

__version__ = "0.1.0"
