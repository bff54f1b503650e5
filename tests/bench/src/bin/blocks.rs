//! Measures the recognition of blocks: healthy pages that are mistaken for blocks, signatures that miss their own
//! sample page, and the cost compared with parsing the same pages.
//!
//! Each page is judged and parsed in turn, and the fastest run of each counts. The pages in FOLDER are those of the
//! extraction benchmark. The pages of each MANUAL are judged in their order, as if the manual were a site.
//!
//!     blocks FOLDER MANUAL...

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use webfill_bench::{Limit, Size, Verdict, report};
use webfill_document::{Document, Limits};
use webfill_urls::Url;
use webfill_worker::blocks::{
    self, HeaderMap, Inspected, RepeatedPages, Response, Sample, Sign, Signatures,
};

type Failure = Box<dyn std::error::Error>;

/// The number of times that each page is judged and parsed; the fastest run of each counts. Pages above `LARGE_BYTES`
/// are also counted separately.
const ROUNDS: usize = 25;
const LARGE_BYTES: usize = 100_000;
const PAGES_WANTED: usize = 100;
const HEALTHY_PAGES_WANTED: f64 = 200.0;

/// The folder with the sample pages of the signatures (the known marks of blocks).
const SAMPLES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../worker/src/blocks/samples"
);

fn main() -> Result<ExitCode, Failure> {
    let size = Size::from_env()?;
    let mut folders = std::env::args().skip(1);
    let folder = folders.next().ok_or("usage: blocks FOLDER MANUAL...")?;
    let pages = read_pages(Path::new(&folder))?;
    if pages.len() < PAGES_WANTED {
        let found = pages.len();
        return Err(format!(
            "{folder} holds {found} pages, {PAGES_WANTED} are wanted; tests/bench/extraction/fetch-pages gets them"
        )
        .into());
    }
    let url = Url::parse("https://site.example/page")?;
    let mut recognition = Recognition::default();
    // Each page counts as a separate site, because the pages in the folder come from many sites.
    for page in &pages {
        recognition.check_site(std::slice::from_ref(page))?;
    }
    for manual in folders {
        recognition.check_site(&read_pages(Path::new(&manual))?)?;
    }
    let measured: Vec<Measured> = pages.iter().map(|page| measure(&url, page)).collect();
    let verdicts = [
        verdict(
            "healthy pages judged",
            recognition.judged as f64,
            Limit::AtLeast(HEALTHY_PAGES_WANTED),
        ),
        verdict(
            "healthy pages mistaken for blocks",
            recognition.mistaken as f64,
            Limit::AtMost(0.0),
        ),
        verdict(
            "signatures that miss their own page",
            count_signatures_missing_their_page()? as f64,
            Limit::AtMost(0.0),
        ),
        verdict(
            "share of parsing, all pages, percent",
            judging_percent(&measured, 0),
            Limit::AtMost(5.0),
        ),
        verdict(
            "share of parsing, pages over 100 kB, percent",
            judging_percent(&measured, LARGE_BYTES),
            Limit::AtMost(5.0),
        ),
        verdict(
            "mean per page, microseconds",
            mean_micros(&measured),
            Limit::None,
        ),
        verdict(
            "slowest page, microseconds",
            slowest_micros(&measured),
            Limit::None,
        ),
    ];
    Ok(report(&verdicts, size))
}

/// The number of healthy pages that were judged, and how many of them were mistaken for blocks.
#[derive(Default)]
struct Recognition {
    judged: usize,
    mistaken: usize,
}

impl Recognition {
    /// Judges the pages of one site in order, and counts the mistakes.
    fn check_site(&mut self, pages: &[String]) -> Result<(), Failure> {
        let mut repeated = RepeatedPages::default();
        for (number, page) in pages.iter().enumerate() {
            let url = Url::parse(&format!("https://site.example/{number}"))?;
            let response = html_response(&url, page);
            let inspected = Inspected::new(&response);
            let sign = blocks::find_block(&inspected);
            if let Some(sign) =
                sign.or_else(|| repeated.note_answer("site.example", &inspected, true))
            {
                println!("mistaken: {sign:?}");
                self.mistaken += 1;
            }
            self.judged += 1;
        }
        Ok(())
    }
}

fn count_signatures_missing_their_page() -> Result<usize, Failure> {
    let mut missed = 0;
    for signature in &Signatures::built_in().signatures {
        let text = std::fs::read_to_string(Path::new(SAMPLES).join(&signature.sample))?;
        let sign = Sample::read(&text).and_then(|sample| sample.find_block());
        if sign.is_none_or(|sign| sign.signature != signature.id) {
            println!("missed: {}", signature.id);
            missed += 1;
        }
    }
    Ok(missed)
}

struct Measured {
    bytes: usize,
    judging: Duration,
    parsing: Duration,
}

fn measure(url: &Url, page: &str) -> Measured {
    let mut measured = Measured {
        bytes: page.len(),
        judging: Duration::MAX,
        parsing: Duration::MAX,
    };
    for _ in 0..ROUNDS {
        let start = Instant::now();
        black_box(find_block(url, black_box(page)));
        measured.judging = measured.judging.min(start.elapsed());
        let start = Instant::now();
        black_box(Document::parse_html(black_box(page), &Limits::default()));
        measured.parsing = measured.parsing.min(start.elapsed());
    }
    measured
}

fn find_block(url: &Url, body: &str) -> Option<Sign> {
    blocks::find_block(&Inspected::new(&html_response(url, body)))
}

fn html_response<'a>(url: &'a Url, body: &'a str) -> Response<'a> {
    static NO_HEADERS: LazyLock<HeaderMap> = LazyLock::new(HeaderMap::new);
    Response {
        status: 200,
        headers: &NO_HEADERS,
        url,
        redirect: None,
        body,
        is_html: true,
    }
}

/// The time for judging as a percentage of the time for parsing, over pages of at least `bytes` bytes.
fn judging_percent(measured: &[Measured], bytes: usize) -> f64 {
    let counted = || measured.iter().filter(|page| page.bytes >= bytes);
    let judging: Duration = counted().map(|page| page.judging).sum();
    let parsing: Duration = counted().map(|page| page.parsing).sum();
    100.0 * judging.as_secs_f64() / parsing.as_secs_f64()
}

fn mean_micros(measured: &[Measured]) -> f64 {
    let sum: Duration = measured.iter().map(|page| page.judging).sum();
    sum.as_secs_f64() * 1e6 / measured.len() as f64
}

fn slowest_micros(measured: &[Measured]) -> f64 {
    let slowest = measured.iter().map(|page| page.judging).max();
    slowest.unwrap_or_default().as_secs_f64() * 1e6
}

fn verdict(what: &str, figure: f64, limit: Limit) -> Verdict {
    Verdict {
        what: what.into(),
        figure,
        limit,
    }
}

/// Reads all pages below the folder, in the order of their names.
fn read_pages(folder: &Path) -> Result<Vec<String>, Failure> {
    let mut folders: Vec<PathBuf> = vec![folder.to_owned()];
    let mut paths = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "html") {
                paths.push(path);
            }
        }
    }
    paths.sort();
    let read = |path| Ok(String::from_utf8_lossy(&std::fs::read(path)?).into_owned());
    paths.iter().map(read).collect()
}
