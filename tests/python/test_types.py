"""Types, as programs see them that use what was installed."""

import json
import subprocess
import sys
from pathlib import Path

import webfill

PROGRAM = '''
from __future__ import annotations
import asyncio
import webfill
from webfill import mapping

def shown(event: webfill.Event) -> None:
    print(event["kind"])

done = webfill.fill([{"url": "http://a.example/", "name": None}], keep=["a"], progress=shown)
path: str = str(done.path)
filled: int = done.summary["all"]["filled"]
states: list[object] = [one["state"] for one in done.evidence.to_dicts()]
columns: list[str] = list(done.to_pandas().columns)
height: int = done.to_polars().height
crawled: webfill.Crawled = webfill.crawl(["http://a.example/"], depth=2)
stream: object = crawled.store.pages().__arrow_c_stream__()
fault: str | None = mapping.check("a.json")[0].path
try:
    accepted: int = webfill.Fleet().feed({"url": "http://a.example/"}).accepted
    for message in webfill.Fleet().follow():
        print(message["url"])
except webfill.RequestsRefusedError as error:
    print(error.refused[0][2], error.exit_code + 1)

async def main() -> None:
    async for message in webfill.AsyncFleet("tcp://127.0.0.1:5555", keys="keys").follow("shop"):
        print(message)

asyncio.run(main())
'''

WRONG = "import webfill\nwebfill.fill([], delya=3)\nwebfill.Fleet().info(3)\n"


def run(folder, tool, *arguments):
    command = [sys.executable, "-m", tool, *arguments]
    # Not run in the repository, because a folder there has the name of the package.
    return subprocess.run(command, capture_output=True, text=True, cwd=folder)


def test_mypy_strict(tmp_path):
    (tmp_path / "right.py").write_text(PROGRAM)
    (tmp_path / "wrong.py").write_text(WRONG)
    options = ["--strict", f"--cache-dir={tmp_path}/cache", f"--python-executable={sys.executable}"]
    both = run(tmp_path, "mypy", *options, "-p", "webfill")
    assert both.returncode == 0, both.stdout + both.stderr
    right = run(tmp_path, "mypy", *options, f"{tmp_path}/right.py")
    assert right.returncode == 0, right.stdout + right.stderr
    wrong = run(tmp_path, "mypy", *options, f"{tmp_path}/wrong.py")
    assert wrong.stdout.count("error: ") == 2, wrong.stdout


def test_pyright_strict(tmp_path):
    (tmp_path / "right.py").write_text(PROGRAM)
    (tmp_path / "wrong.py").write_text(WRONG)
    settings = {"typeCheckingMode": "strict", "include": ["right.py", "wrong.py"], "pythonVersion": "3.11"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    checked = run(tmp_path, "pyright", f"--project={tmp_path}", f"--pythonpath={sys.executable}", "--outputjson")
    found = json.loads(checked.stdout)["generalDiagnostics"]
    errors = [(Path(one["file"]).name, one["message"]) for one in found if one["severity"] == "error"]
    assert [file for file, _ in errors] == ["wrong.py", "wrong.py"], errors
    typed = run(tmp_path, "pyright", "--ignoreexternal", "--verifytypes", "webfill", f"--pythonpath={sys.executable}", "--outputjson")
    completeness = json.loads(typed.stdout)["typeCompleteness"]
    unknown = [one for one in completeness["symbols"] if one["isExported"] and not one["isTypeKnown"]]
    assert not unknown, json.dumps(unknown, indent=1)
    assert (Path(webfill.__file__).parent / "py.typed").exists()
