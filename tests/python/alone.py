"""The package without any other: a list of dicts goes in, and comes out with its types; and the command."""

import contextlib
import io
import subprocess
import sys
import tempfile
import time
from importlib import metadata

import made_site
import webfill

began = time.monotonic()
version = subprocess.run([webfill.find_bin(), "--version"], capture_output=True, text=True, check=True).stdout
assert version.split() == ["webfill", metadata.version("webfill")], version
for command in (["webfill"], [sys.executable, "-m", "webfill"]):
    assert subprocess.run([*command, "--version"], capture_output=True, text=True, check=True).stdout == version
    assert subprocess.run([*command, "fill"], capture_output=True).returncode == 2

with made_site.served() as site, tempfile.TemporaryDirectory() as folder:
    rows = made_site.rows()
    events = []
    done = webfill.fill(rows, folder=folder, **site.options(progress=events.append))
    assert done.complete, done.text
    for book, row in enumerate(done.to_dicts()):
        for name, value in {**rows[book], **made_site.truth(book)}.items():
            assert row[name] == value and type(row[name]) is type(value), (book, name, row[name], value)
    assert {event["kind"] for event in events} == {"fill", "crawl"}, events
    states = {one["state"] for one in done.evidence.to_dicts()}
    assert states == {"filled", "known"}, states
    assert done.doubts.to_dicts() == []
    assert "115 of 115 gaps" in repr(done) and "115 of 115 gaps" in done._repr_html_()
    asked = len(site.asked)
    # A repeated call requests nothing again, and prints its one plain line or nothing.
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        again = webfill.fill(rows, folder=folder, **site.options(progress=None))
    assert again.to_dicts() == done.to_dicts() and len(site.asked) == asked and said.getvalue() == ""
    try:
        done.to_polars()
    except ImportError:
        pass
    else:
        raise AssertionError("there is no polars here")
    try:
        done.__arrow_c_stream__()
    except ImportError as error:
        assert "pip install pyarrow or polars or duckdb" in str(error)
    else:
        raise AssertionError("there is nothing that makes an Arrow stream here")
print(f"alone: {time.monotonic() - began:.1f} s")
