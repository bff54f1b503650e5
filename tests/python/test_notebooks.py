"""The example notebooks run from their first cell to their last, as in Jupyter."""

import json
import sys
import time
from pathlib import Path

import jsonschema
import made_site
import nbclient
import nbformat
import pytest
import webfill

REPOSITORY = Path(__file__).parents[2]
NOTEBOOKS = sorted((REPOSITORY / "docs/examples").glob("*.ipynb"))


def execute(notebook, folder):
    # Use the interpreter that runs the tests, whatever kernels this machine has.
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    client = nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}})
    client.create_kernel_manager()
    client.km.kernel_spec.argv[0] = sys.executable
    client.execute()
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def html_of(outputs):
    return "".join(output["data"].get("text/html", "") for output in outputs if "data" in output)


def test_there_are_examples():
    assert len(NOTEBOOKS) == 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_an_example(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "examples are kept without outputs"
    assert html_of(execute(notebook, tmp_path))


def test_a_cell_shows_progress_and_a_summary_with_pictures(tmp_path):
    with made_site.served() as site:
        options = site.options(progress=None)
        cell = f"import webfill, json\nwebfill.fill(json.loads({json.dumps(json.dumps(plain(made_site.rows())))}), **{options!r})"
        outputs = execute(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell)]), tmp_path)
    shown = html_of(outputs)
    assert "115 of 115 gaps filled" in shown and "<svg" in shown, shown
    said = "".join(output["text"] for output in outputs if output["output_type"] == "stream")
    assert "48/48" in said, said


def plain(rows):
    return [{name: value if value in (None, "") or isinstance(value, list) else str(value) for name, value in row.items()} for row in rows]


def test_events_follow_the_schema(site):
    schema = json.loads((REPOSITORY / "docs/reference/progress.schema.json").read_text())
    events = []
    began = time.monotonic()
    webfill.fill(made_site.rows(), **site.options(progress=events.append))
    assert 0 < len(events) <= 10 * (time.monotonic() - began + 1)
    for event in events:
        jsonschema.validate(event, schema)
