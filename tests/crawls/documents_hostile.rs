//! Tests documents that attack their reader. Each ends with the right status, in bounded time and memory, and the next
//! document is read normally.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;
use webfill_tests::office::{
    docx, open_document, pdf, pdf_bomb_of_blanks, pdf_bomb_of_digits, pdf_of, pdf_stream,
    pdf_with_content, xlsx, zip_package,
};
use webfill_tests::run::Running;
use webfill_tests::site::{Web, document};
use webfill_tests::workplace::Workplace;

const HOST: &str = "hostile.example";
const MIB: u64 = 1 << 20;

/// The memory that the reader may use for one document, and the memory that the program itself takes in addition.
const MEMORY_MIB: u64 = 128;
const PROGRAM_MIB: u64 = 160;

/// The path and the bytes of each document, and the statuses allowed for it.
fn hostile_documents() -> Vec<(&'static str, Vec<u8>, &'static [&'static str])> {
    let page = |content| pdf_with_content("Hostile", content);
    let catalog = b"<< /Type /Catalog /Pages 2 0 R >>".to_vec();
    let info = b"<< >>".to_vec();
    let own_parent = pdf_of(&[
        catalog.clone(),
        b"<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 2147483647 >>".to_vec(),
        info.clone(),
    ]);
    let circle = pdf_of(&[
        catalog,
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_vec(),
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R >>".to_vec(),
        b"5 0 R".to_vec(),
        b"4 0 R".to_vec(),
        info,
    ]);
    let promise = b"<< /Length 2147483647 >>\nstream\nBT ET\nendstream".to_vec();
    let nested = [&b"%PDF-1.4\n1 0 obj\n"[..], &b"[".repeat(3_000_000)].concat();
    let deep_xml = format!("<w:p>{}", "<w:x>".repeat(1_000_000));
    let zeros = vec![b' '; 700 << 20];
    let sheet = "<row r='1048576'><c r='XFD1048576'><v>7</v></c></row>";
    let cells = "<table:table><table:table-row table:number-rows-repeated='1000000000'>\
        <table:table-cell table:number-columns-repeated='1000000000'><text:p>7</text:p>\
        </table:table-cell></table:table-row></table:table>";
    let rtf = format!("{{\\rtf1 {}deep", "{".repeat(1_000_000));
    vec![
        (
            "/inflates.pdf",
            page(pdf_bomb_of_blanks(1 << 30)),
            &["too_large"],
        ),
        (
            "/digits.pdf",
            page(pdf_bomb_of_digits(300 << 20)),
            &["too_large"],
        ),
        ("/own_parent.pdf", own_parent, &["broken", "no_text"]),
        ("/circle.pdf", circle, &["broken", "no_text"]),
        ("/promise.pdf", page(promise), &["broken", "no_text"]),
        ("/nested.pdf", nested, &["broken", "too_large"]),
        (
            "/stream.pdf",
            page(pdf_stream("/Filter /FlateDecode", b"no zlib")),
            &["broken", "no_text"],
        ),
        (
            "/inflates.docx",
            zip_package(&[("word/document.xml", zeros)]),
            &["too_large"],
        ),
        ("/deep.docx", docx(&deep_xml), &["no_text", "broken"]),
        ("/rows.xlsx", xlsx("A1:XFD1048576", sheet), &["text"]),
        ("/rows.ods", open_document("spreadsheet", cells), &["text"]),
        ("/deep.rtf", rtf.into_bytes(), &["text"]),
    ]
}

#[test]
fn hostile_documents_end_with_their_status_and_the_next_one_is_read() {
    let web = Web::start();
    let site = web.site(HOST);
    let (mut urls, mut expected) = (Vec::new(), Vec::new());
    for (path, body, words) in hostile_documents() {
        expected.push((path, words));
        site.serve(path, document("application/octet-stream", body));
        let after = format!("{path}.after.pdf");
        site.serve(
            &after,
            document("application/pdf", pdf("Healthy", "healthy text")),
        );
        urls.extend([site.url(path), site.url(&after)]);
    }
    let work = Workplace::new();
    let run = work
        .crawl(&web)
        .replace_flag("--delay", "0.05")
        .replace_flag("--workers", "1")
        .arg("--documents");
    let mut running = run
        .env("WEBFILL_DOCUMENTS_MEMORY_MIB", MEMORY_MIB.to_string())
        .env("WEBFILL_DOCUMENTS_DEADLINE", "20")
        .time_limit(Duration::from_secs(400))
        .args(&urls)
        .start();
    let peak = measure_reader_peak(&mut running);
    running.finish().expect_code(0);

    assert!(peak > 0, "a reader was seen");
    assert!(
        peak < (MEMORY_MIB + PROGRAM_MIB) * MIB,
        "{} MiB",
        peak / MIB
    );
    for (path, words) in expected {
        let stored = document_status(&work, &site.url(path));
        assert!(words.contains(&stored.as_str()), "{path}: {stored}");
        let after = document_status(&work, &site.url(&format!("{path}.after.pdf")));
        assert_eq!(after, "text", "the document after {path}");
    }
}

/// A PDF with many pages that all show the same long drawing.
fn slow_pdf() -> Vec<u8> {
    const PAGES: usize = 20_000;
    let kids: String = (0..PAGES)
        .map(|page| format!("{} 0 R ", page + 4))
        .collect();
    let drawing = "q 1 0 0 1 5 5 cm 0 0 m 9 9 l S Q\n".repeat(2_000);
    let mut objects = vec![
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        format!("<< /Type /Pages /Kids [{kids}] /Count {PAGES} >>").into_bytes(),
        format!(
            "<< /Length {} >>\nstream\n{drawing}endstream",
            drawing.len()
        )
        .into_bytes(),
    ];
    let page =
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 3 0 R /Resources << >> >>";
    objects.resize(PAGES + 3, page.to_vec());
    pdf_of(&objects)
}

#[test]
fn a_document_that_takes_too_long_ends_at_its_deadline() {
    let web = Web::start();
    let site = web.site(HOST);
    site.serve("/slow.pdf", document("application/pdf", slow_pdf()));
    let work = Workplace::new();
    let url = site.url("/slow.pdf");
    let run = work
        .crawl(&web)
        .replace_flag("--delay", "0.05")
        .arg("--documents");
    let began = Instant::now();
    run.env("WEBFILL_DOCUMENTS_DEADLINE", "1")
        .arg(&url)
        .finish()
        .expect_code(0);
    assert_eq!(document_status(&work, &url), "too_large");
    assert!(began.elapsed() < Duration::from_secs(30));
}

/// The status of a document. Also prints the stored document, which contains the reason of the status.
fn document_status(work: &Workplace, url: &str) -> String {
    let query = format!("SELECT coalesce(document, '{{}}') FROM pages WHERE url = '{url}'");
    let document: Value = serde_json::from_str(&work.stored().query_texts(&query)[0]).unwrap();
    println!("{url}: {document}");
    document["status"].as_str().unwrap_or("none").to_owned()
}

/// The most memory in bytes that a reader process has used while the crawl ran. Readers have an empty environment, so
/// they are found as children of workers.
fn measure_reader_peak(running: &mut Running) -> u64 {
    let mut peak = 0;
    let deadline = Instant::now() + Duration::from_secs(390);
    while running.exit_status().is_none() && Instant::now() < deadline {
        for worker in running.processes_of_role("worker") {
            let children = format!("/proc/{0}/task/{0}/children", worker.pid);
            let children = fs::read_to_string(children).unwrap_or_default();
            for child in children.split_whitespace() {
                peak = peak.max(resident_peak(child));
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    peak
}

fn resident_peak(pid: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.unwrap_or_default() << 10
}
