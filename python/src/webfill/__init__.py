"""Complete a table from the web: a DataFrame with gaps goes in and comes out filled.

>>> import webfill
>>> callable(webfill.fill)
True

The program ``webfill`` does the work, in processes of its own; this package hands tables over and back.
"""

from __future__ import annotations

from . import mapping
from ._crawl import Crawled, crawl
from ._errors import (
    FatalError,
    InterruptedCommandError,
    LimitError,
    RequestsRefusedError,
    UsageError,
    WebfillError,
)
from ._fill import Filled, fill
from ._fleet import AsyncFleet, Fed, Fleet, Follower
from ._program import find_bin
from ._progress import Event, Progress
from ._store import Export, Store
from ._tables import Table

__all__ = [
    "AsyncFleet",
    "Crawled",
    "Event",
    "Export",
    "FatalError",
    "Fed",
    "Filled",
    "Fleet",
    "Follower",
    "InterruptedCommandError",
    "LimitError",
    "Progress",
    "RequestsRefusedError",
    "Store",
    "Table",
    "UsageError",
    "WebfillError",
    "crawl",
    "fill",
    "find_bin",
    "mapping",
]

# Makes errors and help show the names under which people import these objects.
for _public in __all__:
    _object = globals()[_public]
    if getattr(_object, "__module__", "").startswith("webfill._"):
        _object.__module__ = "webfill"
del _public, _object
