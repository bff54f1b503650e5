//! Tests all signatures with every sample page, and with hostile pages.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::header::HeaderMap;

use super::*;
use crate::cpu_time::measure_cpu_time;

fn read_sample(path: &Path) -> Sample {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    Sample::read(&text).unwrap_or_else(|| panic!("{path:?} is no sample"))
}

fn samples_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/blocks/samples")
}

fn sample_files(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(samples_folder().join(folder)).expect("the folder is there");
    entries
        .map(|entry| entry.expect("it is readable").path())
        .collect()
}

fn find_block_in_page(body: &str) -> Option<Sign> {
    let url = Url::parse("https://site.example/page").unwrap();
    find_block(&Inspected::new(&Response {
        status: 200,
        headers: &HeaderMap::new(),
        url: &url,
        redirect: None,
        body,
        is_html: true,
    }))
}

#[test]
fn every_signature_recognises_its_sample_and_not_its_healthy_counterpart() {
    for signature in &Signatures::built_in().signatures {
        let sign = read_sample(&samples_folder().join(&signature.sample)).find_block();
        let found = sign.as_ref().map(|sign| (sign.signature, sign.grade));
        assert_eq!(
            found,
            Some((signature.id.as_str(), signature.grade)),
            "{sign:?}"
        );
        let healthy = read_sample(&samples_folder().join(&signature.healthy)).find_block();
        assert_eq!(healthy, None, "{}", signature.healthy);
    }
}

#[test]
fn every_blocked_sample_is_recognised_by_the_signature_in_its_name() {
    for path in sample_files("blocked") {
        let name = path.file_name().unwrap().to_str().unwrap();
        let sign = read_sample(&path).find_block();
        let found = sign.map(|sign| sign.signature);
        assert_eq!(found, name.split('.').next(), "{name}");
    }
}

#[test]
fn no_healthy_sample_is_recognised() {
    for path in sample_files("healthy") {
        assert_eq!(read_sample(&path).find_block(), None, "{path:?}");
    }
}

#[test]
fn evidence_is_short_and_names_the_findings() {
    for path in sample_files("blocked") {
        let evidence = read_sample(&path).find_block().unwrap().evidence;
        assert!((10..=200).contains(&evidence.len()), "{path:?}: {evidence}");
        assert!(!evidence.contains(char::is_control), "{path:?}: {evidence}");
    }
    let sample = samples_folder().join("blocked/aws-waf-action.http");
    let sign = read_sample(&sample).find_block().unwrap();
    assert_eq!(sign.evidence, "x-amzn-waf-action: challenge");
    let version = Signatures::built_in().version;
    assert_eq!(
        sign.describe(),
        format!("x-amzn-waf-action: challenge (signature aws-waf-action of list {version})")
    );
}

#[test]
fn a_body_that_was_not_read_is_judged_by_status_and_headers_alone() {
    let sample = read_sample(&samples_folder().join("blocked/cloudflare-mitigated.http"));
    let response = |status, headers| Response {
        status,
        headers,
        url: &sample.url,
        redirect: None,
        body: "",
        is_html: true,
    };
    assert!(find_block(&Inspected::new(&response(403, &sample.headers))).is_some());
    let none = HeaderMap::new();
    for status in [200, 204, 401, 403, 404, 429, 500, 503] {
        assert_eq!(
            find_block(&Inspected::new(&response(status, &none))),
            None,
            "{status}"
        );
    }
}

#[test]
fn a_large_page_is_no_short_page_however_little_it_shows_at_first() {
    let challenge = "<script>location.reload()</script>";
    assert!(find_block_in_page(challenge).is_some());
    let large = format!(
        "{challenge}<style>{}</style>",
        "p{} ".repeat(BEGINNING_BYTES / 4)
    );
    assert_eq!(find_block_in_page(&large), None);
    assert!(!is_short(&large));
    assert!(is_short(challenge));
    assert!(!is_short(&"<p>text".repeat(SHORT_CHARACTERS)));
}

#[test]
fn only_the_beginning_of_a_body_is_inspected() {
    let filler = "é".repeat(BEGINNING_BYTES);
    let page = format!("<p>{filler}<script>window._cf_chl_opt={{}}</script>");
    assert_eq!(find_block_in_page(&page), None);
}

/// Pages that repeat one thing until they are much longer than the inspected beginning.
#[test]
fn hostile_pages_cost_no_more_than_a_moment() {
    let url = Url::parse("https://site.example/page").unwrap();
    let once = [
        "<",
        "<a",
        "<!",
        "<!--",
        "</",
        "</script",
        "<script>",
        "<title>",
        "<a b='",
        "<a b=\"c\" ",
        " a=b",
        "\"",
        "='",
        "= ",
        "\0",
        "\u{fffd}",
        "é",
        "&",
        "<meta http-equiv=refresh content=",
        "<meta http-equiv=refresh content='0;url=?'>",
        "<p>",
        "x ",
        "<script>location",
        "location ",
        "location.href='?",
        "location.href='?';",
        "document.cookie",
        "document.cookie=1;location='#'",
        "<div class=g-recaptcha>",
        "<div class='a a a",
        "<input ",
        "<template>",
        "_cf_chl_opt",
    ];
    let prefixes = ["", "<script>", "<a ", "<title>", "<!--", "<meta content='"];
    for (prefix, piece) in prefixes
        .iter()
        .flat_map(|prefix| once.map(|piece| (*prefix, piece)))
    {
        let page = format!("{prefix}{}", piece.repeat(BEGINNING_BYTES / piece.len()));
        for status in [200, 403] {
            let response = Response {
                status,
                headers: &HeaderMap::new(),
                url: &url,
                redirect: Some(&page),
                body: &page,
                is_html: true,
            };
            // Quadratic time over 64 KiB takes seconds, even optimised.
            let (_, took) = measure_cpu_time(|| find_block(&Inspected::new(&response)));
            assert!(
                took < Duration::from_millis(700),
                "{prefix}{piece}...: {took:?}"
            );
        }
    }
}

#[test]
fn every_beginning_of_every_sample_is_judged_without_a_panic() {
    for path in sample_files("blocked")
        .into_iter()
        .chain(sample_files("healthy"))
    {
        let mut sample = read_sample(&path);
        let body = std::mem::take(&mut sample.body);
        for end in (0..=body.len())
            .rev()
            .filter(|end| body.is_char_boundary(*end))
        {
            sample.body = body[..end].to_owned();
            sample.find_block();
        }
    }
}

#[test]
fn bytes_that_are_no_text_are_judged_without_a_panic() {
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    for _ in 0..500 {
        let bytes: Vec<u8> = (0..2000)
            .map(|_| {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                // Half of the bytes are characters that markup consists of.
                match seed & 1 {
                    0 => b"<>\"'=/!- \0metascriptlocation"[(seed >> 8) as usize % 28],
                    _ => (seed >> 16) as u8,
                }
            })
            .collect();
        find_block_in_page(&String::from_utf8_lossy(&bytes));
    }
}
