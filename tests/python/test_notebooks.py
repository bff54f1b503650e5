"""The example notebooks run from their first cell to their last, as in Jupyter."""

import json
import sys
import time
from pathlib import Path

import jsonschema
import jupyter_client
import made_site
import nbclient
import nbformat
import pytest
import webfill
from test_ends import let_interrupt_arrive, wait_for

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


@pytest.fixture
def kernel(tmp_path):
    manager = jupyter_client.KernelManager()
    manager.kernel_spec.argv[0] = sys.executable
    manager.start_kernel(cwd=str(tmp_path))
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    try:
        yield manager, client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def reply_of(client, message):
    """The reply to a cell, whose output nobody reads."""
    while True:
        reply = client.get_shell_msg(timeout=90)
        if reply["parent_header"]["msg_id"] == message:
            return reply["content"]


def run_soon_after_an_error(client, code):
    """The reply to a cell. A kernel aborts cells that reach it while it still ends the one that failed."""
    for _ in range(20):
        content = reply_of(client, client.execute(code))
        if content["status"] != "aborted":
            return content
        time.sleep(0.1)
    return content


@pytest.mark.parametrize("way", ["webfill.fill(rows, **options)", "await asyncio.to_thread(webfill.fill, rows, **options)"])
def test_the_button_that_interrupts_a_cell_drains_and_the_same_cell_resumes(kernel, tmp_path, way):
    manager, client = kernel
    with made_site.served(answers=5) as site:
        options = site.options(progress=None)
        cell = f"import asyncio, json, webfill\nrows = json.loads({json.dumps(json.dumps(plain(made_site.rows())))})\n"
        cell += f"options = {options!r}\ndone = {way}"
        message = client.execute(cell)
        wait_for("a page is held", lambda: len(site.asked) > 5)
        manager.interrupt_kernel()
        let_interrupt_arrive()
        site.answers = 10**9
        content = reply_of(client, message)
        assert content["status"] == "error" and content["ename"] in {"KeyboardInterrupt", "CancelledError"}, content
        children = f"/proc/{manager.provisioner.pid}/task/{manager.provisioner.pid}/children"
        wait_for("no process is left", lambda: not Path(children).read_text(), seconds=15)
        drained = len(site.asked)
        assert drained < 2 * made_site.BOOKS
        content = run_soon_after_an_error(client, cell + "\nassert done.complete and '115 of 115' in repr(done)")
        assert content["status"] == "ok", content
        assert len(site.asked) == len(set(site.asked)) == 2 * made_site.BOOKS


def test_events_follow_the_schema(site):
    schema = json.loads((REPOSITORY / "docs/reference/progress.schema.json").read_text())
    events = []
    began = time.monotonic()
    webfill.fill(made_site.rows(), **site.options(progress=events.append))
    assert 0 < len(events) <= 10 * (time.monotonic() - began + 1)
    for event in events:
        jsonschema.validate(event, schema)
