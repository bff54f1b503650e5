"""Whatever speaks Arrow goes in, and comes out with the same types and every value."""

import csv
import io
import os
import pickle
import threading
import time
from pathlib import Path

import duckdb
import made_site
import numpy
import pandas
import polars
import pyarrow
import pytest
import webfill


def assert_true(rows):
    for book, row in enumerate(rows):
        for name, value in {**made_site.rows()[book], **made_site.truth(book)}.items():
            assert row[name] == value, (book, name)


def table():
    return pyarrow.Table.from_pylist(made_site.rows())


def test_pyarrow(site):
    done = webfill.fill(table(), **site.options())
    assert_true(done.to_dicts())
    stream = pyarrow.RecordBatchReader.from_stream(done)
    assert stream.schema.equals(table().schema, check_metadata=True)
    assert_true(stream.read_all().to_pylist())
    evidence = pyarrow.table(pyarrow.RecordBatchReader.from_stream(done.evidence).read_all())
    assert set(evidence["state"].to_pylist()) == {"filled", "known"}
    assert done.report.exists()


def test_a_record_batch_which_is_one_arrow_array(site):
    class Array:
        def __init__(self, batch):
            self.batch = batch

        def __arrow_c_array__(self, requested_schema=None):
            return self.batch.__arrow_c_array__(requested_schema)

    batch = table().to_batches()[0]
    assert_true(webfill.fill(batch, name="a", **site.options()).to_dicts())
    assert_true(webfill.fill(Array(batch), name="a", **site.options()).to_dicts())


def test_polars(site):
    frame = polars.DataFrame(made_site.rows())
    done = webfill.fill(frame, **site.options())
    assert done.to_polars().schema == frame.schema
    assert polars.DataFrame(done).schema == frame.schema
    assert polars.DataFrame(done.evidence).schema["chain"] == polars.String
    assert polars.scan_parquet(done.evidence.path).select("confidence").collect().height == len(done.evidence.to_dicts())
    assert_true(done.to_polars().with_columns(polars.col("seen").dt.convert_time_zone("UTC")).to_dicts())


def test_duckdb(site):
    arrow = table()
    relation = duckdb.sql("SELECT * FROM arrow")
    done = webfill.fill(relation, **site.options())
    filled = duckdb.sql("SELECT * FROM done")
    assert (filled.columns, filled.types) == (relation.columns, relation.types)
    assert_true(done.to_dicts())
    # The file can be queried in place, like any other.
    states = duckdb.sql(f"SELECT DISTINCT state FROM '{done.evidence.path}' ORDER BY state").fetchall()
    assert states == [("filled",), ("known",)]


def test_pandas_with_its_index_and_dtypes(site):
    frame = pandas.DataFrame(made_site.rows()).set_index("id")
    frame["pages"] = frame["pages"].astype("Int64")
    frame["shelf"] = pandas.Categorical(["a", "b", "c"] * 16)
    before = frame.copy()
    done = webfill.fill(frame, **site.options(keep=["note", "shelf"]))
    pandas.testing.assert_frame_equal(frame, before)
    filled = done.to_pandas()
    assert (filled.dtypes == frame.dtypes).all()
    assert filled.index.equals(frame.index) and filled.index.name == "id"
    assert list(filled["pages"]) == [made_site.truth(book)["pages"] for book in range(48)]
    assert list(filled["tags"]) == [made_site.truth(book)["tags"] for book in range(48)]
    pandas.testing.assert_series_equal(filled["note"], frame["note"])
    pandas.testing.assert_series_equal(filled["shelf"], frame["shelf"])
    # A nightly refresh requests nothing that is stored.
    asked = len(site.asked)
    again = webfill.fill(filled, **site.options(keep=["note", "shelf"])).to_pandas()
    pandas.testing.assert_frame_equal(again, filled)
    assert len(site.asked) == asked


def test_a_file_is_completed_where_it_is(site):
    frame = pandas.DataFrame(made_site.rows()).drop(columns="tags")
    frame.to_csv("books.csv.gz", index=False)
    frame.to_csv("books2.csv", index=False)
    done = webfill.fill(Path("books2.csv"), **site.options())
    assert done.path == Path("books2.filled.csv").absolute()
    assert done.to_pandas()["title"].tolist() == [made_site.truth(book)["title"] for book in range(48)]
    assert webfill.fill("books.csv.gz", **site.options()).path == Path("books.filled.csv.gz").absolute()


def test_a_refresh_requests_what_is_older(site):
    frame = polars.DataFrame(made_site.rows())
    filled = webfill.fill(frame, **site.options()).to_polars()
    assert len(site.asked) == 48
    # A measured wait: after it, the pages are older than a second.
    time.sleep(1.1)
    assert webfill.fill(frame, **site.options(refresh_after="1s")).to_polars().equals(filled)
    assert len(site.asked) == 96


def test_gaps_of_rows_without_links_are_counted(site):
    rows = made_site.rows()
    for row in rows[::7]:
        row["link"] = None
    done = webfill.fill(rows, **site.options())
    assert "99 of 115 gaps filled" in repr(done) and "99 of 115 gaps filled" in done._repr_html_()
    assert "<li>16 no link</li>" in done._repr_html_()


def test_other_columns_are_another_table(site):
    rows = made_site.rows()
    first = webfill.fill(rows, **site.options())
    second = webfill.fill([{key: row[key] for key in ("id", "link", "note", "title")} for row in rows], **site.options())
    assert first.path != second.path and os.path.exists(first.path)


def test_what_is_no_table_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TypeError, match="a int is no table"):
        webfill.fill(3)
    with pytest.raises(TypeError, match="a value of the type object"):
        webfill.fill([{"url": object()}])
    with pytest.raises(TypeError, match="something else than dicts"):
        webfill.fill([3])
    with pytest.raises(TypeError, match="a bytes is no table"):
        webfill.fill(b"books.csv")
    with pytest.raises(TypeError, match="the name of a table is a text, not 3"):
        webfill.fill([{"url": "http://a.example/"}], name=3)
    for folder in (".", tmp_path):
        with pytest.raises(webfill.UsageError, match="cannot read .*(folder|directory)"):
            webfill.fill(folder)


def test_pandas_keeps_what_fills_a_categorical_column_and_integers_beside_gaps(site):
    frame = pandas.DataFrame(made_site.rows())
    frame["title"] = frame["title"].astype("category")
    pages = [None if value != value else int(value) for value in frame["pages"]]
    frame["pages"] = pandas.Series(pages, dtype=object)
    # The page does not exist, so the gap stays.
    gap = pages.index(None)
    frame.loc[gap, "link"] = "http://shelf.example/book/1"
    filled = webfill.fill(frame, **site.options()).to_pandas()
    others = [book for book in range(48) if book != gap]
    assert filled["title"].dtype == "category" and filled["pages"].dtype == object
    assert [filled["title"][book] for book in others] == [made_site.truth(book)["title"] for book in others]
    values = [filled["pages"][book] for book in others]
    assert values == [made_site.truth(book)["pages"] for book in others] and {type(value) for value in values} == {int}


def test_lists_of_dicts_of_pandas(site):
    records = pandas.DataFrame(made_site.rows()).to_dict("records")
    for book, record in enumerate(records):
        record["seen"] = pandas.Timestamp(record["seen"]) if record["seen"] is not None else pandas.NaT
        record["tags"] = numpy.array(record["tags"]) if isinstance(record["tags"], list) else None
        if book > 3:
            record["shelf"] = f"s{book}"
    done = webfill.fill(records, **site.options(keep=["note", "shelf"]))
    rows = done.to_dicts()
    assert [row["seen"] for row in rows] == [made_site.truth(book)["seen"] for book in range(48)]
    assert [list(row["tags"]) for row in rows] == [made_site.truth(book)["tags"] for book in range(48)]
    plain = [{**row, "shelf": "s"} if book > 3 else row for book, row in enumerate(made_site.rows())]
    plain = webfill.fill(plain, name="b", **site.options(keep=["note", "shelf"]))
    assert "shelf" in plain.to_arrow().column_names and "shelf" in plain.to_polars().columns
    assert polars.DataFrame(plain.doubts).columns[:3] == ["row", "id", "column"]
    for _ in range(3):
        polars.DataFrame(plain)
    assert not plain._sources


def test_a_later_call_for_another_table_does_not_replace_a_result_unseen(site):
    rows = made_site.rows()
    first = webfill.fill(rows[:24], **site.options())
    titles = [row["title"] for row in first.to_dicts()]
    # The same table again is no other one.
    assert webfill.fill(rows[:24], **site.options()).complete and first.to_dicts()[0]["title"] == titles[0]
    second = webfill.fill(rows[24:], **site.options())
    assert second.to_dicts()[0]["title"] == made_site.truth(24)["title"]
    for read in (first.to_dicts, first.to_arrow, first.to_pandas, first.to_polars, first.__arrow_c_stream__,
                 first.evidence.to_dicts, first.doubts.to_polars):
        with pytest.raises(webfill.WebfillError, match="is another table now.*a `name` of its own"):
            read()
    frames = [webfill.fill(pandas.DataFrame(rows[part]), name=f"part {part.start}", **site.options())
              for part in (slice(0, 24), slice(24, 48))]
    assert [title for done in frames for title in done.to_pandas()["title"]] == [
        made_site.truth(book)["title"] for book in range(48)
    ]


@pytest.mark.parametrize("kind", [list, pandas.DataFrame, polars.DataFrame, pyarrow.Table.from_pylist])
def test_a_result_can_be_passed_between_processes(site, kind):
    done = webfill.fill(kind(made_site.rows()), **site.options())
    assert (done.summary["all"]["filled"], done.complete) == (115, True)
    passed = pickle.loads(pickle.dumps(done))
    assert passed.to_dicts() == done.to_dicts() and passed.summary == done.summary
    assert passed.to_pandas().equals(done.to_pandas()) and passed.evidence.to_dicts() == done.evidence.to_dicts()


def test_two_calls_at_once(site):
    rows = made_site.rows()
    site.answers = 3
    results = {}

    def fill(number, rows, **others):
        try:
            results[number] = webfill.fill(rows, **site.options(**others))
        except webfill.WebfillError as error:
            results[number] = error

    threads = [threading.Thread(target=fill, args=(0, rows[:24]))]
    threads[0].start()
    while len(site.asked) <= 3:
        time.sleep(0.02)
    # The table of the first call is not replaced under it.
    fill(1, rows[24:])
    assert "is in use by another call" in results[1].message and results[1].exit_code == 1, results[1]
    threads.append(threading.Thread(target=fill, args=(2, rows[24:]), kwargs={"name": "other"}))
    threads[1].start()
    site.answers = 10**9
    for thread in threads:
        thread.join()
    filled = results[0].to_dicts() + results[2].to_dicts()
    assert [row["title"] for row in filled] == [made_site.truth(book)["title"] for book in range(48)]


def test_a_process_that_is_forked_meanwhile_does_not_keep_the_table(site):
    end, start = os.pipe()
    children = []

    def fork(event):
        if not children:
            child = os.fork()
            if child == 0:
                os.close(start)
                os.read(end, 1)
                os._exit(0)
            children.append(child)

    try:
        for progress in (fork, False):
            assert webfill.fill(made_site.rows(), **site.options(progress=progress)).complete
    finally:
        os.close(start)
        os.waitpid(children[0], 0)
        os.close(end)


@pytest.mark.parametrize("error", [None, Path], ids=["none", "an object that is no file"])
def test_a_service_may_have_no_standard_error(site, monkeypatch, error):
    monkeypatch.setattr("sys.stderr", error)
    assert webfill.fill(made_site.rows(), **site.options(progress=None)).complete


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(webfill.UsageError, match="cannot write the table into .*file.*: choose another `folder`") as caught:
        webfill.fill([{"url": "http://a.example/", "name": None}], folder=tmp_path / "file")
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("name", ["-books.csv", "B\u00fccher 'n\" 1.CSV", "Books.Parquet", "-b/--c.jsonl"])
def test_names_of_files_are_no_options_and_endings_may_be_in_capitals(site, name):
    frame = pandas.DataFrame(made_site.rows()).drop(columns="tags")
    Path(name).parent.mkdir(exist_ok=True)
    if name.endswith("Parquet"):
        frame.to_parquet(name)
    elif name.endswith("jsonl"):
        frame.astype(str).to_json(name, orient="records", lines=True)
    else:
        frame.to_csv(name, index=False)
    done = webfill.fill(name, **site.options())
    assert done.to_dicts()[1]["title"] and done.to_polars().height == 48 and done.evidence.to_dicts()


def test_a_file_that_is_compressed_with_zstd(site):
    text = pandas.DataFrame(made_site.rows()).drop(columns="tags").to_csv(index=False)
    with pyarrow.CompressedOutputStream("books.csv.zst", "zstd") as file:
        file.write(text.encode())
    done = webfill.fill("books.csv.zst", **site.options())
    assert done.path == Path("books.filled.csv.zst").absolute()
    assert [row["title"] for row in done.to_dicts()] == [made_site.truth(book)["title"] for book in range(48)]


def test_results_are_read_where_they_are_though_the_working_folder_changes(site, tmp_path, monkeypatch):
    rows = made_site.rows()
    frame = pandas.DataFrame(rows)
    frame.drop(columns="tags").to_csv("books.csv", index=False)
    (tmp_path / "elsewhere").mkdir()
    for table in (rows, frame, "books.csv"):
        monkeypatch.chdir(tmp_path)
        done = webfill.fill(table, **site.options())
        monkeypatch.chdir(tmp_path / "elsewhere")
        assert done.to_dicts()[1]["title"] == made_site.truth(1)["title"]
        assert done.to_pandas()["title"].notna().all() and done.evidence.to_dicts() and not done.doubts.to_dicts()
        assert all(path.is_file() for path in (done.path, done.report, done.doubts.path, done.evidence.path))
        # The output of the program names files as they were given.
        assert str(tmp_path) not in done.text


def test_columns_are_named_as_pandas_names_them(site):
    frame = pandas.DataFrame(made_site.rows()).rename(columns={"title": 7, "price": "price, in EUR"})
    titles = [made_site.truth(book)["title"] for book in range(48)]
    filled = webfill.fill(frame, **site.options(fields=[7, "price, in EUR"], id="id")).to_pandas()
    assert list(filled[7]) == titles and filled["pages"].isna().any()
    assert list(filled["price, in EUR"]) == [made_site.truth(book)["price"] for book in range(48)]
    assert list(webfill.fill(frame, **site.options(fields=7)).to_pandas()[7]) == titles
    frame = pandas.DataFrame(made_site.rows())
    frame.columns = pandas.MultiIndex.from_product([["a"], frame.columns])
    options = site.options(fields=[("a", "title")], keep=[("a", "note"), ("a", "tags")], url=[("a", "link")])
    filled = webfill.fill(frame, **options).to_pandas()
    assert filled.columns.equals(frame.columns) and list(filled[("a", "title")]) == titles


def test_more_columns_can_be_filled_later(site):
    frame = pandas.DataFrame(made_site.rows())
    first = webfill.fill(frame, **site.options(fields="title")).to_pandas()
    assert first["title"].notna().all() and first["pages"].isna().any()
    assert_true(webfill.fill(frame, **site.options()).to_arrow().to_pylist())
    assert len(site.asked) == 48


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"sample": 2.5}, "'2.5' for '--sample <N>': not a whole number from 2 to 400"),
        ({"sample": -3}, "'-3' for '--sample <N>': not a whole number from 2 to 400"),
        ({"workers": "many"}, "'many' for '--workers <N>': not a whole number from 1 to 999"),
        ({"precision": 1}, "'1' for '--precision <SHARE>': not a share from 0.5 to below 1"),
        ({"url": "title"}, "the column `title` has no links"),
        ({"url": 3}, "no column is named `3`"),
        ({"fields": ["title", "note"]}, "the column `note` is in --fields and in --keep"),
    ],
    ids=str,
)
def test_a_wrong_argument_is_refused_with_what_is_allowed(site, given, sentence):
    with pytest.raises(webfill.UsageError) as caught:
        webfill.fill(pandas.DataFrame(made_site.rows()), **site.options(**given))
    assert sentence in caught.value.message and caught.value.exit_code == 2
    assert not site.asked


async def awaited(event):
    """Nothing awaits a callback."""


@pytest.mark.parametrize("progress", ["yes", 3, [], awaited], ids=["text", "number", "list", "coroutine"])
def test_progress_is_a_flag_or_a_plain_callable(tmp_path, progress):
    with pytest.raises(TypeError, match="progress"):
        webfill.fill([{"url": "http://a.example/"}], folder=tmp_path, progress=progress)


COMMAS = ["id, or so, or, not", "link", "title", "pages", "price, in, some, currency", "published", "seen", "note"]
UNUSUAL = {
    "no header": {"header": None},
    "semicolons below commas": {"header": COMMAS, "delimiter": ";"},
    "commas below semicolons": {"header": [name.replace(",", ";") for name in COMMAS]},
    "backslashes": {"doublequote": False, "escapechar": "\\", "quoting": csv.QUOTE_ALL},
    "carriage returns": {"lineterminator": "\r"},
    "UTF-16 without a mark": {"encoding": "utf-16-le"},
    "UTF-16, semicolons, Windows": {"encoding": "utf-16", "delimiter": ";", "lineterminator": "\r\n"},
    "a blank line first": {"edit": lambda text: "\n" + text},
    "lines above the header": {"edit": lambda text: "Books of 2026\n\n\"Source: the library, as of May\"\n" + text},
    "blank lines": {"edit": lambda text: text.replace("\nb", "\n\nb")},
    "quotes that are no quotes": {"delimiter": "\t", "edit": lambda text: text.replace('""', "''").replace('"', "").replace("''", '"')},
    "rows with more cells": {"edit": lambda text: text.replace(",mine\n", ",mine,and,more\n")},
    "rows with fewer cells": {"edit": lambda text: text.replace(",mine\n", "\n")},
    "a name twice": {"header": ["id", "link", "title", "pages", "price", "published", "note", "note"]},
    "a line for spreadsheets": {"delimiter": "^", "edit": lambda text: "sep=^\n" + text},
    "a cell of a megabyte": {"edit": lambda text: text.replace(",mine\n", f",{'x' * 1_000_000}\n", 1)},
}


@pytest.mark.parametrize("kind", UNUSUAL)
def test_a_file_is_read_as_the_program_reads_it(site, kind):
    dialect = {"lineterminator": "\n", **UNUSUAL[kind]}
    header, edit, encoding = (dialect.pop(name, default) for name, default in
                              [("header", list(made_site.rows()[0])), ("edit", str), ("encoding", "utf-8")])
    rows = [{name: value for name, value in row.items() if name != "tags"} for row in made_site.rows()]
    for row in rows[::7]:
        row["note"] = 'a "b" c'
    file = io.StringIO(newline="")
    writer = csv.writer(file, **dialect)
    if header is not None:
        writer.writerow([name for name in header if name != "tags"])
    writer.writerows([["" if value is None else str(value) for value in row.values()] for row in rows])
    Path("books.csv").write_bytes(edit(file.getvalue()).encode(encoding))
    done = webfill.fill("books.csv", **site.options(keep=None, fields="column3" if header is None else "title"))
    read = done.to_dicts()
    if "cells" in kind:
        # The program leaves such rows as they are.
        assert [row["id"] for row in read] == [row["id"] for row in rows]
        read, rows = ([row for row, given in zip(some, made_site.rows()) if given["note"] != "mine"] for some in (read, rows))
    titles = [list(row.values())[2] for row in read]
    assert titles == [made_site.truth(int(row["id"][1:]))["title"] for row in rows], done.text
    assert [list(row.values())[0] for row in read] == [row["id"] for row in rows]
    if "a cell" not in kind and "name" not in kind:
        assert [list(row.values())[7] for row in read] == [row["note"] or "" for row in rows]
    assert done.to_polars().height == 48 and done.to_arrow().num_rows == 48
    assert done.to_polars().columns == done.to_arrow().column_names == list(read[0])


@pytest.mark.parametrize(("name", "encoding"), [("b.csv.gz", "utf-8"), ("b.csv", "utf-16"), ("c.csv", "cp1252")])
def test_files_are_read_as_they_were_given(site, name, encoding):
    frame = pandas.DataFrame(made_site.rows()).drop(columns="tags")
    frame.loc[0, "note"] = "caf\u00e9"
    frame.to_csv(name, index=False, encoding=encoding)
    rows = webfill.fill(name, **site.options()).to_dicts()
    assert [row["title"] for row in rows] == [made_site.truth(book)["title"] for book in range(48)]
    assert rows[0]["note"] == "caf\u00e9"
