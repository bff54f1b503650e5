"""Replays URLs out of WARC files with pywb, and prints what it answers as lines of JSON.

    replay.py FOLDER URL...

FOLDER holds the WARC files. pywb works in a folder of its own and is called as a library, by a client
that takes gzip. Bodies are replayed unchanged (`id_`), and printed in hexadecimal digits.
"""

import contextlib
import glob
import io
import json
import os
import sys
import tempfile

from pywb.apps.frontendapp import FrontEndApp
from pywb.manager.manager import main as manage


def replay(app, url):
    answer = {"url": url}

    def start_response(status, headers, exc_info=None):
        answer["status"] = int(status.split()[0])
        answer["headers"] = {name.lower(): value for name, value in headers}

    environ = {
        "REQUEST_METHOD": "GET",
        "SCRIPT_NAME": "",
        "PATH_INFO": "/pages/id_/" + url,
        "QUERY_STRING": "",
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "HTTP_HOST": "localhost",
        "HTTP_ACCEPT_ENCODING": "gzip",
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(),
    }
    answer["body"] = b"".join(app(environ, start_response)).hex()
    return answer


def main(folder, urls):
    files = sorted(glob.glob(os.path.join(os.path.abspath(folder), "*.warc.gz")))
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        # The output of pywb is for people.
        with contextlib.redirect_stdout(sys.stderr):
            manage(["init", "pages"])
            manage(["add", "pages", *files])
            app = FrontEndApp()
            answers = [replay(app, url) for url in urls]
    for answer in answers:
        print(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
