"""What the Python package costs beside the command: a table of 100,000 rows and 30 columns goes in and comes out.

    python.py [ROWS]      in an environment where webfill and pyarrow are installed

The command and the package fetch the same 200 pages from a site on loopback, with a delay of 0.05 s, and then complete
the table again from what is stored. The limit of time is that of the first run. Ends with status 1 if a limit is missed.
"""

import re
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyarrow
import pyarrow.parquet
import webfill

ROWS = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
PAGES = 200
MOST_TIME = 1.05
MOST_MIB = 300


class Site(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        name = self.path.rpartition("/")[2]
        body = b""
        if name.isdecimal():
            body = f"<h1>Book {name} of many</h1><p>Pages: <b>{int(name) * 3 + 100}</b></p>".encode()
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *arguments):
        pass


def table():
    linked = [number < PAGES for number in range(ROWS)]
    columns = {
        "id": list(range(ROWS)),
        "link": [f"http://books.example/book/{number}" if has else None for number, has in enumerate(linked)],
        "title": [
            f"Book {number} of many" if has and number % 3 else None if has else f"Book {number}"
            for number, has in enumerate(linked)
        ],
        "pages": [number * 3 + 100 if not has or number % 4 else None for number, has in enumerate(linked)],
    }
    for number in range(13):
        columns[f"text{number}"] = [f"some words {row * 7 % 9973} {number}" for row in range(ROWS)]
        columns[f"number{number}"] = [row * 31 % 9973 / 7 for row in range(ROWS)]
    return pyarrow.table(columns)


def peak_mib():
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s*(\d+)", status)[1]) / 1024


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    resolve = f"*:80:127.0.0.1:{server.server_address[1]}"
    given = table()
    # The time to make the table does not count.
    Path("/proc/self/clear_refs").write_text("5")
    before = peak_mib()
    with tempfile.TemporaryDirectory() as folder:
        alone = Path(folder) / "alone.parquet"
        pyarrow.parquet.write_table(given, alone, compression="zstd")
        command = [webfill.find_bin(), "fill", alone, "--delay=0.05", "--allow-private-networks", "--workers=1"]
        command += [f"--resolve={resolve}", "--progress=none", f"--report={folder}/alone.html"]

        def run_command():
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            return None

        def run_package():
            options = {"delay": 0.05, "workers": 1, "allow_private_networks": True, "resolve": resolve}
            done = webfill.fill(given, folder=folder, name="package", progress=False, **options)
            return pyarrow.table(pyarrow.RecordBatchReader.from_stream(done).read_all())

        seconds = {}
        for name, run in (("command", run_command), ("package", run_package)):
            for what in ("first", "again"):
                began = time.monotonic()
                filled = run()
                seconds[name, what] = time.monotonic() - began
        assert filled.schema.equals(given.schema) and filled.num_rows == ROWS
        assert filled["title"].null_count == 0 and filled["pages"].null_count == 0
    more = peak_mib() - before
    for what in ("first", "again"):
        alone_s, package_s = seconds["command", what], seconds["package", what]
        print(f"python {what:5}: command {alone_s:.2f} s, package {package_s:.2f} s, {package_s / alone_s:.3f} times")
    print(f"python memory: {more:.0f} MiB more than with the table alone (limit {MOST_MIB})")
    times = seconds["package", "first"] / seconds["command", "first"]
    print(f"python time of the first run: {times:.3f} times the command's (limit {MOST_TIME})")
    return 1 if times > MOST_TIME or more > MOST_MIB else 0


sys.exit(main())
