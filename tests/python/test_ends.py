"""Errors, Ctrl-C, and the death of the interpreter: nothing is left running, nothing is lost, the same call resumes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import made_site
import pytest
import webfill

SCRIPT = """
import sys, made_site, webfill
webfill.fill(made_site.rows(), delay=0.05, workers=1, allow_private_networks=True, keep="note", progress=False,
             resolve=sys.argv[1])
print("filled")
"""


def start(site, script=SCRIPT):
    path = f"{Path(__file__).parent}:{os.environ.get('PYTHONPATH', '')}"
    return subprocess.Popen(
        [sys.executable, "-c", script, site.resolve],
        env={**os.environ, "PYTHONPATH": path, "MARK": str(os.getpid()) + site.resolve},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def processes_of(site):
    """All processes that the interpreter of this site has started, itself among them."""
    mark = f"MARK={os.getpid()}{site.resolve}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes().split(b"\0") and folder.joinpath("exe").readlink():
                found.append(int(folder.name))
        except (OSError, AttributeError):
            pass
    return found


def wait_for(what, condition, seconds=90):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def let_interrupt_arrive():
    """A moment for the drain to begin, which nobody outside sees. If it has not begun after it, more pages are fetched,
    and the same must hold."""
    time.sleep(0.5)


def assert_resumed(site, killed_at):
    wait_for("no process is left", lambda: not processes_of(site))
    site.answers = 10**9
    done = webfill.fill(made_site.rows(), **site.options())
    for book, row in enumerate(done.to_dicts()):
        assert {**row, **made_site.truth(book)} == row
    again = len(site.asked) - len(set(site.asked))
    # At each site, requests that were in progress are made again.
    assert again <= 2 * len(made_site.HOSTS), f"{again} again after {killed_at}"


# The numbers of pages that are fetched before the end: thirty moments from the start to the last page.
MOMENTS = 30
INTERRUPTED = [47 * moment // MOMENTS + 1 for moment in range(MOMENTS)]
KILLED = [48 * moment // MOMENTS for moment in range(MOMENTS)]


@pytest.mark.parametrize("pages", INTERRUPTED)
def test_an_interrupt_drains_and_the_same_call_resumes(site, pages):
    # The last page is held back, so that the run does not end before the interrupt comes.
    site.answers = pages - 1
    process = start(site)
    wait_for("pages are fetched", lambda: len(site.asked) >= pages)
    # From a terminal, the signal goes to the whole group, and only once to the program.
    os.killpg(process.pid, signal.SIGINT)
    let_interrupt_arrive()
    site.answers = 10**9
    _, said = process.communicate(timeout=90)
    assert said.rstrip().endswith(b"KeyboardInterrupt"), said
    assert process.returncode != 0
    # Requests in progress were drained, so nothing is requested twice.
    wait_for("no process is left", lambda: not processes_of(site), seconds=15)
    webfill.fill(made_site.rows(), **site.options())
    assert len(site.asked) == len(set(site.asked))


@pytest.mark.parametrize("pages", KILLED)
def test_nothing_is_left_of_a_killed_interpreter(site, pages):
    site.answers = pages
    process = start(site)
    if pages:
        wait_for("a page is held", lambda: len(site.asked) > pages)
    else:
        wait_for("the program runs", lambda: len(processes_of(site)) > 1)
    process.kill()
    process.wait()
    # A page that is held back keeps the program from draining for as long as its patience lasts.
    site.answers = 10**9
    assert_resumed(site, pages)


def test_an_error_of_a_callback_ends_the_run_and_is_raised(site):
    def fail(event):
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        webfill.fill(made_site.rows(), **site.options(progress=fail))
    assert_resumed(site, "an error")


def test_an_interrupt_that_a_callback_raises_drains(site):
    def interrupt(event):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        webfill.fill(made_site.rows(), **site.options(progress=interrupt))
    assert_resumed(site, "an interrupt of a callback")


LIVING = """
import os, signal, sys, threading, made_site, webfill
left = []
for moment in range(30):
    try:
        threading.Timer(moment * 0.0007, os.kill, [os.getpid(), signal.SIGINT]).start()
        webfill.fill(made_site.rows(), name=f"t{moment}", delay=0.05, allow_private_networks=True, keep="note",
                     progress=False, resolve=sys.argv[1])
        raise AssertionError("not interrupted")
    except KeyboardInterrupt:
        pass
    # `children` has those that have ended and were not waited for, too.
    left.append(open(f"/proc/self/task/{os.getpid()}/children").read())
print(left)
assert not any(left)
"""


def test_an_interrupt_while_the_program_starts_leaves_no_process_to_a_living_interpreter(site):
    path = f"{Path(__file__).parent}:{os.environ.get('PYTHONPATH', '')}"
    ended = subprocess.run(
        [sys.executable, "-c", LIVING, site.resolve],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_an_interrupt_reaches_a_call_in_another_thread(site):
    site.answers = 5
    script = SCRIPT.replace("webfill.fill(", "import asyncio\nasyncio.run(asyncio.to_thread(webfill.fill, ").replace(")\nprint", "))\nprint")
    process = start(site, script)
    wait_for("a page is held", lambda: len(site.asked) > 5)
    os.killpg(process.pid, signal.SIGINT)
    let_interrupt_arrive()
    site.answers = 10**9
    _, said = process.communicate(timeout=90)
    assert said.rstrip().endswith(b"KeyboardInterrupt") and process.returncode != 0, said
    assert len(site.asked) < 2 * made_site.BOOKS
    assert_resumed(site, "an interrupt")


def test_errors_have_sentence_and_code(tmp_path):
    with pytest.raises(webfill.UsageError) as caught:
        webfill.fill(tmp_path / "none.csv")
    assert caught.value.exit_code == 2 and "No such file" in caught.value.message
    with pytest.raises(webfill.UsageError, match="invalid value '3' for '--precision"):
        webfill.fill([{"url": "http://a.example/"}], precision=3, folder=tmp_path)
    with pytest.raises(webfill.UsageError, match="contact"):
        webfill.fill([{"url": f"http://a.example/{number}", "name": None} for number in range(3)], folder=tmp_path)
    with pytest.raises(webfill.UsageError, match="no column is named `a`"):
        webfill.fill([{"url": "http://a.example/"}], keep=["a,b"], folder=tmp_path)
