"""The same crawl, stored in MongoDB and in SQLite, is the same in Python."""

import contextlib
import os
import socket
import subprocess
import time

import made_site
import pytest
import webfill
from test_crawls import crawl
from test_fleet import free_port

MONGOD = os.environ.get("MONGOD")
# What differs between two crawls of the same pages.
MEASURED = {"at", "elapsed_ms", "resolved_at", "started_at", "until"}


@pytest.fixture
def mongodb(tmp_path):
    """The address of a server."""
    (tmp_path / "mongodb").mkdir()
    port = free_port()
    options = ["--bind_ip=127.0.0.1", f"--port={port}", f"--dbpath={tmp_path}/mongodb", "--nounixsocket", "--quiet"]
    server = subprocess.Popen([MONGOD, *options], stdout=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            assert server.poll() is None and time.monotonic() < end, "the server does not start"
            time.sleep(0.05)
        yield f"mongodb://127.0.0.1:{port}/books"
    finally:
        server.kill()
        server.wait()


def page_of_the_next_day(book, page=made_site.page):
    """The second book has a new title."""
    return page(book).replace(made_site.truth(1)["title"], "The Second Edition")


def without_measures(value):
    if isinstance(value, dict):
        return {name: without_measures(one) for name, one in value.items() if name not in MEASURED}
    return [without_measures(one) for one in value] if isinstance(value, list) else value


def in_order(rows):
    """The rows of an export in one order, without what was measured."""
    return sorted(without_measures(rows), key=lambda row: str(row.get("_id") or row.get("id") or row["number"]))


@pytest.mark.skipif(not MONGOD, reason="there is no MongoDB server: see deploy/install-mongod.sh")
def test_records_pages_and_changes_of_mongodb_are_those_of_sqlite(site, tmp_path, monkeypatch, mongodb):
    found = {}
    for uri in ("sqlite:books.db", mongodb):
        options = {"store": uri, "state": f"state-{uri[:3]}", "changes": True}
        assert crawl(site, tmp_path, **options).complete
        with monkeypatch.context() as next_day:
            next_day.setattr(made_site, "page", page_of_the_next_day)
            assert crawl(site, tmp_path, books=5, flags=["--refresh-after=0s"], **options).complete
        store = webfill.Store(uri)
        exports = [store.records(dataset="books", sources=True), store.pages(crawl="once"), store.changes()]
        tables = [export.to_arrow() for export in exports]
        found[uri] = {
            "schemas": [table.schema for table in tables],
            "streams": [in_order(table.to_pylist()) for table in tables],
            "dicts": [in_order(export.to_dicts()) for export in exports],
        }
        records, pages, changes = found[uri]["streams"]
        titles = [made_site.truth(book)["title"] for book in range(5)]
        titles[1] = "The Second Edition"
        assert [record["title"] for record in records] == titles
        assert [page["outcome"] for page in pages] == ["ok"] * 5
        assert [(change["kind"], change["url"]) for change in changes] == [("changed", made_site.url(1))]
    of_sqlite, of_mongodb = found.values()
    assert of_mongodb["schemas"] == of_sqlite["schemas"]
    assert of_mongodb["streams"] == of_sqlite["streams"]
    assert of_mongodb["dicts"] == of_sqlite["dicts"]
