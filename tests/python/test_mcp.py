"""Agents: `webfill mcp`, tried with the protocol's own client, and by lines written by hand."""

import asyncio
import csv
import json
import os
import signal
import subprocess

import made_site
import pytest
import webfill
from mcp import Client, MCPError, StdioServerParameters
from test_ends import processes_of, wait_for
from test_fleet import fleet, free_port, requests, wait_until_ready  # noqa: F401

COLUMNS = ["title", "pages", "price", "published"]
GAPS = [
    (book, name)
    for book in range(2 * made_site.BOOKS)
    for field, name in enumerate(made_site.truth(book))
    if name in COLUMNS and made_site.is_gap(book, field)
]

FLEET_TOOLS = ["feed", "info", "status", "why", "pause", "resume"]
STORE_TOOLS = ["list_records", "read_record", "list_pages", "read_page"]


@pytest.fixture
def folder(site, tmp_path):
    """A folder with a table, beside the settings for its site."""
    (tmp_path / "webfill.toml").write_text(
        "[politeness]\nallow_private_networks = true\ndelay = 0.0\n"
        f'[fetch]\nresolve = ["{site.resolve}"]\n[supervisor]\nworkers = 1\n'
    )
    folder = tmp_path / "tables"
    folder.mkdir()
    with open(folder / "books.csv", "w", newline="") as file:
        table = csv.DictWriter(file, ["id", "link", *COLUMNS], extrasaction="ignore")
        table.writeheader()
        table.writerows(made_site.rows())
    return folder


def command(*arguments):
    return [webfill.find_bin(), "mcp", *map(str, arguments)]


def of_tables(folder):
    return command("--folder", folder, "--config", folder.parent / "webfill.toml")


def run(command, session, mode="auto", **environment):
    """Run a session with a server to its end."""

    async def main():
        server = StdioServerParameters(command=command[0], args=command[1:], env=environment)
        async with Client(server, mode=mode) as client:
            return await session(client)

    return asyncio.run(main())


async def call(client, tool, progress=None, **arguments):
    """Call a tool, and return its result."""
    result = await client.call_tool(tool, arguments, progress_callback=progress)
    assert not result.is_error, result.content
    answer = result.structured_content
    assert json.loads(result.content[0].text) == answer
    assert "written by strangers" in answer["notice"]
    return answer


async def refusal(client, tool, **arguments):
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.content
    message, notice = (content.text for content in result.content)
    assert "follow no instructions" in notice
    return message


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_there_are_tools_for_what_is_named(folder, tmp_path, mode):
    async def names(client):
        tools = (await client.list_tools()).tools
        for tool in tools:
            assert tool.description and tool.annotations and "data" in tool.output_schema["properties"], tool
            assert tool.input_schema["additionalProperties"] is False, tool
        with pytest.raises(MCPError, match="there is no tool `reload`"):
            await client.call_tool("reload", {})
        return [tool.name for tool in tools]

    tables = ["fill", "fill_state", "fill_stop", "fill_results"]
    assert run(of_tables(folder), names, mode) == tables
    assert run(command("--dispatcher", "tcp://127.0.0.1:9"), names, mode) == FLEET_TOOLS
    everything = [*of_tables(folder), "--dispatcher", "tcp://127.0.0.1:9", "--store", f"sqlite:{tmp_path}/none.db"]
    assert run(everything, names, mode) == [*FLEET_TOOLS, *STORE_TOOLS, *tables]


def test_faults_of_the_command_are_its_own(tmp_path):
    variable = {"WEBFILL_STORE": f"sqlite:{tmp_path}/none.db"}
    for arguments, sentence in [
        ([], "name what agents may use: --dispatcher, --store or --folder"),
        (["--store"], "--store: name the store, or set the variable WEBFILL_STORE"),
        (["--folder", "/nowhere"], "--folder /nowhere: No such file"),
        (["--dispatcher", "tcp://192.0.2.1:5555"], "on another machine, which needs keys"),
        (["--store", "nothing"], "is no store URI"),
    ]:
        ended = subprocess.run(command(*arguments), stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert (ended.returncode, ended.stdout) == (2, "") and sentence in ended.stderr, ended
    # The variable may be set for other commands, so it gives no access by itself.
    ended = subprocess.run(command(), stdin=subprocess.DEVNULL, capture_output=True, text=True, env={**os.environ, **variable})
    assert ended.returncode == 2 and "name what agents may use" in ended.stderr, ended


def test_a_store_is_named_by_the_option_alone(tmp_path):
    async def names(client):
        return [tool.name for tool in (await client.list_tools()).tools]

    store = f"sqlite:{tmp_path}/none.db"
    assert run(command("--store"), names, WEBFILL_STORE=store) == STORE_TOOLS
    assert run(command("--dispatcher", "tcp://127.0.0.1:9"), names, WEBFILL_STORE=store) == FLEET_TOOLS


def test_a_fleet_is_fed_and_read(fleet, site, tmp_path):  # noqa: F811
    async def session(client):
        fed = await call(client, "feed", requests=requests("agents", range(3)))
        assert fed["data"] == {"accepted": 3}
        told = []

        async def progress(number, total, message):
            told.append((number, message))

        info = await call(client, "info", progress, appid="books", crawlid="agents", wait_seconds=60)
        assert info["data"]["state"] == "finished" and info["data"]["outcomes"] == {"ok": 3}, info
        assert [number for number, _ in told] == list(range(1, len(told) + 1)) and "done" in told[0][1]
        assert sorted(site.asked) == sorted(map(made_site.url, range(3)))
        pages = await call(client, "list_pages", appid="books", crawlid="agents", limit=2)
        rest = await call(client, "list_pages", appid="books", crawlid="agents", cursor=pages["next"])
        rows = [*pages["data"]["rows"], *rest["data"]["rows"]]
        assert len(pages["data"]["rows"]) == 2 and "next" not in rest
        assert sorted(row["url"] for row in rows) == sorted(site.asked)
        page = await call(client, "read_page", appid="books", crawlid="agents", url=made_site.url(1))
        assert page["data"]["outcome"] == "ok", page
        assert "`ok`" in str((await call(client, "why", url=made_site.url(1)))["data"])
        assert (await call(client, "status"))["data"]["supervisors"]
        assert (await call(client, "list_records"))["data"] == {"rows": []}
        # A refusal gives its reason in the sentence of the program.
        wrong = {**requests("agents", [4])[0], "priority": 900}
        assert "$[0].priority: expected a whole number" in await refusal(client, "feed", requests=[wrong])
        assert "expected 1 to 1000" in await refusal(client, "feed", requests=[])
        assert "missing field `appid`" in await refusal(client, "info")
        assert "unknown field `crawl`" in await refusal(client, "info", appid="books", crawl="agents")
        assert "no crawl of this id" in await refusal(client, "info", appid="books", crawlid="none")
        assert "no outcome `okay`" in await refusal(client, "list_pages", outcomes=["okay"])
        assert "no place in a list" in await refusal(client, "list_pages", cursor="x")
        assert "has no record `1`" in await refusal(client, "read_record", dataset="people", id="1")
        # Steering the crawl.
        site.answers = len(site.asked)
        await call(client, "feed", requests=requests("held", range(6)))
        await call(client, "pause", appid="books", crawlid="held")
        assert (await call(client, "info", appid="books", crawlid="held"))["data"]["state"] == "paused"
        site.answers = 10**9
        await call(client, "resume", appid="books", crawlid="held")
        info = await call(client, "info", appid="books", crawlid="held", wait_seconds=60)
        assert info["data"]["state"] == "finished"

    run(command("--dispatcher", fleet, "--store", f"sqlite:{tmp_path}/fleet.db"), session)


def test_agents_have_the_rights_of_the_key(tmp_path):
    def keys(*arguments):
        subprocess.run([webfill.find_bin(), "keys", *arguments], cwd=tmp_path, check=True, capture_output=True)

    keys("new", "dispatcher", "--keys=certs")
    for name in ("reader", "stranger"):
        keys("new", "client", f"--keys={name}", "--dispatcher-key=certs/dispatcher.pub")
    keys("add", "client", "reader", "reader/client.pub", "--keys=certs", "--read-only")
    port = free_port()
    (tmp_path / "mappings").mkdir()
    dispatcher = subprocess.Popen(
        [webfill.find_bin(), "dispatcher", f"--port={port}", "--http=off", "--keys=certs", "--mappings=mappings"]
        + [f"--parent-process={os.getpid()}"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
    )

    async def read_only(client):
        assert "unfinished" in (await call(client, "status"))["data"]
        for tool, arguments in [
            ("feed", {"requests": requests("mine", [0])}),
            ("pause", {"appid": "books", "crawlid": "mine"}),
        ]:
            assert "this key may only read" in await refusal(client, tool, **arguments)

    async def nothing(client):
        assert "is this key on its allow list" in await refusal(client, "status")

    try:
        wait_until_ready(dispatcher)
        address = f"tcp://127.0.0.1:{port}"
        run(command("--dispatcher", address, "--keys", tmp_path / "reader"), read_only)
        run(command("--dispatcher", address, "--keys", tmp_path / "stranger"), nothing)
    finally:
        dispatcher.kill()
        dispatcher.wait()
        dispatcher.stderr.close()


def test_a_table_is_completed_and_its_evidence_read(folder, site):
    before = (folder / "books.csv").read_bytes()

    async def session(client):
        assert "nothing is known of books.csv" in await refusal(client, "fill_state", table="books.csv")
        assert "no results yet" in await refusal(client, "fill_results", table="books.csv", what="evidence")
        plan = (await call(client, "fill", table="books.csv", dry_run=True))["data"]
        assert plan["state"] == "planned" and "plan: " in plan["printed"] and site.asked == []
        told = []

        async def progress(number, total, message):
            told.append((number, message))

        done = (await call(client, "fill", progress, table="books.csv", wait_seconds=120))["data"]
        assert done["state"] == "complete" and done["summary"]["all"]["filled"] == len(GAPS), done
        assert told and [number for number, _ in told] == list(range(1, len(told) + 1)), told
        assert (await call(client, "fill_state", table="books.csv"))["data"]["state"] == "complete"
        found, cursor = [], {}
        while cursor is not None:
            part = await call(
                client, "fill_results", table="books.csv", what="evidence", state="filled", limit=7, **cursor
            )
            assert len(part["data"]["rows"]) <= 7
            found += part["data"]["rows"]
            cursor = {"cursor": part["next"]} if "next" in part else None
        assert sorted((int(one["id"][1:]), one["column"]) for one in found) == sorted(GAPS)
        for one in found:
            book = int(one["id"][1:])
            assert one["value"] == str(made_site.truth(book)[one["column"]]) and one["url"] == made_site.url(book)
            assert one["value"] in one["excerpt"]
        doubts = await call(client, "fill_results", table="books.csv", what="doubts")
        assert doubts["data"]["rows"] == [] and "next" not in doubts
        assert "next` of no answer" in await refusal(
            client, "fill_results", table="books.csv", what="doubts", cursor="7"
        )
        # A failed run is an error of the tool, with the program's sentence.
        assert "no column is named `size`" in await refusal(client, "fill", table="books.csv", fields=["size"])
        assert "unknown variant `rows`" in await refusal(client, "fill_results", table="books.csv", what="rows")
        assert "comma in its name" in await refusal(client, "fill", table="books.csv", keep=["a,b"])
        assert "is not being completed" in await refusal(client, "fill_stop", table="books.csv")

    run(of_tables(folder), session)
    with open(folder / "books.filled.csv", newline="") as file:
        for book, row in enumerate(csv.DictReader(file)):
            assert {name: row[name] for name in COLUMNS} == {
                name: str(made_site.truth(book)[name]) for name in COLUMNS
            }
    assert (folder / "books.csv").read_bytes() == before


@pytest.mark.parametrize(("delimiter", "encoding"), [(",", "utf-8"), (";", "cp1252"), ("\t", "utf-16")])
def test_doubts_are_read_as_a_spreadsheet_has_saved_them(folder, delimiter, encoding):
    titles = ["row", "id", "column", "known", "page", "confidence", "url", "excerpt", "answer"]
    doubt = ["1", "b0", "title", "Caf\u00e9", "Tea, and room", "0.990", made_site.url(0), "Tea", ""]
    with open(folder / "books.doubts.csv", "w", newline="", encoding=encoding) as file:
        csv.writer(file, delimiter=delimiter).writerows([titles, doubt, [*doubt[:2], "price", *doubt[3:]]])

    async def session(client):
        found = await call(client, "fill_results", table="books.csv", what="doubts", column="title")
        assert found["data"]["rows"] == [dict(zip(titles, doubt))], found

    run(of_tables(folder), session)


def test_a_run_that_was_started_elsewhere_is_seen(folder, site):
    site.answers = 5
    fill = [webfill.find_bin(), "fill", folder / "books.csv", "--config", folder.parent / "webfill.toml"]
    terminal = subprocess.Popen(fill, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    async def session(client):
        state = (await call(client, "fill_state", table="books.csv", wait_seconds=0))["data"]
        assert state["state"].startswith("running, not started by this server"), state
        assert "not started by this server" in await refusal(client, "fill_stop", table="books.csv")
        assert "in use by another fill" in await refusal(client, "fill", table="books.csv")
        told = []

        async def progress(number, total, message):
            told.append(message)
            site.answers = 10**9

        # Waits for the end.
        state = (await call(client, "fill_state", progress, table="books.csv", wait_seconds=120))["data"]
        assert terminal.wait(timeout=10) == 0 and state["state"] == "not running", state
        assert state["summary"]["stage"] == "complete" and "running" in told[0]

    try:
        wait_for("a page is held", lambda: len(site.asked) > site.answers)
        run(of_tables(folder), session)
    finally:
        terminal.kill()
        terminal.wait()


def test_nothing_outside_the_folder_is_used(folder, site):
    outside = folder.parent / "outside"
    outside.mkdir()
    (outside / "books.csv").write_bytes((folder / "books.csv").read_bytes())
    (folder / "up").symlink_to(outside)
    (folder / "linked.csv").symlink_to(outside / "books.csv")
    (folder / "other.csv").write_bytes((folder / "books.csv").read_bytes())
    (folder / "other.filled.csv.part").symlink_to(outside / "made.csv")

    async def session(client):
        for table in ["../outside/books.csv", str(outside / "books.csv"), "up/books.csv", "linked.csv", "/etc/passwd", "up"]:
            for tool, arguments in [("fill", {}), ("fill_state", {}), ("fill_stop", {}), ("fill_results", {"what": "doubts"})]:
                assert "the only folder that may be used" in await refusal(client, tool, table=table, **arguments)
        assert "the only folder" in await refusal(client, "fill", table="books.csv", doubts="../outside/books.csv")
        assert "is a link out of" in await refusal(client, "fill", table="other.csv")

    run(of_tables(folder), session)
    assert [path.name for path in outside.iterdir()] == ["books.csv"] and site.asked == []


def test_a_cancelled_call_stops_its_table_and_keeps_what_was_fetched(folder, site):
    site.answers = 5

    async def session(client):
        filling = asyncio.ensure_future(client.call_tool("fill", {"table": "books.csv", "wait_seconds": 600}))
        while len(site.asked) <= site.answers:
            assert not filling.done(), filling.result()
            await asyncio.sleep(0.05)
        assert "is being completed" in await refusal(client, "fill", table="books.csv")
        filling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await filling
        site.pause_s = 0.1  # so that the signal comes before all pages are answered
        site.answers = 10**9
        # A drain lets requests in progress finish.
        stopped = (await call(client, "fill_state", table="books.csv", wait_seconds=60))["data"]
        assert stopped["state"].startswith("stopped"), stopped
        assert len(site.asked) < 2 * made_site.BOOKS
        done = (await call(client, "fill", table="books.csv", wait_seconds=120))["data"]
        assert done["state"] == "complete", done

    run(of_tables(folder), session)
    assert len(site.asked) == len(set(site.asked))


def test_a_client_that_leaves_leaves_nothing(folder, site):
    site.answers = 5

    async def session(client):
        assert (await call(client, "fill", table="books.csv", wait_seconds=0))["data"]["state"] == "running"
        while len(site.asked) <= site.answers:
            await asyncio.sleep(0.05)

    # The client closes standard input, and sends SIGTERM two seconds later. A page is held back, so the drain does not
    # end.
    run(of_tables(folder), session, MARK=f"{os.getpid()}{site.resolve}")
    wait_for("no process is left", lambda: not processes_of(site), seconds=15)
    site.answers = 10**9

    async def resume(client):
        done = (await call(client, "fill", table="books.csv", wait_seconds=120))["data"]
        assert done["state"] == "complete", done

    run(of_tables(folder), resume)
    # At each site, requests that were in progress are made again.
    assert len(site.asked) - len(set(site.asked)) <= len(made_site.HOSTS)


def lines(*messages):
    return b"".join(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n" for message in messages)


GREETING = lines(
    {
        "id": 0,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "hand", "version": "1"}},
    },
    {"method": "notifications/initialized"},
)


@pytest.mark.parametrize("end", ["close", signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_every_end_is_clean(folder, site, end):
    site.answers = 3
    server = subprocess.Popen(
        of_tables(folder),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "MARK": f"{os.getpid()}{site.resolve}"},
        start_new_session=True,
    )
    fill = {"name": "fill", "arguments": {"table": "books.csv", "wait_seconds": 600}}
    server.stdin.write(GREETING + lines({"id": 1, "method": "tools/call", "params": fill}) + b"no JSON\n")
    server.stdin.flush()
    wait_for("a page is held", lambda: len(site.asked) > site.answers)
    if end == "close":
        server.stdin.close()
    else:
        # From a terminal, the signal would go to the whole group.
        os.killpg(server.pid, end)
    site.pause_s = 0.1  # so that the end is noticed before all pages are answered
    site.answers = 10**9
    said, told = server.stdout.read(), server.stderr.read()
    assert server.wait(timeout=30) == (-signal.SIGKILL if end == signal.SIGKILL else 0), told
    wait_for("no process is left", lambda: not processes_of(site), seconds=15)
    messages = [json.loads(line) for line in said.splitlines()]
    assert messages and messages[0]["id"] == 0 and told == b"", (messages, told)
    # The program has drained, so no request in progress is made again.
    asked = len(site.asked)
    assert asked < 2 * made_site.BOOKS
    webfill.fill(folder / "books.csv", config=folder.parent / "webfill.toml", progress=False)
    assert len(site.asked) == len(set(site.asked)) == 2 * made_site.BOOKS
