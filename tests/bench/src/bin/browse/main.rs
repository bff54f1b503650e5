//! How long people wait when they browse a large store. It requests the overview by HTTP: first from a freshly started
//! dashboard, then again, both while the indexes of lists are missing and after they were created. It also measures
//! single reads: those for the overview on a new connection, and those for lists at several positions in the store.
//!
//! SQL creates the store in a folder for temporary files, at about 700 bytes a page, plus the indexes. With `--keep
//! FILE`, the store is that file, which is created if it is missing and is not removed.
//!
//!     browse [--pages MILLIONS = 10] [--keep FILE]

mod made;
mod over_http;
mod reads;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use webfill_bench::{Limit, Size, Verdict, report};
use webfill_store::{StoreUri, open, open_to_browse};

use made::Made;

type Failure = Box<dyn std::error::Error>;

/// The longest wait for each read that counts as good, in milliseconds.
const WAITED: f64 = 200.0;

struct Arguments {
    pages: u64,
    keep: Option<PathBuf>,
}

fn main() -> Result<ExitCode, Failure> {
    let size = Size::from_env()?;
    let arguments = parse_arguments(std::env::args().skip(1), size)?;
    let folder = tempfile::tempdir()?;
    let file = arguments
        .keep
        .unwrap_or_else(|| folder.path().join("webfill.db"));
    let runtime = tokio::runtime::Runtime::new()?;
    let made = Made {
        pages: arguments.pages,
    };
    let verdicts = runtime.block_on(measure(&file, &made))?;
    Ok(report(&verdicts, size))
}

fn parse_arguments(
    mut args: impl Iterator<Item = String>,
    size: Size,
) -> Result<Arguments, Failure> {
    let mut arguments = Arguments {
        pages: size.pick(10_000_000, 200_000),
        keep: None,
    };
    while let Some(name) = args.next() {
        match (name.as_str(), args.next()) {
            ("--pages", Some(millions)) => {
                arguments.pages = (millions.parse::<f64>()? * 1_000_000.0) as u64;
            }
            ("--keep", Some(file)) => arguments.keep = Some(file.into()),
            _ => return Err(format!("unknown or unfinished argument `{name}`").into()),
        }
    }
    Ok(arguments)
}

async fn measure(file: &Path, made: &Made) -> Result<Vec<Verdict>, Failure> {
    let uri = StoreUri::Sqlite(file.to_owned());
    if !file.exists() {
        drop(open(&uri, None).await?);
        let began = Instant::now();
        made.fill(file)?;
        println!(
            "made {} pages in {:.0} s",
            made.pages,
            began.elapsed().as_secs_f64()
        );
    }
    let mut verdicts = Vec::new();
    verdicts.extend(measure_dashboard("while indexes are made", file)?);
    let bytes = std::fs::metadata(file)?.len();
    let began = Instant::now();
    open_to_browse(&uri)
        .await?
        .browse
        .create_missing_indexes()
        .await?;
    let prepared_s = began.elapsed().as_secs_f64();
    let indexed = std::fs::metadata(file)?.len();
    println!(
        "indexes made in {prepared_s:.1} s; {:.0} bytes a page, {:.0} of them indexes",
        indexed as f64 / made.pages as f64,
        indexed.saturating_sub(bytes) as f64 / made.pages as f64,
    );
    verdicts.extend(measure_dashboard("with all indexes", file)?);
    for (what, waited) in reads::measure(&uri, made).await? {
        verdicts.push(verdict_of_wait(
            &format!("{what}: the longest wait"),
            waited,
        ));
    }
    Ok(verdicts)
}

fn measure_dashboard(when: &str, file: &Path) -> Result<[Verdict; 2], Failure> {
    let waited = over_http::measure_overview(file)?;
    Ok([
        verdict_of_wait(
            &format!("the overview by HTTP {when}: the first wait"),
            waited.first,
        ),
        verdict_of_wait(
            &format!("the overview by HTTP {when}: the longest later"),
            waited.later,
        ),
    ])
}

fn verdict_of_wait(what: &str, waited: Duration) -> Verdict {
    Verdict {
        what: format!("{what}, ms"),
        figure: waited.as_secs_f64() * 1_000.0,
        limit: Limit::AtMost(WAITED),
    }
}
