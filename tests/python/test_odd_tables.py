"""Tables with columns of every type, odd names and no rows: they come back as they were, but for what was filled."""

import datetime as dt
import enum
import uuid
from decimal import Decimal

import duckdb
import made_site
import numpy
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest
import webfill

ROWS = 2 * made_site.BOOKS
TITLES = [made_site.truth(book)["title"] for book in range(ROWS)]


def books():
    """Only what is filled: titles, with gaps."""
    return [{name: row[name] for name in ("id", "link", "title")} for row in made_site.rows()]


def repeated(values):
    return [values[row % len(values)] for row in range(ROWS)]


def assert_same_objects(found, given):
    for row, (one, other) in enumerate(zip(found, given)):
        assert type(one) is type(other), (row, one, other)
        if isinstance(one, numpy.ndarray):
            assert one.tolist() == other.tolist(), row
        else:
            assert one is other or one == other or (one != one and other != other), (row, one, other)


def odd_columns_of_pandas():
    decimals = pandas.ArrowDtype(pyarrow.decimal128(20, 4))
    lists = pandas.ArrowDtype(pyarrow.list_(pyarrow.int64()))
    one = uuid.UUID(int=1)
    objects = {
        "nested": [[[1], [2, 3]], None, []],
        "tuples": [(1, 2), None, ()],
        "sets": [{1}, None, {2}],
        "arrays": [numpy.array([1, 2]), None, numpy.array([3])],
        "objects": [{"a": [1], "b": None}, None, {"a": [], "b": "x"}],
        "mixed": [1, "a", None],
        "huge": [2**70 + 1, None, -(2**70)],
        "uuids": [one, None, one],
        "bytes": [b"\xff", None, b""],
        "missing": [None, float("nan"), "", pandas.NA, "x"],
        "flags": [True, None, False],
        "times": [dt.time(1, 2), None, dt.time(3)],
        "days": [dt.date(1, 1, 1), None, dt.date(9999, 12, 31)],
        "nothing": [None],
    }
    typed = {
        "category": pandas.Categorical(repeated([1, None, 2])),
        "ordered": pandas.Categorical(repeated(["a", None, "b"]), categories=["b", "a", "unused"], ordered=True),
        "span": pandas.Series(repeated([pandas.Timedelta("1h"), pandas.NaT])),
        "boolean": pandas.array(repeated([True, None, False]), dtype="boolean"),
        "small": pandas.array(repeated([1, None, -3]), dtype="Int8"),
        "large": numpy.array(repeated([2**64 - 1, 0]), dtype="uint64"),
        "float": numpy.array(repeated([1.5, float("nan"), float("inf")]), dtype="float32"),
        "text": pandas.array(repeated(["a", None, ""]), dtype="string"),
        "decimals": pandas.array(repeated([Decimal("1.5000"), None]), dtype=decimals),
        "lists": pandas.array(repeated([[1], None, []]), dtype=lists),
        "seconds": numpy.array(repeated(["2020-01-01", "NaT"]), dtype="datetime64[s]"),
        "nanoseconds": numpy.array(repeated(["2020-01-01T00:00:00.000000001", "NaT"]), dtype="datetime64[ns]"),
        "zoned": pandas.Series(repeated([pandas.Timestamp("2020-07-01", tz="Europe/Berlin"), pandas.NaT])),
        "period": pandas.PeriodIndex(repeated(["2020-01", None]), freq="M"),
        "sparse": pandas.arrays.SparseArray(repeated([0, 0, 1])),
    }
    columns = {name: pandas.Series(repeated(values), dtype=object) for name, values in objects.items()}
    # Not from the values at once, because pandas would see dates in a column of missing ones.
    return {**columns, **{name: pandas.Series(values) for name, values in typed.items()}}


@pytest.mark.parametrize("fields", ["title", None])
def test_pandas_with_columns_of_every_dtype(site, fields):
    odd = odd_columns_of_pandas()
    frame = pandas.DataFrame(books()).assign(**odd)
    given = frame.copy()
    done = webfill.fill(frame, **site.options(fields=fields, keep=None))
    pandas.testing.assert_frame_equal(frame, given)
    filled = done.to_pandas()
    assert list(filled["title"]) == TITLES
    assert list(filled.dtypes) == list(frame.dtypes)
    for name in odd:
        if frame[name].dtype == object:
            assert_same_objects(filled[name], frame[name])
        else:
            pandas.testing.assert_series_equal(filled[name], frame[name])


class Title(pandas.DataFrame):
    """A class of a user."""

    @property
    def _constructor(self):
        return Title


@pytest.mark.parametrize(
    "index",
    [
        pandas.MultiIndex.from_product([["a", "b"], range(ROWS // 2)]),
        pandas.Index(["same"] * ROWS, name="title"),
        pandas.Index(list(range(ROWS, 0, -1))),
        pandas.date_range("2020", periods=ROWS, tz="Europe/Berlin"),
        pandas.RangeIndex(5, 5 + 2 * ROWS, 2, name="n"),
    ],
    ids=["levels", "name of a column", "numbers", "times", "range"],
)
def test_pandas_keeps_any_index_and_names_that_are_no_texts(site, index):
    frame = Title(books()).rename(columns={"id": 7})
    frame[("a", 1)] = repeated([None, "x, y\n"])
    frame[""] = 1.5
    frame.index = index
    filled = webfill.fill(frame, **site.options(fields="title", keep=None)).to_pandas()
    assert filled.index.equals(frame.index) and filled.index.names == frame.index.names
    assert list(filled.columns) == ["id" if name == "id" else name for name in frame.columns]
    assert list(filled["title"]) == TITLES
    assert list(filled[7]) == list(frame[7]) and list(filled.iloc[:, 3]) == list(frame.iloc[:, 3])


def test_a_filled_cell_of_an_odd_column_fits_the_others(site):
    frame = pandas.DataFrame(made_site.rows())
    # Two integers of 70 bits have no type in Arrow. The others are pages, of which some are gaps.
    pages = [None if made_site.is_gap(book, 1) else made_site.truth(book)["pages"] for book in range(ROWS)]
    frame["pages"] = pandas.Series([2**70 if book == 47 else pages[book] for book in range(ROWS)], dtype=object)
    frame["tags"] = [None if tags is None else tuple(tags) for tags in frame["tags"]]
    filled = webfill.fill(frame, **site.options()).to_pandas()
    for book in range(ROWS - 1):
        assert filled["pages"][book] == made_site.truth(book)["pages"] and type(filled["pages"][book]) is int, book
        assert list(filled["tags"][book]) == made_site.truth(book)["tags"]
    assert filled["pages"][47] == 2**70


def test_an_enum_of_polars_gets_the_values_that_gaps_were_filled_with(site):
    frame = polars.DataFrame(made_site.rows())
    titles = polars.Enum(frame["title"].drop_nulls().unique().sort())
    tags = polars.List(polars.Enum(frame["tags"].explode().drop_nulls().unique().sort()))
    frame = frame.cast({"title": titles, "tags": tags})
    done = webfill.fill(frame, **site.options())
    filled = done.to_polars()
    assert filled["title"].to_list() == TITLES
    assert filled["title"].dtype.categories.to_list()[: len(titles.categories)] == titles.categories.to_list()
    assert polars.read_parquet(done.path)["title"].to_list() == TITLES
    # All words of tags are known.
    assert filled["tags"].to_list() == [made_site.truth(book)["tags"] for book in range(ROWS)]
    assert filled.schema["tags"] == tags
    assert list(filled.columns) == list(frame.columns)


def test_enums_in_lists_and_structs_of_polars_get_new_values_too(site):
    frame = polars.DataFrame(made_site.rows()).select("id", "link", "tags")
    some = polars.col("tags").list.set_intersection(["engine", "tower"]).list.len() > 0
    frame = frame.with_columns(polars.when(some).then(None).otherwise("tags").alias("tags"))
    words = frame["tags"].explode().drop_nulls().unique().sort().to_list()
    frame = frame.cast({"tags": polars.List(polars.Enum(words))})
    filled = webfill.fill(frame, **site.options(fields="tags", keep=None, precision=0.5)).to_polars()["tags"]
    assert filled.to_list() == [made_site.truth(book)["tags"] for book in range(ROWS)]
    categories = filled.dtype.inner.categories.to_list()
    assert categories[: len(words)] == words and sorted(categories[len(words) :]) == ["engine", "tower"]


@pytest.mark.parametrize("digits", [3, 9])
def test_decimals_with_more_digits_than_pages_show(site, digits):
    prices = [made_site.truth(book)["price"] for book in range(ROWS)]
    given = pyarrow.Table.from_pylist(made_site.rows())
    kind = pyarrow.decimal128(18, digits)
    place = given.column_names.index("price")
    given = given.set_column(place, "price", given["price"].cast(kind))
    filled = webfill.fill(given, **site.options()).to_arrow()
    assert filled.schema == given.schema and filled["price"].to_pylist() == prices
    rows = made_site.rows()
    for row in rows:
        row["price"] = row["price"] and row["price"].quantize(Decimal(1).scaleb(-digits))
    assert [row["price"] for row in webfill.fill(rows, **site.options()).to_dicts()] == prices


def test_decimals_of_pandas_have_room_for_larger_ones(site):
    frame = pandas.DataFrame(made_site.rows())
    known = [price if price is not None and price < 30 else None for price in frame["price"]]
    frame["price"] = pandas.Series(known, dtype=object)
    done = webfill.fill(frame, **site.options(precision=0.5))
    assert pyarrow.parquet.read_schema(done.path).field("price").type == pyarrow.decimal128(38, 2)
    shelf = list(done.to_pandas()["price"])[: made_site.BOOKS]
    assert shelf == [made_site.truth(book)["price"] for book in range(made_site.BOOKS)]


def test_half_of_a_character_is_refused(tmp_path):
    for row in ({"note": "a\ud800"}, {"n\udc80": 1}, {"note": [{"a": "\udfff"}]}):
        with pytest.raises(TypeError, match="the column 'n.*half of a surrogate pair"):
            webfill.fill([{"url": "http://a.example/", **row}], folder=tmp_path)


def test_pyarrow_with_columns_of_every_type(site):
    odd = {
        "dictionary": pyarrow.array(repeated(["a", None, "b"])).dictionary_encode(),
        "large": pyarrow.array(repeated(["", None, "x"]), pyarrow.large_string()),
        "binary": pyarrow.array(repeated([b"\xff", None, b""])),
        "fixed": pyarrow.array(repeated([b"ab", None]), pyarrow.binary(2)),
        "half": pyarrow.array(repeated([numpy.float16(1), None]), pyarrow.float16()),
        "decimal": pyarrow.array(repeated([Decimal("1.50"), None]), pyarrow.decimal256(50, 2)),
        "clock": pyarrow.array(repeated([dt.time(1), None]), pyarrow.time32("s")),
        "fine": pyarrow.array(repeated([dt.time(1), None]), pyarrow.time64("ns")),
        "span": pyarrow.array(repeated([dt.timedelta(1), None]), pyarrow.duration("s")),
        "day": pyarrow.array(repeated([dt.date(2020, 1, 1), None]), pyarrow.date64()),
        "seconds": pyarrow.array(repeated([dt.datetime(2020, 1, 1), None]), pyarrow.timestamp("s", tz="UTC")),
        "zoned": pyarrow.array(repeated([1577836800000000001, None]), pyarrow.timestamp("ns", tz="Europe/Berlin")),
        "structs": pyarrow.array(repeated([[{"a": 1}], None, []])),
        "map": pyarrow.array(repeated([[("a", 1)], None]), pyarrow.map_(pyarrow.string(), pyarrow.int64())),
        "lists": pyarrow.array(repeated([[[1]], None, []]), pyarrow.large_list(pyarrow.list_(pyarrow.int64()))),
        "nothing": pyarrow.nulls(ROWS),
        "unsigned": pyarrow.array(repeated([2**64 - 1, None]), pyarrow.uint64()),
        "float": pyarrow.array(repeated([1.5, float("nan"), None])),
    }
    given = pyarrow.Table.from_pylist(books())
    for name, column in odd.items():
        given = given.append_column(pyarrow.field(name, column.type, metadata={"unit": name}), column)
    given = given.replace_schema_metadata({"made": "by hand"})
    done = webfill.fill(given, **site.options(fields="title", keep=None))
    for filled in (done.to_arrow(), pyarrow.RecordBatchReader.from_stream(done).read_all()):
        assert filled.schema.equals(given.schema) and filled.schema.metadata == given.schema.metadata
        assert [field.metadata for field in filled.schema] == [field.metadata for field in given.schema]
        assert filled["title"].to_pylist() == TITLES
        # By their texts, in which NaN equals NaN.
        for name in odd:
            assert repr(filled[name].to_pylist()) == repr(given[name].to_pylist()), name


def test_not_a_number_is_no_null_but_a_gap(site):
    rows = made_site.rows()
    pages = [float("nan") if row["pages"] is None else float(row["pages"]) for row in rows]
    given = pyarrow.Table.from_pylist(rows)
    given = given.set_column(given.column_names.index("pages"), "pages", pyarrow.array(pages))
    filled = webfill.fill(given, **site.options()).to_arrow()
    assert filled["pages"].to_pylist() == [float(made_site.truth(book)["pages"]) for book in range(ROWS)]


def test_polars_with_columns_of_every_type(site):
    odd = {
        "category": polars.Series(repeated(["a", None]), dtype=polars.Categorical),
        "enum": polars.Series(repeated(["a", None]), dtype=polars.Enum(["a", "b"])),
        "span": polars.Series(repeated([dt.timedelta(hours=1), None])),
        "clock": polars.Series(repeated([dt.time(1), None])),
        "zoned": polars.Series(repeated([dt.datetime(2020, 1, 1), None])).dt.replace_time_zone("Europe/Berlin"),
        "milliseconds": polars.Series(repeated([dt.datetime(2020, 1, 1), None]), dtype=polars.Datetime("ms")),
        "decimal": polars.Series(repeated([Decimal("1.5"), None]), dtype=polars.Decimal(20, 4)),
        "lists": polars.Series(repeated([[[1], [2, 3]], None, []]), dtype=polars.List(polars.List(polars.Int64))),
        "array": polars.Series(repeated([[1, 2], None]), dtype=polars.Array(polars.Int64, 2)),
        "struct": polars.Series(repeated([{"a": [1]}, None]), dtype=polars.Struct({"a": polars.List(polars.Int64)})),
        "nothing": polars.Series([None] * ROWS, dtype=polars.Null),
        "huge": polars.Series(repeated([2**100, None]), dtype=polars.Int128),
        "unsigned": polars.Series(repeated([2**64 - 1, None]), dtype=polars.UInt64),
        "float": polars.Series(repeated([1.5, float("nan"), None]), dtype=polars.Float32),
        "binary": polars.Series(repeated([b"\xff", None, b""])),
        "flag": polars.Series(repeated([True, None, False])),
        "text": polars.Series(repeated(["", None, "x"])),
    }
    frame = polars.DataFrame(books()).with_columns(column.alias(name) for name, column in odd.items())
    filled = webfill.fill(frame, **site.options(fields="title", keep=None)).to_polars()
    assert filled.schema == frame.schema and filled["title"].to_list() == TITLES
    assert filled.drop("title").equals(frame.drop("title"))


def test_duckdb_with_columns_of_every_type(site):
    rows = pyarrow.Table.from_pylist(books())  # noqa: F841, named by the query
    relation = duckdb.sql("""
        SELECT *, 'a'::ENUM('a', 'b') AS e, 170141183460469231731::HUGEINT AS h, 5::UHUGEINT AS uh, sum(3) OVER () AS total,
            '00000000-0000-0000-0000-000000000001'::UUID AS u, INTERVAL 3 DAY AS span, TIME '10:00' AS clock, '101'::BIT AS bits,
            'x'::BLOB AS blob, {'a': 1, 'b': [1]} AS struct, MAP {'a': 1} AS map, [[1], [2]] AS lists,
            [1, 2]::INTEGER[2] AS "array", '{"a": 1}'::JSON AS json, TIMESTAMP_S '2020-01-01 00:00:00' AS seconds,
            TIMESTAMP_NS '2020-01-01 00:00:00.000000001' AS nanoseconds, 3::UTINYINT AS tiny, 1.5::DECIMAL(20, 4) AS d,
            'nan'::FLOAT AS nan, NULL AS nothing, 'x' AS "a ""name"", of two"
        FROM rows
    """)
    done = webfill.fill(relation, **site.options(fields="title", keep=None))
    filled = duckdb.sql("SELECT * FROM done")
    # An Arrow stream has no ENUM of DuckDB, nor bits, and names the others in its way.
    assert filled.columns == relation.columns
    found = done.to_dicts()
    assert [row["title"] for row in found] == TITLES
    given = [dict(zip(relation.columns, row)) for row in relation.fetchall()]
    for one, other in zip(found, given):
        for name in set(other) - {"title", "nan"}:
            assert one[name] == other[name] and type(one[name]) is type(other[name]), name
        assert one["nan"] != one["nan"]


def test_an_enum_of_duckdb_that_gets_other_values_is_text(site):
    rows = pyarrow.Table.from_pylist(books())  # noqa: F841, named by the query
    known = ", ".join(f"'{row['title']}'" for row in books() if row["title"] is not None)
    relation = duckdb.sql(f"SELECT id, link, title::ENUM({known}) AS title FROM rows")
    done = webfill.fill(relation, **site.options(fields="title", keep=None))
    assert [row["title"] for row in done.to_dicts()] == TITLES
    assert [str(one) for one in duckdb.sql("SELECT * FROM done").types] == ["VARCHAR"] * 3


class Colour(str, enum.Enum):
    RED = "red"


def test_lists_of_dicts_with_odd_objects(site):
    rows = books()
    for book, row in enumerate(rows):
        row.update(
            {
                7: book if book % 2 else None,
                "huge": 2**70 + book,
                "uuid": uuid.UUID(int=book),
                "span": dt.timedelta(seconds=book),
                "colour": Colour.RED,
                "nested": {"a": [Decimal("1.50"), None], 5: numpy.float32(0.5)},
                "infinite": float("inf"),
                "lines": "a\u2028b\u0085c\n\t\"\\",
                "": "no name",
                "truth": numpy.bool_(True),
            }
        )
        if book % 5 == 0:
            del row["title"]
    done = webfill.fill(rows, **site.options(fields="title", keep=None))
    for given, filled, title in zip(rows, done.to_dicts(), TITLES):
        assert filled["title"] == title
        assert {name: value for name, value in filled.items() if name != "title"} == {
            name: value for name, value in given.items() if name != "title"
        }
        for name in set(given) - {"title"}:
            assert filled[name] is given[name]


NO_TABLES = {
    "pandas with a name twice": (
        pandas.DataFrame([["http://a.example/", 1]], columns=["a", "a"]),
        "two columns are named 'a'",
    ),
    "complex numbers": (
        pandas.DataFrame({"url": ["http://a.example/"], "c": [1j]}),
        "column c with type complex128",
    ),
    "a column of pandas": (pandas.Series([1]), "a Series .*is no table"),
    "pyarrow with a name twice": (
        pyarrow.table([["http://a.example/"], ["b"]], names=["a", "a"]),
        "two columns are named 'a'",
    ),
    "run ends": (
        pyarrow.table({"r": pyarrow.RunEndEncodedArray.from_arrays([1], ["a"])}),
        "cannot be stored as Parquet",
    ),
    "a plan of polars": (polars.DataFrame({"url": ["http://a.example/"]}).lazy(), r"a LazyFrame is no table: give its collect\(\)"),
    "duckdb with a name twice": (
        duckdb.sql("SELECT 'http://a.example/' AS a, 2 AS a"),
        "two columns are named 'a'",
    ),
    "dicts with a name twice": ([{1: "http://a.example/", "1": 2}], "two columns are named '1'"),
    "any object": (
        [{"url": "http://a.example/", "what": object()}],
        "the column 'what': a value of the type object",
    ),
    "a set in an object": (
        [{"url": "http://a.example/", "what": {"in": {1}}}],
        "the column 'what': the column 'in': a value of the type set",
    ),
    "a dict": ({"url": ["http://a.example/"]}, "a dict is no table"),
    "a generator": ((row for row in books()), "a generator is no table"),
}


@pytest.mark.parametrize("kind", NO_TABLES)
def test_what_cannot_be_kept_is_refused_before_anything_is_requested(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    table, sentence = NO_TABLES[kind]
    with pytest.raises(TypeError, match=sentence):
        webfill.fill(table)
    assert not list(tmp_path.glob("webfill-tables/*")) and not list(tmp_path.glob("webfill-tables/.*"))


EMPTY = {
    "no dicts": [],
    "a dict without members": [{}],
    "pandas without columns": pandas.DataFrame(),
    "pandas with an index alone": pandas.DataFrame(index=[1, 2]),
    "pandas without rows": pandas.DataFrame({"url": []}),
    "pandas without values": pandas.DataFrame({"url": [None]}),
    "pyarrow without columns": pyarrow.table({}),
    "pyarrow without rows": pyarrow.table({"url": pyarrow.array([], pyarrow.string())}),
    "polars without columns": polars.DataFrame(),
    "polars without rows": polars.DataFrame({"url": []}),
    "duckdb without rows": duckdb.sql("SELECT 'http://a.example/' AS url LIMIT 0"),
}


@pytest.mark.parametrize("kind", EMPTY)
def test_an_empty_table_has_no_links(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(webfill.UsageError) as caught:
        webfill.fill(EMPTY[kind])
    assert caught.value.exit_code == 2 and caught.value.message, caught.value


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".hidden", "a\0b"])
def test_a_name_stays_in_the_folder(tmp_path, name):
    with pytest.raises(ValueError, match="is no name of a file"):
        webfill.fill([{"url": "http://a.example/"}], folder=tmp_path / "in", name=name)
    assert list(tmp_path.iterdir()) == []
