//! What recognising blocks costs on healthy pages, beside parsing the same pages in the same run,
//! and how many of them are mistaken for blocks.
//!
//! Each page is judged and parsed in turn; what counts is the quickest of each. Pages are those of
//! the extraction benchmark.
//!
//!     blocks FOLDER

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use webfill_bench::{Limit, Size, Verdict, report};
use webfill_document::{Document, Limits};
use webfill_urls::Url;
use webfill_worker::blocks::{self, HeaderMap, Response, Sign};

type Failure = Box<dyn std::error::Error>;

/// Judging takes microseconds, and is repeated for as long as a clock can tell.
const ROUNDS: usize = 25;
const LARGE_BYTES: usize = 100_000;
const PAGES_WANTED: usize = 100;

fn main() -> Result<ExitCode, Failure> {
    let size = Size::from_env()?;
    let folder = std::env::args().nth(1).ok_or("usage: blocks FOLDER")?;
    let pages = read_pages(Path::new(&folder))?;
    if pages.len() < PAGES_WANTED {
        let found = pages.len();
        return Err(format!(
            "{folder} holds {found} pages, {PAGES_WANTED} are wanted; bench/extraction/fetch-pages gets them"
        )
        .into());
    }
    let url = Url::parse("https://site.example/page")?;
    let mistaken = pages.iter().filter_map(|page| judge(&url, page));
    let mistaken = mistaken
        .inspect(|sign| println!("mistaken: {sign:?}"))
        .count();
    let measured: Vec<Measured> = pages.iter().map(|page| measure(&url, page)).collect();
    let verdicts = [
        verdict(
            "healthy pages mistaken for blocks",
            mistaken as f64,
            Limit::AtMost(0.0),
        ),
        verdict(
            "share of parsing, all pages, percent",
            share(&measured, 0),
            Limit::AtMost(5.0),
        ),
        verdict(
            "share of parsing, pages over 100 kB, percent",
            share(&measured, LARGE_BYTES),
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
        black_box(judge(url, black_box(page)));
        measured.judging = measured.judging.min(start.elapsed());
        let start = Instant::now();
        black_box(Document::parse_html(black_box(page), &Limits::default()));
        measured.parsing = measured.parsing.min(start.elapsed());
    }
    measured
}

fn judge(url: &Url, body: &str) -> Option<Sign> {
    blocks::judge(&Response {
        status: 200,
        headers: &HeaderMap::new(),
        url,
        redirect: None,
        body,
        is_html: true,
    })
}

/// Time of judging in percent of the time of parsing, over pages of at least `bytes`.
fn share(measured: &[Measured], bytes: usize) -> f64 {
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

/// Every page below the folder.
fn read_pages(folder: &Path) -> Result<Vec<String>, Failure> {
    let mut folders: Vec<PathBuf> = vec![folder.to_owned()];
    let mut pages = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "html") {
                pages.push(String::from_utf8_lossy(&std::fs::read(&path)?).into_owned());
            }
        }
    }
    Ok(pages)
}
