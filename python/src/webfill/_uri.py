"""Addresses of stores."""

from __future__ import annotations

import os
from typing import Union


def uri_of(store: Union[str, os.PathLike[str]]) -> str:
    """Return the address of a store, which may be given as the path of a SQLite file.

    >>> uri_of("shop.db"), uri_of("mongodb://localhost/shop")
    ('sqlite:shop.db', 'mongodb://localhost/shop')
    """
    text = os.fspath(store)
    is_uri = text.startswith(("sqlite:", "mongodb:", "mongodb+srv:"))
    return text if is_uri else f"sqlite:{text}"
