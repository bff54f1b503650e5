"""Applications of a real fleet."""

import asyncio
import contextlib
import os
import random
import socket
import subprocess
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import made_site
import pytest
import webfill


def free_port():
    """The first of four free ports, below those that others are given."""
    while True:
        first = random.randrange(20_000, 30_000, 5)
        with contextlib.ExitStack() as held, contextlib.suppress(OSError):
            for port in range(first, first + 4):
                held.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first


def wait_until_ready(process):
    said = []
    while not said or said[-1] != b"ready\n":
        said.append(process.stderr.readline())
        assert said[-1], said


@pytest.fixture
def fleet(site, tmp_path):
    """The address of a dispatcher, which has one supervisor."""
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    (tmp_path / "mappings").mkdir()
    common = [f"--parent-process={os.getpid()}"]
    (tmp_path / "webfill.toml").write_text(
        f'mappings = "{tmp_path}/mappings"\nstore = "sqlite:{tmp_path}/fleet.db"\n'
        "[politeness]\nallow_private_networks = true\ndelay = 0.0\n"
        f'[fetch]\nresolve = ["{site.resolve}"]\n'
    )
    dispatcher = [f"--port={port}", "--http=off", f"--state={tmp_path}/dispatcher"]
    supervisor = [f"--dispatcher={address}", f"--state={tmp_path}/supervisor", "--workers=1"]
    started = [
        subprocess.Popen([webfill.find_bin(), role, "--config=webfill.toml", *arguments, *common], stderr=subprocess.PIPE)
        for role, arguments in (("dispatcher", dispatcher), ("supervisor", supervisor))
    ]
    try:
        for process in started:
            wait_until_ready(process)
        yield address
    finally:
        for process in started:
            process.kill()
            process.wait()
            process.stderr.close()


def requests(crawl, books):
    return [
        {"url": made_site.url(book), "appid": "books", "crawlid": crawl, "maxdepth": 0} for book in books
    ]


# A page that is fetched for crawls which show that a subscription has begun, because that has no answer.
PROBE = 40


@contextmanager
def probing(application):
    over = threading.Event()

    def probe():
        number = 0
        while not over.wait(0.3):
            application.feed(requests(f"probe{number}", [PROBE]))
            number += 1

    prober = threading.Thread(target=probe)
    prober.start()
    try:
        yield
    finally:
        over.set()
        prober.join()


def wait_until_finished(fleet, crawl):
    end = time.monotonic() + 60
    while fleet.info("books", crawl)["state"] != "finished":
        assert time.monotonic() < end, fleet.info("books", crawl)
        time.sleep(0.2)


def test_feed_follow_and_steer(fleet, site):
    application = webfill.Fleet(fleet)
    with application.follow("books") as messages:
        with probing(application):
            next(messages)
        assert application.feed(requests("one", range(3))) == webfill.Fed(3, {})
        results = []
        while len(results) < 3:
            message = next(messages)
            if message["crawlid"] == "one" and "url" in message:
                results.append(message["url"])
    assert sorted(results) == sorted(map(made_site.url, range(3)))
    wait_until_finished(application, "one")
    assert sorted(set(site.asked)) == sorted(map(made_site.url, [0, 1, 2, PROBE]))
    assert application.feed(requests("one", [1])[0]).skipped == {"duplicate": 1}
    with pytest.raises(webfill.RequestsRefusedError) as caught:
        application.feed([*requests("one", [3]), {**requests("one", [4])[0], "priority": 900}])
    error = caught.value
    assert error.accepted == 1 and error.path == "$.priority" and error.exit_code == 1
    assert [(index, path) for index, path, _ in error.refused] == [(1, "$.priority")]
    with pytest.raises(webfill.WebfillError) as caught:
        application.info("books", "none")
    assert "no crawl of this id" in caught.value.message
    wait_until_finished(application, "one")
    assert application.retry("books", "one", ["ok"])["total_requeued"] == 4
    assert application.status()
    stopped = application.stop("books", "one")
    assert "total_purged" in stopped
    with pytest.raises(webfill.RequestsRefusedError):
        application.feed(requests("one", [5]))


def test_the_same_by_asyncio(fleet, site):
    async def main():
        application = webfill.AsyncFleet(fleet)
        results = []

        async def follow():
            messages = application.follow("books")
            async for message in messages:
                results.append(message)
                if len(results) == 2:
                    await messages.aclose()
                    return

        following = asyncio.ensure_future(follow())
        with probing(webfill.Fleet(fleet)):
            await asyncio.wait_for(following, 60)
        assert [message["appid"] for message in results] == ["books", "books"]
        assert (await application.feed(requests("async", [0, 1]))).accepted == 2
        assert (await application.pause("books", "async"))["action"] == "pause"
        assert (await application.info("books", "async"))["crawlid"] == "async"
        await application.resume("books", "async")
        await application.retry("books", "async", ["timeout"])
        assert await application.status()
        await application.stop("books", "async")
        with pytest.raises(webfill.RequestsRefusedError):
            await application.feed(requests("async", [2]))

    asyncio.run(main())


def test_what_is_cancelled_ends_and_leaves_no_process():
    def children():
        return Path(f"/proc/self/task/{os.getpid()}/children").read_text()

    async def main():
        application = webfill.AsyncFleet("tcp://127.0.0.1:9")
        for waiting in (application.info("books"), application.follow("books").__anext__()):
            task = asyncio.ensure_future(waiting)
            while children() == before:
                await asyncio.sleep(0.01)
            assert not task.done()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert children() == before

    before = children()
    asyncio.run(asyncio.wait_for(main(), 60))


def test_keys_encrypt_and_decide_who_may_ask(tmp_path):
    def keys(*arguments):
        command = [webfill.find_bin(), "keys", *arguments]
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    keys("new", "dispatcher", "--keys=certs")
    keys("new", "client", "--keys=mine", "--dispatcher-key=certs/dispatcher.pub")
    keys("add", "client", "mine", "mine/client.pub", "--keys=certs")
    port = free_port()
    (tmp_path / "mappings").mkdir()
    command = [webfill.find_bin(), "dispatcher", f"--port={port}", "--http=off", "--keys=certs", "--mappings=mappings"]
    dispatcher = subprocess.Popen([*command, f"--parent-process={os.getpid()}"], cwd=tmp_path, stderr=subprocess.PIPE)
    try:
        wait_until_ready(dispatcher)
        address = f"tcp://127.0.0.1:{port}"
        application = webfill.Fleet(address, keys=tmp_path / "mine")
        assert application.feed(requests("keys", [0])).accepted == 1
        with pytest.raises(webfill.WebfillError, match="does it need --keys"):
            webfill.Fleet(address).info("books")
    finally:
        dispatcher.kill()
        dispatcher.wait()
        dispatcher.stderr.close()


def test_a_dispatcher_that_is_not_there():
    with pytest.raises(TypeError, match="a request is a dict, not 'h'"):
        webfill.Fleet("tcp://127.0.0.1:9").feed("http://a.example/")
    with pytest.raises(webfill.WebfillError, match="has not answered"):
        webfill.Fleet("tcp://127.0.0.1:9").info("books")
