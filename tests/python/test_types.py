"""Types, as programs see them that use what was installed."""

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import webfill
from webfill import mapping

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
    assert completeness["completenessScore"] == 1 and completeness["missingFunctionDocStringCount"] == 0
    assert (Path(webfill.__file__).parent / "py.typed").exists()


def public_names():
    """All public names: classes, and functions with the classes that they belong to."""
    modules = [(webfill, name) for name in webfill.__all__] + [(mapping, name) for name in mapping.__all__]
    for module, name in modules:
        found = getattr(module, name)
        if not inspect.isclass(found) and not inspect.isfunction(found):
            continue
        yield name, found
        for method in vars(found) if inspect.isclass(found) else []:
            function = inspect.getattr_static(found, method)
            if inspect.isfunction(function) and (not method.startswith("_") or method == "__arrow_c_stream__"):
                yield f"{name}.{method}", function


def sections_of(found):
    """The sections of a docstring in NumPy style: the names that each lists."""
    doc = inspect.getdoc(found) or ""
    parts = re.split(r"(?m)^(\w+)\n-+\n", doc)
    listed = {}
    for title, text in zip(parts[1::2], parts[2::2]):
        heads = re.findall(r"(?m)^(\S[^\n]*)$", text)
        listed[title] = [name.strip().lstrip("*") for head in heads for name in head.split(" : ")[0].split(",")]
        if title in {"Parameters", "Attributes"}:
            assert all(" : " in head for head in heads), (found, heads)
        assert title == "Examples" or re.search(r"(?m)^    \S", text), (found, title)
    return parts[0].strip(), listed


@pytest.mark.parametrize(("name", "found"), list(public_names()), ids=lambda one: one if isinstance(one, str) else "")
def test_docstrings_name_arguments_results_and_errors(name, found):
    summary, sections = sections_of(found)
    assert summary.split("\n\n")[0].endswith("."), summary
    arguments = found.__init__ if inspect.isclass(found) and "Parameters" in sections else found
    parameters = [] if inspect.isclass(arguments) else list(inspect.signature(arguments).parameters)
    parameters = [one for one in parameters if one != "self"]
    # Those that go together are documented together.
    assert sorted(sections.get("Parameters", [])) == sorted(parameters)
    if inspect.isclass(found):
        own = [one for one in inspect.get_annotations(found) if not one.startswith("_")]
        assert set(own) <= set(sections.get("Attributes", []))
    elif found.__name__ != "close":
        assert "Raises" in sections and "Returns" in sections
