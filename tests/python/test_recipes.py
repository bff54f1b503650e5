"""The recipes of docs/how-to/python.md, as they are written there."""

import asyncio
import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import duckdb
import made_site
import polars
import pytest
import webfill
from test_crawls import crawl

PAGE = (Path(__file__).parents[2] / "docs/how-to/python.md").read_text(encoding="utf-8")


def recipe(words):
    """The block of code that contains these words."""
    [code] = [code for code in re.findall(r"```(?:python|sql)\n(.*?)```", PAGE, re.S) if words in code]
    return code


def test_evidence_is_queried_in_place(site):
    polars.DataFrame(made_site.rows()).write_parquet("books.parquet")
    webfill.fill("books.parquet", **site.options())
    counts = dict(duckdb.sql(recipe("books.evidence.parquet")).fetchall())
    assert counts["title"] == sum(made_site.is_gap(book, 0) for book in range(2 * made_site.BOOKS)), counts


def test_cancelling_a_task_of_asyncio_drains_the_run_in_its_thread(site, monkeypatch):
    fill, errors = webfill.fill, []

    def fill_here(table, **given):
        try:
            return fill(table, **{**site.options(delay=0.05), **given, "contact": None})
        except BaseException as error:
            errors.append(error)
            raise

    monkeypatch.setattr(webfill, "fill", fill_here)
    names = {"webfill": webfill}
    exec(recipe("async def complete(table)"), names)

    async def main():
        site.answers = 5
        task = asyncio.ensure_future(names["complete"](made_site.rows()))
        while len(site.asked) <= 5:
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # The thread still runs, and its table is locked.
        assert not errors
        with pytest.raises(webfill.WebfillError, match="is in use by another call"):
            await names["complete"](made_site.rows())
        errors.clear()
        site.answers = 10**9

    asyncio.run(main())
    assert [type(error) for error in errors] == [asyncio.CancelledError]
    assert len(site.asked) < 2 * made_site.BOOKS
    assert asyncio.run(names["complete"](made_site.rows())).complete
    assert len(site.asked) == len(set(site.asked)) == 2 * made_site.BOOKS


def test_a_table_is_refreshed_every_night(site, monkeypatch):
    polars.DataFrame(made_site.rows()).write_parquet("books.parquet")
    fill = webfill.fill
    monkeypatch.setattr(webfill, "fill", lambda table, **given: fill(table, **{**site.options(), **given}))
    results = []
    for _ in range(2):
        names = {"webfill": webfill}
        exec(recipe("refresh_after="), names)
        results.append(names["done"].to_polars())
    assert results[0].equals(results[1]) and results[0]["title"].null_count() == 0
    # The second night requests nothing that is younger than a week.
    assert len(site.asked) == 2 * made_site.BOOKS


@pytest.mark.skipif(find_spec("prefect") is None, reason="Prefect, a hundred packages, is not installed: pip install prefect")
def test_a_task_of_prefect_is_attempted_again_unless_an_argument_is_wrong(site, monkeypatch, tmp_path):
    for name, value in {
        "PREFECT_HOME": str(tmp_path / "prefect"),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    }.items():
        monkeypatch.setenv(name, value)
    fill, failures, calls = webfill.fill, [None], []

    def attempt(table, **given):
        calls.append(table)
        failure = failures.pop() if failures else None
        if failure is not None:
            raise failure
        return fill(table, **{**site.options(), **given, "contact": None})

    monkeypatch.setattr(webfill, "fill", attempt)
    names = {}
    exec(recipe("from prefect import").replace("3600", "0"), names)
    with pytest.raises(webfill.UsageError, match="No such file"):
        names["nightly"]()
    assert len(calls) == 1
    polars.DataFrame(made_site.rows()).write_parquet("books.parquet")
    failures.extend([webfill.WebfillError("a site is down", exit_code=1)] * 2)
    names["nightly"]()
    assert len(calls) == 4 and polars.read_parquet("books.filled.parquet")["title"].null_count() == 0


AIRFLOW = """
import json, sys
import webfill

recipe, options, table = sys.argv[1], json.loads(sys.argv[2]), "books.parquet"
fill, calls = webfill.fill, []

def attempt(table, **given):
    calls.append(table)
    return fill(table, **{**given, **options, "contact": None})

webfill.fill = attempt
names = {}
exec(compile(open(recipe).read(), recipe, "exec"), names)
run = names["dag"].test()
print(json.dumps({"states": {one.task_id: str(one.state) for one in run.get_task_instances()}, "calls": calls}))
"""


@pytest.mark.skipif(find_spec("airflow") is None, reason="Airflow, 150 packages, is not installed: pip install apache-airflow")
def test_a_task_of_airflow_fails_at_once_where_an_argument_is_wrong(site, tmp_path):
    home = tmp_path / "airflow"
    (home / "dags").mkdir(parents=True)
    environment = {
        **os.environ,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
    }
    file = home / "dags" / "books.py"
    file.write_text(recipe("from airflow").replace("\nbooks()\n", "\ndag = books()\n"))

    def run():
        command = [sys.executable, "-c", AIRFLOW, file, json.dumps(site.options())]
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)
        assert ended.returncode == 0, ended.stderr[-4000:]
        return json.loads(ended.stdout.strip().splitlines()[-1])

    migrated = subprocess.run([sys.executable, "-m", "airflow", "db", "migrate"], env=environment, capture_output=True, text=True)
    assert migrated.returncode == 0, migrated.stderr[-4000:]
    # The table is not there, which another attempt would not change.
    assert run() == {"states": {"complete": "failed"}, "calls": ["books.parquet"]}
    polars.DataFrame(made_site.rows()).write_parquet("books.parquet")
    assert run() == {"states": {"complete": "success"}, "calls": ["books.parquet"]}
    assert polars.read_parquet("books.filled.parquet")["title"].null_count() == 0


def a_store(site, path):
    store = crawl(site, path, dataset="people").store
    Path("books.db").rename("webfill.db")
    return store


def test_a_store_is_queried(site, tmp_path):
    a_store(site, tmp_path)
    code = recipe("records(dataset=").replace("SELECT city", "found = duckdb.sql(\"SELECT title").replace("duckdb.sql(\"found", "found")
    names = {"webfill": webfill, "duckdb": duckdb}
    exec(code, names)
    assert sorted(names["found"].fetchall()) == sorted((made_site.truth(book)["title"], 1) for book in range(4))


# The extension as a package, which exists for some versions of DuckDB.
EXTENSION = find_spec("duckdb_extension_sqlite_scanner")


@pytest.mark.skipif(EXTENSION is None, reason="DuckDB's extension sqlite is not installed")
def test_a_store_is_queried_in_place(site, tmp_path):
    a_store(site, tmp_path)
    connection = duckdb.connect()
    [file] = Path(EXTENSION.origin).parent.glob("extensions/*/*.duckdb_extension")
    connection.execute(f"LOAD '{file}'")
    assert connection.sql(recipe("TYPE sqlite")).fetchall() == [("ok", 4)]
