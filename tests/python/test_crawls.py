"""Crawls, stores and mappings."""

import contextlib
import json

import duckdb
import made_site
import polars
import pyarrow
import pytest
import webfill
from webfill import _command, mapping

SHELF = {
    "name": "shelf",
    "url_patterns": [{"type": "regex", "pattern": r"^http://shelf\.example/book/\d+$"}],
    "fields": [
        {"name": "title", "processors": [{"type": "xpath", "parameters": {"expression": "//h1"}}]},
        {
            "name": "pages",
            "processors": [
                {"type": "xpath", "parameters": {"expression": "//th[.='Pages']/following-sibling::td"}},
                {"type": "number"},
            ],
        },
    ],
}


def crawl(site, path, books=4, store="books.db", flags=(), **others):
    (path / "mappings").mkdir(exist_ok=True)
    (path / "mappings" / "shelf.json").write_text(json.dumps(SHELF))
    wanted = {"title": None, "pages": None}
    seeds = [{"id": f"b{book}", "urls": [made_site.url(book)], "fields": wanted} for book in range(books)]
    (path / "books.jsonl").write_text("".join(json.dumps(seed) + "\n" for seed in seeds))
    return webfill.crawl(
        seeds="books.jsonl",
        mappings="mappings",
        store=store,
        crawl="once",
        delay=0,
        workers=1,
        allow_private_networks=True,
        flags=[f"--resolve={site.resolve}", *flags],
        progress=False,
        **others,
    )


def path_of_an_export(store):
    return store.pages().path


def test_a_crawl_and_its_store(site, tmp_path):
    done = crawl(site, tmp_path)
    assert done.complete and done.summary["records"]["resolved"] == 4, done.summary
    records = polars.DataFrame(done.store.records(dataset="books")).sort("id")
    assert records["title"].to_list() == [made_site.truth(book)["title"] for book in range(4)]
    assert records["pages"].to_list() == [made_site.truth(book)["pages"] for book in range(4)]
    pages = webfill.Store("books.db").pages(crawl="once")
    assert {page["outcome"] for page in pages.to_dicts()} == {"ok"}
    assert pyarrow.RecordBatchReader.from_stream(pages).read_all().num_rows == 4
    with_sources = done.store.records(sources=True)
    assert {row["source.title"] for row in with_sources.to_arrow().to_pylist()} == set(site.asked)
    assert {row["sources"]["title"]["url"] for row in with_sources.to_dicts()} == set(site.asked)
    records = done.store.records()
    assert duckdb.sql("SELECT count(*), max(title) FROM records WHERE pages > 101").fetchall()[0][0] == 3
    # The file of an export is removed with the object.
    assert pages.path.exists() and not path_of_an_export(done.store).exists()
    # A store keeps its place in another working folder, as does an export.
    (tmp_path / "elsewhere").mkdir()
    with contextlib.chdir(tmp_path / "elsewhere") if hasattr(contextlib, "chdir") else contextlib.nullcontext():
        assert done.store.pages().to_arrow().num_rows == len(pages.to_dicts()) == 4
    changes = done.store.changes()
    assert changes.to_dicts() == [] and changes.to_arrow().num_rows == 0
    # Reaching a limit is not an error: the same call resumes.
    assert crawl(site, tmp_path).summary["pages"] == 4
    assert len(site.asked) == 4


def test_texts_with_separators_of_lines():
    ended = _command.Ended(0, '{"text": "one\u2028two\u0085"}\n{}\n', "")
    assert ended.json_lines() == [{"text": "one\u2028two\u0085"}, {}]


def test_what_a_crawl_cannot_do(site, tmp_path):
    with pytest.raises(webfill.UsageError, match='invalid URL "--help"'):
        webfill.crawl(["http://a.example/", "--help"])
    # An argument alone is no list of letters.
    with pytest.raises(webfill.UsageError, match="unexpected argument '--nope'"):
        webfill.crawl("http://a.example/", flags="--nope")
    with pytest.raises(webfill.WebfillError) as caught:
        webfill.crawl("http://none.example/", delay=0, allow_private_networks=True, progress=False, mappings=tmp_path,
                      flags=["--resolve=*:80:127.0.0.1:1", "--patience=1s"])
    assert caught.value.exit_code in (1, 2) and caught.value.message
    with pytest.raises(webfill.WebfillError, match="no such file"):
        webfill.Store("none.db").pages()
    with pytest.raises(webfill.UsageError, match="is no store URI"):
        webfill.Store("redis://localhost/1").pages()


def test_mappings_are_checked_tested_and_learned(site, tmp_path):
    crawl(site, tmp_path, keep_bodies=True)
    good = tmp_path / "mappings" / "shelf.json"
    assert mapping.check(good) == []
    with pytest.raises(webfill.UsageError, match="none.json: cannot be read") as caught:
        mapping.test("none.json", "page.html")
    assert caught.value.path is None
    page = tmp_path / "1000.html"
    page.write_text(made_site.page(0))
    tested = mapping.test(good, page, url=made_site.url(0))
    assert tested.pages[0]["fields"] == {key: made_site.truth(0)[key] for key in ("title", "pages")}, tested
    [titles] = mapping.test(good, page, url=made_site.url(0), fields="title").pages
    assert titles["fields"] == {"title": made_site.truth(0)["title"]}
    bad = json.loads(good.read_text())
    bad["fields"][0]["processors"][0]["parameters"]["expression"] = "//h1["
    good.write_text(json.dumps(bad))
    [fault] = mapping.check(good)
    assert fault.path is not None and fault.path.startswith("fields[0]") and not fault.is_warning, fault
    with pytest.raises(webfill.UsageError) as caught:
        mapping.test(good, page, url=made_site.url(0))
    assert caught.value.path == fault.path, caught.value
    records = [
        {"id": f"b{book}", "urls": [made_site.url(book)], "fields": {"title": made_site.truth(book)["title"]}}
        for book in range(4)
    ]
    learned = mapping.learn(records, crawl="once", store="books.db")
    assert learned.complete and [field["name"] for field in learned.mapping["fields"]] == ["title"], learned


def test_every_fault_and_warning_of_files_with_any_names_is_listed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    warned = json.loads(json.dumps(SHELF))
    warned["fields"][0]["processors"][0]["parameters"]["expression"] = "//H1"
    names = ["none", "shelf", "-shelf", "a:3: b", "sh\u00e9lf.JSON", "shelf.json.bak", "folder/shelf.json"]
    for name in names[1:]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(json.dumps({**warned, "fieldz": {}}, indent=1))
    faults = mapping.check(*names[:-1], "folder")
    assert [fault.file for fault in faults] == names
    assert faults[0][1:] == (None, None, "cannot be read: No such file or directory (os error 2)", False)
    assert {fault[2:] for fault in faults[1:]} == {("fieldz", "unknown key `fieldz`, did you mean `fields`?", False)}
    assert None not in {fault.line for fault in faults[1:]}
    # A mapping with warnings alone can be used.
    (tmp_path / "-shelf").write_text(json.dumps(warned))
    [warning] = mapping.check("-shelf")
    assert (warning.file, warning.path) == ("-shelf", "fields[0].processors[0].parameters.expression")
    assert warning.is_warning and "finds nothing on HTML pages" in warning.message
    [fault] = mapping.check()
    assert fault.file == "etl-mappings" and "cannot be read" in fault.message


def test_a_mapping_is_repaired(site, tmp_path):
    done = crawl(site, tmp_path, keep_bodies=True)
    assert done.complete
    broken = json.loads(json.dumps(SHELF))
    broken["fields"][0]["processors"][0]["parameters"]["expression"] = "//h5/text()"
    file = tmp_path / "mappings" / "shelf.json"
    file.write_text(json.dumps(broken))
    records = [
        {"id": f"b{book}", "urls": [made_site.url(book)], "fields": {"title": made_site.truth(book)["title"]}}
        for book in range(4)
    ]
    repaired = mapping.repair(file, crawl="once", store="books.db", records=records, apply=True)
    assert "h1" in json.dumps(repaired.mapping), repaired
    page = tmp_path / "1002.html"
    page.write_text(made_site.page(2))
    assert mapping.test(file, page, url=made_site.url(2)).pages[0]["fields"]["title"] == made_site.truth(2)["title"]
