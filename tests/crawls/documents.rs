//! Tests documents as pages (`--documents`): each is recognised by its bytes, read, mapped, and stored once.

use std::process::Command;

use serde_json::{Map, Value, json};
use webfill_test_needs::needs;
use webfill_tests::office::{
    docx, open_document, pdf, pdf_stream, pdf_with_content, xlsx, zip_package,
};
use webfill_tests::run::Run;
use webfill_tests::site::{Page, Site, Web, document};
use webfill_tests::workplace::{Workplace, files_under};

const HOST: &str = "papers.example";
const WORD: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";

const CELLS: &str = "<row r='1'><c r='A1' t='inlineStr'><is><t>price</t></is></c>\
    <c r='B1'><v>42.5</v></c></row>";

type StatusAndType = (&'static str, &'static str);

/// For each document, its path, the server's answer, and the expected status and type in the store. The last element is
/// `None` if the answer is not a document.
fn document_answers() -> Vec<(&'static str, Page, Option<StatusAndType>)> {
    let paper = || pdf("A paper", "Contract number 4711 of the year");
    // A document after some other bytes, which shift all positions in its cross-reference table.
    let shifted = || [&b"sent by a printer\n"[..], &pdf("A paper", "number 4718")].concat();
    let lines = b"BT /F1 12 Tf 14 TL 72 720 Td (Contract) Tj (number 4717) ' 0 0 (price 5) \" ET";
    let quotes = pdf_with_content("Lines", pdf_stream("", lines));
    let letter = "<w:p><w:r><w:t>Contract number </w:t></w:r><w:r><w:t>4712</w:t></w:r></w:p>";
    let text = "<text:h>Heading</text:h><text:p>Contract number<text:s/>4713</text:p>";
    let table = "<table:table><table:table-row table:number-rows-repeated='1000000000'>\
        <table:table-cell><text:p>number 4714</text:p></table:table-cell></table:table-row></table:table>";
    let rtf = r"{\rtf1\ansi{\info{\title A letter}}Contract number 4715}";
    vec![
        (
            "/paper.pdf",
            document("application/pdf", paper()),
            Some(("text", "pdf")),
        ),
        (
            "/download?id=1",
            document("application/octet-stream", paper()),
            Some(("text", "pdf")),
        ),
        (
            "/paper.html",
            document("text/html", paper()),
            Some(("text", "pdf")),
        ),
        (
            "/letter.docx",
            document(WORD, docx(letter)),
            Some(("text", "docx")),
        ),
        (
            "/letter_zip",
            document("application/zip", docx(letter)),
            Some(("text", "docx")),
        ),
        (
            "/prices.xlsx",
            document("application/octet-stream", xlsx("A1:B1", CELLS)),
            Some(("text", "xlsx")),
        ),
        (
            "/text.odt",
            document("application/octet-stream", open_document("text", text)),
            Some(("text", "odt")),
        ),
        (
            "/table.ods",
            document(
                "application/octet-stream",
                open_document("spreadsheet", table),
            ),
            Some(("text", "ods")),
        ),
        (
            "/letter.rtf",
            document("text/rtf", rtf),
            Some(("text", "rtf")),
        ),
        (
            "/notes.txt",
            document("text/plain", "Contract number 4716"),
            Some(("text", "text")),
        ),
        (
            "/lines.pdf",
            document("application/pdf", quotes),
            Some(("text", "pdf")),
        ),
        (
            "/shifted.pdf",
            document("application/pdf", shifted()),
            Some(("text", "pdf")),
        ),
        (
            "/scan.pdf",
            document("application/pdf", pdf("A scan", "")),
            Some(("no_text", "pdf")),
        ),
        (
            "/torn.pdf",
            document("application/pdf", &b"%PDF-1.4\nand nothing more"[..]),
            Some(("broken", "pdf")),
        ),
        (
            "/other_jar",
            document("application/zip", zip_package(&[("a.class", vec![1])])),
            None,
        ),
        (
            "/picture.pdf",
            document("application/pdf", vec![7; 3_000]),
            None,
        ),
        (
            "/not_found.pdf",
            document(
                "application/pdf",
                "<h1>Sorry, not here, contract number 1</h1>",
            ),
            None,
        ),
    ]
}

fn papers_mapping() -> Value {
    let from_text = |name: &str, pattern: &str| json!({"name": name, "processors": [{"type": "regex", "parameters": {"pattern": pattern}}]});
    let meta = |name: &str| json!({"name": name, "processors": [{"type": "meta", "parameters": {"name": name}}]});
    // The processor `default` yields a constant value. A document without text must not get it.
    let constant = json!({"name": "price", "processors": [
        {"type": "regex", "parameters": {"pattern": "price (.*)"}},
        {"type": "default", "parameters": {"value": "on request"}}]});
    json!({
        "name": "papers",
        "url_patterns": [{"type": "host", "pattern": HOST}],
        "fields": [from_text("number", "number (\\d+)"), meta("title"), meta("author"), meta("created"), meta("pages"), constant],
    })
}

fn serve_answers(site: &Site) -> Vec<String> {
    let serve = |(path, answer, _): (&'static str, Page, _)| {
        site.serve(path, answer);
        site.url(path)
    };
    document_answers().into_iter().map(serve).collect()
}

fn crawl_command(work: &Workplace, web: &Web) -> Run {
    work.write_json("mappings/papers.json", &papers_mapping());
    work.crawl(web).replace_flag("--delay", "0.05")
}

/// The stored documents by their URLs.
fn stored_documents(work: &Workplace) -> Map<String, Value> {
    let rows = work.stored().query_texts(
        "SELECT json_object('url', url, 'document', json(coalesce(document, 'null'))) FROM pages",
    );
    let row = |row: String| {
        let row: Value = serde_json::from_str(&row).unwrap();
        (
            row["url"].as_str().unwrap().to_owned(),
            row["document"].clone(),
        )
    };
    rows.into_iter().map(row).collect()
}

#[test]
fn documents_are_found_by_their_bytes_read_and_mapped() {
    let web = Web::start();
    let site = web.site(HOST);
    let urls = serve_answers(&site);
    let work = Workplace::new();
    crawl_command(&work, &web)
        .arg("--documents")
        .args(&urls)
        .finish()
        .expect_code(0);

    let documents = stored_documents(&work);
    let pages = work.stored().pages();
    for ((path, answer, expected), url) in document_answers().into_iter().zip(&urls) {
        let stored = &documents[url];
        let Some((status, kind)) = expected else {
            assert_eq!(stored, &Value::Null, "{path}");
            assert_eq!(pages[url].outcome, "unsupported_type", "{path}");
            continue;
        };
        assert_eq!(stored["status"], status, "{path}: {stored}");
        assert_eq!(stored["type"], kind, "{path}: {stored}");
        assert_eq!(stored["bytes"], answer.body.len(), "{path}");
        assert_eq!(pages[url].outcome, "ok", "{path}");
        let mapping = (status != "broken").then_some("papers");
        assert_eq!(pages[url].mapping.as_deref(), mapping, "{path}");
        assert_eq!(
            stored.get("text_hash").is_some(),
            status == "text",
            "{path}"
        );
    }
    let fields = |path: &str| Value::Object(pages[&site.url(path)].fields.clone());
    let paper = json!({"number": "4711", "title": "A paper", "author": "Ada",
        "created": "2024-01-31T12:00:00Z", "pages": "1", "price": "on request"});
    assert_eq!(fields("/paper.pdf"), paper);
    assert_eq!(fields("/download?id=1"), paper);
    assert_eq!(fields("/paper.html"), paper);
    assert_eq!(
        fields("/letter.docx"),
        json!({"number": "4712", "title": "A title", "author": "Ada",
        "created": "2024-01-31T12:00:00Z", "price": "on request"})
    );
    assert_eq!(
        fields("/text.odt"),
        json!({"number": "4713", "title": "A title", "author": "Ada", "pages": "3", "price": "on request"})
    );
    assert_eq!(fields("/table.ods")["number"], "4714");
    assert_eq!(
        fields("/letter.rtf"),
        json!({"number": "4715", "title": "A letter", "price": "on request"})
    );
    assert_eq!(
        fields("/notes.txt"),
        json!({"number": "4716", "price": "on request"})
    );
    assert_eq!(fields("/lines.pdf")["number"], "4717");
    assert_eq!(fields("/lines.pdf")["price"], "5");
    assert_eq!(fields("/shifted.pdf")["number"], "4718");
    assert_eq!(fields("/scan.pdf")["title"], "A scan");
    assert_eq!(fields("/scan.pdf").get("price"), None);
    assert_eq!(fields("/torn.pdf"), json!({}));
}

#[test]
fn without_the_flag_documents_are_an_unsupported_type() {
    let web = Web::start();
    let site = web.site(HOST);
    site.serve(
        "/paper",
        document("application/pdf", pdf("A paper", "text")),
    )
    .serve("/hidden", document("text/html", pdf("A paper", "text")))
    .serve("/notes", document("text/plain", "number 7"));
    let work = Workplace::new();
    let urls = ["/paper", "/hidden", "/notes"].map(|path| site.url(path));
    crawl_command(&work, &web)
        .args(&urls)
        .finish()
        .expect_code(0);
    let outcomes = work.stored().outcomes();
    assert_eq!(outcomes[&urls[0]], "unsupported_type");
    assert_eq!(outcomes[&urls[1]], "unsupported_type");
    assert_eq!(outcomes[&urls[2]], "ok");
    assert!(stored_documents(&work).values().all(Value::is_null));
}

#[test]
fn documents_with_the_same_text_are_the_same_and_equal_bytes_are_kept_once() {
    let web = Web::start();
    let site = web.site(HOST);
    let text = "the same text";
    let [first, anew] = ["Draft", "Final"].map(|title| pdf(title, text));
    for (path, body) in [("/a.pdf", &first), ("/b.pdf", &first), ("/c.pdf", &anew)] {
        site.serve(path, document("application/pdf", body.clone()));
    }
    let work = Workplace::new();
    let urls = ["/a.pdf", "/b.pdf", "/c.pdf"].map(|path| site.url(path));
    let run = crawl_command(&work, &web)
        .arg("--keep-documents")
        .arg(work.path("kept"));
    run.args(&urls).finish().expect_code(0);

    let documents = stored_documents(&work);
    let [a, b, c] = urls.each_ref().map(|url| &documents[url]);
    assert_eq!(a["sha256"], b["sha256"]);
    assert_ne!(a["sha256"], c["sha256"]);
    assert_eq!(a["text_hash"], c["text_hash"]);
    let hashes = work
        .stored()
        .query_texts("SELECT DISTINCT content_hash FROM pages");
    assert_eq!(hashes.len(), 1, "pages are compared by the text");
    let mut kept = files_under(&work.path("kept"));
    kept.sort();
    assert_eq!(kept.len(), 2, "{kept:?}");
    for (stored, body) in [(a, &first), (c, &anew)] {
        let name = stored["sha256"].as_str().unwrap();
        let file = work
            .path("kept")
            .join(&name[..2])
            .join(&name[2..4])
            .join(name);
        assert_eq!(&std::fs::read(file).unwrap(), body);
    }
}

/// A workbook in the format XLS, written by a Python library.
fn make_workbook() -> Vec<u8> {
    let repository = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let python = format!("{repository}/.cache/office-tools/venv/bin/python");
    let script = format!("{repository}/tests/office/workbook.py");
    let written = Command::new(python).arg(script).output().expect("Python");
    assert!(written.status.success(), "{written:?}");
    written.stdout
}

#[needs(office_tools)]
#[test]
fn an_xls_of_another_program_is_read() {
    let web = Web::start();
    let site = web.site(HOST);
    site.serve(
        "/prices",
        document("application/vnd.ms-excel", make_workbook()),
    );
    let work = Workplace::new();
    let run = crawl_command(&work, &web).args(["--documents", &site.url("/prices")]);
    let found = |name: &str, pattern: &str| json!({"name": name, "processors": [{"type": "regex", "parameters": {"pattern": pattern}}]});
    let mapping = json!({
        "name": "papers",
        "url_patterns": [{"type": "host", "pattern": HOST}],
        "fields": [
            found("first", "(Contract .*)"), found("second", "(price\\t.*)"), found("third", "(2024-.*)"),
            found("last", "(row 1999 x*)"), found("long", "(yyy+)"),
        ],
    });
    work.write_json("mappings/papers.json", &mapping);
    run.finish().expect_code(0);
    let url = site.url("/prices");
    let stored = &stored_documents(&work)[&url];
    assert_eq!(
        (&stored["status"], &stored["type"], &stored["pages"]),
        (&json!("text"), &json!("xls"), &json!(3)),
        "{stored}"
    );
    let fields = &work.stored().pages()[&url].fields;
    assert_eq!(fields["first"], "Contract number 4718\tGröße\t日本");
    assert_eq!(fields["second"], "price\t42.5\t1000000");
    let third = fields["third"].as_str().expect("a text");
    assert!(third.starts_with("2024-01-31"), "{third}");
    assert_eq!(fields["last"], format!("row 1999 {}", "x".repeat(49)));
    let long = fields["long"].as_str().expect("a text");
    assert_eq!(long.len(), 30_000, "over several records");
}
