"""Addresses of stores."""

from __future__ import annotations

import os
from typing import Union


def environment_of(store: Union[str, os.PathLike[str], None]) -> dict[str, str]:
    """Return how the program is given a store: not as an argument, because an address may hold a password.

    >>> environment_of("shop.db"), environment_of(None)
    ({'WEBFILL_STORE': 'sqlite:shop.db'}, {})
    """
    return {} if store is None else {"WEBFILL_STORE": uri_of(store)}


def uri_of(store: Union[str, os.PathLike[str]]) -> str:
    """Return the address of a store, which may be given as the path of a SQLite file.

    >>> uri_of("shop.db"), uri_of("mongodb://localhost/shop")
    ('sqlite:shop.db', 'mongodb://localhost/shop')
    >>> uri_of("redis://localhost/1")  # the program refuses it
    'redis://localhost/1'
    """
    text = os.fspath(store)
    is_uri = text.startswith("sqlite:") or "://" in text
    return text if is_uri else f"sqlite:{text}"
