//! Tests exports from a small store.

use serde_json::{Map, json};
use webfill_store::{Crawl, CrawlId, CrawlState, DatasetRecord, Page, Record, Save, open};
use webfill_wire::Outcome;

use super::*;
use crate::seeds::{Seed, SeedReader};

fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

fn page(url: &str, fields: Value) -> Page {
    let crawl = CrawlId::new("app", "c1");
    Page {
        status_code: Some(200),
        mapping: Some(String::from("people")),
        fields: object(fields),
        links: vec![String::from("https://example.com/next")],
        bytes: 7,
        elapsed_ms: 1,
        worker: String::from("w"),
        ..Page::new(&crawl, url, "example.com", Outcome::Ok)
    }
}

fn selection(what: ExportWhat, format: ExportFormat) -> ExportSelection {
    ExportSelection {
        what,
        format,
        cells: CellStyle::Plain,
        sources: false,
        parent: None,
        gone: false,
        list_separator: None,
        filter: ExportFilter::default(),
    }
}

async fn export_as_text(what: ExportWhat, format: ExportFormat) -> String {
    String::from_utf8(export_selection(&selection(what, format)).await).unwrap()
}

/// Fills a store with one page and two records; the page fills one of them.
async fn fill_store(store: &dyn Store) {
    let id = CrawlId::new("app", "c1");
    let crawl = Crawl {
        id: id.clone(),
        request: json!({}),
        state: CrawlState::Running,
        counts: Map::new(),
        started_at_ms: 0,
        updated_at_ms: 0,
        finished_at_ms: None,
    };
    store.put_crawl(crawl).await.unwrap();
    let record = |id: &str, fields: Value, want: &[&str]| Record {
        dataset: "people".parse().unwrap(),
        id: id.to_owned(),
        fields: object(fields),
        want: want.iter().map(|name| (*name).to_owned()).collect(),
    };
    let mut first =
        DatasetRecord::from(record("1", json!({"name": "Ada", "city": null}), &["city"]));
    first.urls = vec![
        "https://example.com/ada".into(),
        "https://example.com/a b".into(),
    ];
    let second = json!({"id": "=1+1", "tel": "+49 30", "low": "-5"});
    let records = vec![first, record("2", second, &["born"]).into()];
    for put in store.put_dataset(&id, records, 0).await {
        put.unwrap();
    }
    let page = page(
        "https://example.com/ada",
        json!({"city": ["London", "\"Ockham\""]}),
    );
    let records = vec![String::from("people/1")];
    store
        .save(vec![Save { page, records }])
        .await
        .remove(0)
        .unwrap();
}

async fn export_selection(wanted: &ExportSelection) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let uri = StoreUri::Sqlite(folder.path().join("webfill.db"));
    let store = open(&uri, None).await.unwrap().store;
    fill_store(&*store).await;
    let mut out = Vec::new();
    export(&*store, wanted, &mut out).await.unwrap();
    out
}

#[tokio::test]
async fn each_record_becomes_a_row_with_a_column_for_every_field() {
    let expected = "id,name,city,fields.id,tel,low,born,missing,resolved_at,dataset\n\
        1,Ada,\"[\"\"London\"\",\"\"\\\"\"Ockham\\\"\"\"\"]\",,,,,[],1970-01-01T00:00:00.001Z,people\n\
        2,,,=1+1,+49 30,-5,,\"[\"\"born\"\"]\",,people\n";
    assert_eq!(
        export_as_text(ExportWhat::Records, ExportFormat::Csv).await,
        expected
    );
    let guarded = expected.replace(",=1+1,+49 30", ",'=1+1,'+49 30");
    assert_eq!(
        String::from_utf8(
            export_selection(&ExportSelection {
                cells: CellStyle::Spreadsheet,
                ..selection(ExportWhat::Records, ExportFormat::Csv)
            })
            .await
        )
        .unwrap(),
        guarded
    );
}

#[tokio::test]
async fn lists_from_pages_are_written_with_the_separator() {
    for (separator, cell) in [
        (";", "London;\"\"Ockham\"\""),
        (", ", "London, \"\"Ockham\"\""),
    ] {
        let with_separator = ExportSelection {
            list_separator: Some(separator.parse().unwrap()),
            ..selection(ExportWhat::Records, ExportFormat::Csv)
        };
        let csv = String::from_utf8(export_selection(&with_separator).await).unwrap();
        let row = csv.lines().nth(1).unwrap();
        assert!(row.starts_with(&format!("1,Ada,\"{cell}\",")), "{row}");
    }
}

#[tokio::test]
async fn columns_of_sources_come_after_all_others() {
    let with_sources = ExportSelection {
        sources: true,
        ..selection(ExportWhat::Records, ExportFormat::Csv)
    };
    let csv = export_selection(&with_sources).await;
    let mut reader = ::csv::Reader::from_reader(csv.as_slice());
    let header = reader.headers().unwrap().clone();
    let names: Vec<&str> = header.iter().skip(10).collect();
    let sources = ["name", "city", "id", "tel", "low", "born"].map(|name| format!("source.{name}"));
    assert_eq!(names[0], "urls");
    assert_eq!(names[1..], sources);
    let row = reader.records().next().unwrap().unwrap();
    let cells: Vec<&str> = row.iter().skip(10).collect();
    assert_eq!(
        cells[0],
        "https://example.com/ada https://example.com/a%20b"
    );
    assert_eq!(cells[1..3], ["", "https://example.com/ada"]);
}

#[tokio::test]
async fn each_page_becomes_a_row_with_nested_values_as_json() {
    let csv = export_as_text(ExportWhat::Pages, ExportFormat::Csv).await;
    let mut reader = ::csv::Reader::from_reader(csv.as_bytes());
    let names = columns::PAGES.map(|(name, _)| name);
    assert_eq!(reader.headers().unwrap(), &names[..]);
    let row = reader.records().next().unwrap().unwrap();
    let cell = |name: &str| {
        let is_named = |column: &&str| *column == name;
        &row[names.iter().position(is_named).unwrap()]
    };
    assert_eq!(cell("url"), "https://example.com/ada");
    assert_eq!(cell("links"), "[\"https://example.com/next\"]");
    assert_eq!((cell("status_code"), cell("final_url")), ("200", ""));
}

#[tokio::test]
async fn json_lines_are_the_stored_documents() {
    let lines = export_as_text(ExportWhat::Records, ExportFormat::Jsonl).await;
    let records: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(records.len(), 2);
    assert_eq!(records[0]["_id"], "people/1");
    assert_eq!(records[0]["record_id"], "1");
    assert_eq!(records[1]["fields"]["id"], "=1+1");
    let pages = export_as_text(ExportWhat::Pages, ExportFormat::Jsonl).await;
    let page: Value = serde_json::from_str(&pages).unwrap();
    assert!(
        columns::PAGES
            .iter()
            .all(|(column, _)| page.get(column).is_some()),
        "{page}"
    );
}

/// Reads the seeds from a file with this content.
fn read_seeds(name: &str, content: &[u8]) -> Vec<Seed> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, content).unwrap();
    let seeds = SeedReader::open(&path, 0).unwrap();
    seeds.filter_map(Result::ok).collect()
}

#[tokio::test]
async fn exported_files_can_be_used_as_seeds() {
    let lines = export_as_text(ExportWhat::Records, ExportFormat::Jsonl).await;
    let with_sources = ExportSelection {
        sources: true,
        ..selection(ExportWhat::Records, ExportFormat::Csv)
    };
    let csv = export_selection(&with_sources).await;
    for (name, content) in [("a.jsonl", lines.into_bytes()), ("a.csv", csv)] {
        let seeds = read_seeds(name, &content);
        // The second record has no URL, so it makes no seed.
        assert_eq!(seeds.len(), 1, "{name}");
        let seed = &seeds[0];
        assert_eq!(seed.id.as_deref(), Some("1"), "{name}");
        let urls = ["https://example.com/ada", "https://example.com/a%20b"];
        assert_eq!(seed.urls, urls, "{name}");
        assert_eq!(seed.fields.as_ref().unwrap()["name"], "Ada", "{name}");
        assert_eq!(seed.want, Vec::<String>::new(), "{name}");
    }
}

#[test]
fn an_exported_table_is_read_with_missing_fields_and_prefixed_names() {
    let csv = "id,name,city,fields.id,missing,resolved_at,dataset,urls,source.name\n\
        7,,,x,\"[\"\"city\"\"]\",,people,https://a.example/ https://b.example/,https://a.example/\n";
    let seeds = read_seeds("people.csv", csv.as_bytes());
    assert_eq!(seeds[0].want, ["city"], "the empty name is not wanted");
    assert_eq!(seeds[0].fields, Some(object(json!({"id": "x"}))));
    assert_eq!(seeds[0].urls, ["https://a.example/", "https://b.example/"]);
}
