//! Parsing and extraction on real pages, compared with libxml2 on the same pages in the same run.
//!
//! Both engines read each page in turn, five times. The figure of a page is the ratio of the two medians, and the
//! figure of all pages is the geometric mean of these ratios. Both engines compile their expressions once and return
//! every result as strings. The time for the whole page is the mapping engine's own: it also trims values and makes
//! links absolute, which libxml2 does not do.
//!
//!     extraction FOLDER                     the figures
//!     extraction FOLDER --results           all results as JSON lines, for compare.py

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use libxml::parser::{Parser, ParserOptions};
use libxml::xpath::{Context, Expression};
use webfill_bench::{Limit, Size, Verdict, report};
use webfill_document::{Document, Limits, XPath};
use webfill_mapping::{Engine, MappingSet, PageInput, PageKind, RequestedParts, Source};
use webfill_urls::Url;

type Failure = Box<dyn std::error::Error>;

const ROUNDS: usize = 5;
/// The number of slowest pages that are measured again, and how often each is then read.
const SLOWEST: usize = 5;
const ROUNDS_OF_SLOWEST: usize = 25;
const SMALLEST_PAGE: usize = 1024;
const PAGES_WANTED: usize = 100;

const MAPPING: &str = include_str!("../../extraction/mapping.json");
const EXPRESSIONS: &str = include_str!("../../extraction/expressions.txt");

fn main() -> Result<ExitCode, Failure> {
    let size = Size::from_env()?;
    let mut arguments = std::env::args().skip(1);
    let folder = arguments
        .next()
        .ok_or("usage: extraction FOLDER [--results]")?;
    let pages = read_pages(Path::new(&folder))?;
    if arguments.next().as_deref() == Some("--results") {
        print_results(&pages)?;
        return Ok(ExitCode::SUCCESS);
    }
    if pages.len() < PAGES_WANTED {
        let found = pages.len();
        return Err(format!(
            "{folder} holds {found} pages, {PAGES_WANTED} are wanted; tests/bench/extraction/fetch-pages gets them"
        )
        .into());
    }
    let (ours, peer) = (Ours::new()?, Peer::new()?);
    let measured: Vec<Measured> = pages
        .iter()
        .map(|page| measure(page, &ours, &peer, ROUNDS))
        .collect::<Result<_, _>>()?;
    let mut verdicts = judge_times(&pages, &measured);
    verdicts.push(judge_slowest(&pages, &measured, &ours, &peer)?);
    Ok(report(&verdicts, size))
}

struct Page {
    name: String,
    text: String,
}

/// Reads all pages below the folder, sorted by name. Their bytes are decoded before the measurement, so that both
/// engines read the same text.
fn read_pages(folder: &Path) -> Result<Vec<Page>, Failure> {
    let mut folders = vec![folder.to_owned()];
    let mut files: Vec<PathBuf> = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "html")
            {
                files.push(path);
            }
        }
    }
    files.sort();
    let mut pages = Vec::new();
    for file in files {
        let text = String::from_utf8_lossy(&std::fs::read(&file)?).into_owned();
        let name = file
            .strip_prefix(folder)
            .unwrap_or(&file)
            .display()
            .to_string();
        if text.len() >= SMALLEST_PAGE {
            // Remove NUL characters, because libxml2 before 2.14 ends a page at the first one.
            pages.push(Page {
                name,
                text: text.replace('\0', " "),
            });
        }
    }
    Ok(pages)
}

/// The expressions in the expressions file: all lines that are neither empty nor comments.
fn many_expressions() -> impl Iterator<Item = &'static str> {
    EXPRESSIONS
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// The expressions of the mapping, in the order of its file.
fn mapping_expressions() -> Result<Vec<String>, Failure> {
    let mapping: serde_json::Value = serde_json::from_str(MAPPING)?;
    let mut found = Vec::new();
    let chains = ["url_parsers", "fields"]
        .into_iter()
        .filter_map(|key| mapping[key].as_array());
    for chain in chains.flatten() {
        let expression = &chain["processors"][0]["parameters"]["expression"];
        found.push(
            expression
                .as_str()
                .ok_or("each chain begins with an XPath")?
                .to_owned(),
        );
    }
    Ok(found)
}

struct Ours {
    engine: Engine,
    url: Url,
    mapping: Vec<XPath>,
    many: Vec<XPath>,
}

impl Ours {
    fn new() -> Result<Ours, Failure> {
        let source = Source {
            name: "mapping.json".into(),
            text: MAPPING.into(),
        };
        let set = Arc::new(MappingSet::from_sources(vec![source])?);
        let mapping = mapping_expressions()?;
        Ok(Ours {
            engine: Engine::new(set, webfill_mapping::Limits::default()),
            url: Url::parse("https://bench.example/some/page")?,
            mapping: mapping
                .iter()
                .map(|text| XPath::compile(text))
                .collect::<Result<_, _>>()?,
            many: many_expressions()
                .map(XPath::compile)
                .collect::<Result<_, _>>()?,
        })
    }
}

struct Peer {
    mapping: Vec<Expression>,
    many: Vec<Expression>,
}

impl Peer {
    fn new() -> Result<Peer, Failure> {
        let mapping = mapping_expressions()?;
        Ok(Peer {
            mapping: mapping
                .iter()
                .map(|text| Expression::compile(text))
                .collect::<Result<_, _>>()?,
            many: many_expressions()
                .map(Expression::compile)
                .collect::<Result<_, _>>()?,
        })
    }
}

/// The times for one page: for each part, and for the whole page from its text until its memory is released.
#[derive(Clone, Copy, Default)]
struct Times {
    parse: Duration,
    mapping: Duration,
    many: Duration,
    page: Duration,
}

struct Measured {
    ours: Times,
    peer: Times,
}

fn measure(page: &Page, ours: &Ours, peer: &Peer, rounds: usize) -> Result<Measured, Failure> {
    let mut times = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        times.0.push(run_ours(&page.text, ours)?);
        times.1.push(run_peer(&page.text, peer)?);
    }
    Ok(Measured {
        ours: median_times(&times.0),
        peer: median_times(&times.1),
    })
}

fn median_times(times: &[Times]) -> Times {
    let median = |part: fn(&Times) -> Duration| {
        let mut values: Vec<Duration> = times.iter().map(part).collect();
        values.sort();
        values[values.len() / 2]
    };
    Times {
        parse: median(|times| times.parse),
        mapping: median(|times| times.mapping),
        many: median(|times| times.many),
        page: median(|times| times.page),
    }
}

/// Measures webfill's engine. Each part gets a new document, so that no part benefits from indexes of another.
fn run_ours(text: &str, ours: &Ours) -> Result<Times, Failure> {
    let limits = Limits::default();
    let page = measure_time(|| {
        let page = PageInput {
            url: &ours.url,
            kind: PageKind::Html,
            text,
        };
        let wants = RequestedParts {
            mapped_links: true,
            ..RequestedParts::default()
        };
        Ok(ours.engine.extract(page, wants)?.links.len())
    })?;
    let started = Instant::now();
    let document = Document::parse_html(text, &limits);
    let parse = started.elapsed();
    let mapping = measure_time(|| evaluate_ours(&document, &ours.mapping))?;
    let document = Document::parse_html(text, &limits);
    let many = measure_time(|| evaluate_ours(&document, &ours.many))?;
    Ok(Times {
        parse,
        mapping,
        many,
        page,
    })
}

fn run_peer(text: &str, peer: &Peer) -> Result<Times, Failure> {
    let parser = Parser::default_html();
    let page = measure_time(|| {
        let document = parser.parse_string_with_options(text, peer_options())?;
        evaluate_peer(&document, &peer.mapping)
    })?;
    let started = Instant::now();
    let document = parser.parse_string_with_options(text, peer_options())?;
    let parse = started.elapsed();
    let mapping = measure_time(|| evaluate_peer(&document, &peer.mapping))?;
    let document = parser.parse_string_with_options(text, peer_options())?;
    let many = measure_time(|| evaluate_peer(&document, &peer.many))?;
    Ok(Times {
        parse,
        mapping,
        many,
        page,
    })
}

fn peer_options() -> ParserOptions<'static> {
    ParserOptions {
        encoding: Some("utf-8"),
        no_error: true,
        no_warning: true,
        huge: true,
        compact: true,
        ..ParserOptions::default()
    }
}

fn measure_time(work: impl FnOnce() -> Result<usize, Failure>) -> Result<Duration, Failure> {
    let started = Instant::now();
    std::hint::black_box(work()?);
    Ok(started.elapsed())
}

/// Evaluates the expressions in webfill's engine, and converts each result to a string. Returns the number of results.
fn evaluate_ours(document: &Document, expressions: &[XPath]) -> Result<usize, Failure> {
    let mut results = 0;
    for expression in expressions {
        for value in document.evaluate(expression)? {
            std::hint::black_box(value.text().into_owned());
            results += 1;
        }
    }
    Ok(results)
}

fn evaluate_peer(
    document: &libxml::tree::Document,
    expressions: &[Expression],
) -> Result<usize, Failure> {
    let context = Context::new(document).map_err(|()| "libxml2 gives no context")?;
    let mut results = 0;
    for expression in expressions {
        let value = context.evaluate_compiled(expression)?;
        if value.get_number_of_nodes() > 0 {
            results += std::hint::black_box(value.get_nodes_as_str()).len();
        } else {
            results += std::hint::black_box(value.to_string()).len().min(1);
        }
    }
    Ok(results)
}

/// Prints the mean time of each part, and judges the ratios.
fn judge_times(pages: &[Page], measured: &[Measured]) -> Vec<Verdict> {
    let bytes: usize = pages.iter().map(|page| page.text.len()).sum();
    println!(
        "(a) extraction: {} real pages, {:.1} MB, against libxml2; medians of {ROUNDS}, geometric means",
        pages.len(),
        bytes as f64 / 1e6
    );
    println!("{:40}{:>12}{:>12}", "", "ours ms", "libxml2 ms");
    let many = format!("{} expressions", many_expressions().count());
    let part =
        |name: &str, part: fn(&Times) -> Duration, limit| judge_part(name, measured, part, limit);
    vec![
        part("parse and build", |times| times.parse, Limit::AtMost(1.25)),
        part(
            "mapping of 2 parsers and 6 fields",
            |times| times.mapping,
            Limit::AtMost(0.7),
        ),
        part(
            "whole page, by the mapping engine",
            |times| times.page,
            Limit::AtMost(1.15),
        ),
        part(&many, |times| times.many, Limit::None),
    ]
}

/// Judges the slowest page compared with libxml2. The slowest pages are measured again in more rounds, because the
/// worst of a hundred medians may be due to chance.
fn judge_slowest(
    pages: &[Page],
    measured: &[Measured],
    ours: &Ours,
    peer: &Peer,
) -> Result<Verdict, Failure> {
    let whole = |measured: &Measured| ratio(measured.ours.page, measured.peer.page);
    let mut slowest: Vec<_> = pages.iter().zip(measured).collect();
    slowest.sort_by(|one, other| whole(other.1).total_cmp(&whole(one.1)));
    let mut worst = (0.0, "");
    for (page, _) in &slowest[..SLOWEST] {
        let again = whole(&measure(page, ours, peer, ROUNDS_OF_SLOWEST)?);
        if again > worst.0 {
            worst = (again, &page.name);
        }
    }
    println!("the slowest page beside libxml2 is {}", worst.1);
    Ok(Verdict {
        what: "(a) slowest page, as a multiple of libxml2's time".into(),
        figure: worst.0,
        limit: Limit::AtMost(5.0),
    })
}

/// Prints the mean times of one part, and judges the geometric mean of the pages' ratios.
fn judge_part(
    name: &str,
    measured: &[Measured],
    part: fn(&Times) -> Duration,
    limit: Limit,
) -> Verdict {
    let count = measured.len() as f64;
    let mean_ms = |times: fn(&Measured) -> &Times| {
        measured
            .iter()
            .map(|page| part(times(page)).as_secs_f64() * 1e3)
            .sum::<f64>()
            / count
    };
    let logarithms = measured
        .iter()
        .map(|page| ratio(part(&page.ours), part(&page.peer)).ln());
    let geometric = (logarithms.sum::<f64>() / count).exp();
    let (ours, peer) = (mean_ms(|page| &page.ours), mean_ms(|page| &page.peer));
    println!("{name:40}{ours:>12.3}{peer:>12.3}");
    Verdict {
        what: format!("(a) {name}, as a multiple of libxml2's time"),
        figure: geometric,
        limit,
    }
}

fn ratio(ours: Duration, peer: Duration) -> f64 {
    ours.as_secs_f64() / peer.as_secs_f64()
}

/// Prints one JSON line per page and expression, with the results as strings.
fn print_results(pages: &[Page]) -> Result<(), Failure> {
    let compiled: Vec<XPath> = many_expressions()
        .map(XPath::compile)
        .collect::<Result<_, _>>()?;
    for page in pages {
        let document = Document::parse_html(&page.text, &Limits::default());
        for expression in &compiled {
            let values = document.evaluate(expression)?;
            let texts: Vec<_> = values.iter().map(|value| value.text()).collect();
            let line = serde_json::json!([page.name, expression.source(), texts]);
            println!("{line}");
        }
    }
    Ok(())
}
