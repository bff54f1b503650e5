"""Two sites of books on loopback, each in a layout of its own, and a table of their books with gaps."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Optional

HOSTS = ["shelf.example", "library.example"]
BOOKS = 24
NOUNS = ["Engine", "Garden", "Harbour", "Lantern", "Mirror", "Orchard", "Palace", "River", "Shadow", "Tower", "Valley"]
ZONE = timezone(timedelta(hours=2))


def truth(book: int) -> dict[str, Any]:
    """The values of a book, counted over both sites."""
    first, second = NOUNS[book % 11], NOUNS[(book * 3 + book // 11 + 4) % 11]
    return {
        "title": f"The {first} of {second} {book}",
        "pages": 101 + book * 13,
        "price": Decimal(f"{5 + book}.{book * 7 % 10}5"),
        "published": date(1990 + book % 30, 1 + book % 12, 1 + book % 28),
        "seen": datetime(2025, 1 + book % 12, 1 + book % 28, 8 + book % 10, 15, tzinfo=ZONE),
        "tags": [NOUNS[(book + 2) % 11].lower(), NOUNS[(book * 2 + 5) % 11].lower()],
    }


def page(book: int) -> str:
    values = truth(book)
    tags, seen = values["tags"], values["seen"].isoformat()
    if book < BOOKS:
        items = "".join(f'<li class="tag">{tag}</li>' for tag in tags)
        main = (
            f"<h1>{values['title']}</h1><table><tr><th>Pages</th><td>{values['pages']}</td></tr>"
            f"<tr><th>Price</th><td>{values['price']}</td></tr>"
            f"<tr><th>Published</th><td>{values['published']}</td></tr>"
            f"<tr><th>Seen</th><td>{seen}</td></tr></table><ul>{items}</ul>"
        )
    else:
        items = "".join(f"<dd>{tag}</dd>" for tag in tags)
        main = (
            f'<h2 class="name">{values["title"]}</h2><p>Length: <b id="length">{values["pages"]}</b></p>'
            f'<p>Costs <span class="price">{values["price"]}</span></p>'
            f'<p>Out since <time id="out">{values["published"]}</time></p>'
            f'<p>Last seen <i id="seen">{seen}</i></p><dl class="tags">{items}</dl>'
        )
    return f"<!DOCTYPE html><html><head><title>Book {book}</title></head><body>{main}<p>Since 1899</p></body></html>"


def url(book: int) -> str:
    return f"http://{HOSTS[book // BOOKS]}/book/{1000 + book}"


def is_gap(book: int, field: int) -> bool:
    return ((book * 6 + field + 1) * 0x9E3779B97F4A7C15 >> 40) % 5 < 2


def rows() -> list[dict[str, Any]]:
    """The table: two in five values are missing; `note` has empty texts and nulls that must stay."""
    table: list[dict[str, Any]] = []
    for book in range(2 * BOOKS):
        row: dict[str, Any] = {"id": f"b{book}", "link": url(book)}
        for field, (name, value) in enumerate(truth(book).items()):
            row[name] = None if is_gap(book, field) else value
        row["note"] = ["", None, "mine"][book % 3]
        table.append(row)
    return table


class Site:
    """The server; `held` keeps all further answers waiting."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answers = 10**9
        self.pause_s = 0.0
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                host, path = self.headers["Host"], self.path
                number = path.rpartition("/")[2]
                book = int(number) - 1000 if path.startswith("/book/") else -1
                found = 0 <= book < 2 * BOOKS and HOSTS[book // BOOKS] == host
                if found:
                    site.asked.append(f"http://{host}{path}")
                    while len(site.asked) > site.answers:
                        if site.over.wait(0.05):
                            return
                time.sleep(site.pause_s)
                body = page(book).encode() if found else b"nothing here"
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.over = threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=[0.02], daemon=True).start()

    @property
    def resolve(self) -> str:
        return f"*:80:127.0.0.1:{self.server.server_address[1]}"

    def options(self, **others: Any) -> dict[str, Any]:
        """Arguments of `webfill.fill` for this site."""
        return {
            "keep": "note",
            "delay": 0,
            "workers": 1,
            "allow_private_networks": True,
            "resolve": self.resolve,
            "progress": False,
            **others,
        }


@contextmanager
def served(answers: Optional[int] = None) -> Iterator[Site]:
    site = Site()
    if answers is not None:
        site.answers = answers
    try:
        yield site
    finally:
        site.over.set()
        site.server.shutdown()
        site.server.server_close()
