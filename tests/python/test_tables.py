"""Whatever speaks Arrow goes in, and comes out with the same types and every value."""

import os
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
    assert done.path == Path("books2.filled.csv")
    assert done.to_pandas()["title"].tolist() == [made_site.truth(book)["title"] for book in range(48)]
    assert webfill.fill("books.csv.gz", **site.options()).path == Path("books.filled.csv.gz")


def test_a_refresh_requests_what_is_older(site):
    frame = polars.DataFrame(made_site.rows())
    filled = webfill.fill(frame, **site.options()).to_polars()
    assert len(site.asked) == 48
    # A measured wait: after it, the pages are older than a second.
    time.sleep(1.1)
    assert webfill.fill(frame, **site.options(refresh_after="1s")).to_polars().equals(filled)
    assert len(site.asked) == 96


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
    assert done.path == Path("books.filled.csv.zst")
    assert [row["title"] for row in done.to_dicts()] == [made_site.truth(book)["title"] for book in range(48)]


@pytest.mark.parametrize(("name", "encoding"), [("b.csv.gz", "utf-8"), ("b.csv", "utf-16"), ("c.csv", "cp1252")])
def test_files_are_read_as_they_were_given(site, name, encoding):
    frame = pandas.DataFrame(made_site.rows()).drop(columns="tags")
    frame.loc[0, "note"] = "caf\u00e9"
    frame.to_csv(name, index=False, encoding=encoding)
    rows = webfill.fill(name, **site.options()).to_dicts()
    assert [row["title"] for row in rows] == [made_site.truth(book)["title"] for book in range(48)]
    assert rows[0]["note"] == "caf\u00e9"
