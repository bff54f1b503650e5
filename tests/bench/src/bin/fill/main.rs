//! Completing a table, by `webfill fill` as people run it: coverage, precision, doubts, time and memory on catalogues
//! whose truth is known.
//!
//! Four sites in four layouts have the same number of pages each. A table links to all of them; some of its values are
//! deleted, and some of the rest replaced by those of other rows. The outputs are judged against the values that the
//! pages are made of. Then [tables of few rows](few), from made and from real sites, are measured in the same way.
//!
//!     fill                      all of it
//!     fill many | few | real    one part: many rows, few rows of made sites, few rows of those of LEARN_PAGES
//!     fill --draws N --show     few rows drawn so many times, and each value that is lost or wrong
//!     fill --keep DIR           the tables and all outputs are kept in this new folder

mod calibration;
mod catalogue;
mod few;
mod judging;
mod running;
mod web;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use catalogue::{Catalogue, Table};
use few::Reached;
use judging::FillQuality;
use running::{accept_all, fill, remove_mappings};
use webfill_bench::sites::Failure;
use webfill_bench::{Limit, Size, Verdict, report};

/// A figure to measure, with its goal and its limit. The goal is what the command should reach. The limit is what it
/// reaches at present. If the goal is missed, the report says so.
struct Aim {
    what: &'static str,
    goal: Limit,
    limit: Limit,
}

/// A way to spoil a table: the shares of values that are deleted or wrong.
#[derive(Clone, Copy)]
struct Draw {
    name: &'static str,
    deleted: f64,
    /// The share of wrong values among those that are not deleted.
    wrong: f64,
}

const USUAL: Draw = Draw {
    name: "40 % deleted, 10 % wrong",
    deleted: 0.4,
    wrong: 0.1,
};
const SPARSE: Draw = Draw {
    name: "90 % deleted, 10 % wrong",
    deleted: 0.9,
    wrong: 0.1,
};
const DIRTY: Draw = Draw {
    name: "40 % deleted, 30 % wrong",
    deleted: 0.4,
    wrong: 0.3,
};

const COVERAGE: Aim = Aim {
    what: "gaps filled, share",
    goal: Limit::AtLeast(0.985),
    limit: Limit::AtLeast(0.75),
};
const PRECISION_OF_USUAL: Aim = Aim {
    what: "filled values that are right, share",
    goal: Limit::AtLeast(0.992),
    limit: Limit::AtLeast(0.992),
};
const PRECISION: Aim = Aim {
    what: "filled values that are right, share",
    goal: Limit::AtLeast(0.985),
    limit: Limit::AtLeast(0.985),
};
const RIGHT_ROWS: Aim = Aim {
    what: "rows wholly right once the doubts are accepted, share",
    goal: Limit::AtLeast(0.95),
    limit: Limit::AtLeast(0.85),
};
/// The share of wrong known values that are listed as doubts. Only values whose page was fetched are counted, here and
/// in `RIGHT_LISTED`.
const WRONG_LISTED: Aim = Aim {
    what: "wrong known values that are listed, share",
    goal: Limit::AtLeast(0.99),
    limit: Limit::AtLeast(0.75),
};
const RIGHT_LISTED: Aim = Aim {
    what: "right known values that are listed, share",
    goal: Limit::AtMost(0.005),
    limit: Limit::AtMost(0.005),
};
const SECONDS: Aim = Aim {
    what: "learning and filling beside the fetching, s on a core",
    goal: Limit::AtMost(10.0),
    limit: Limit::AtMost(10.0),
};
const MEMORY: Aim = Aim {
    what: "largest memory of the command, MiB",
    goal: Limit::AtMost(256.0),
    limit: Limit::AtMost(256.0),
};

fn main() -> Result<ExitCode, Failure> {
    let size = Size::from_env()?;
    let options = Options::from_args(size)?;
    let temporary = tempfile::tempdir()?;
    let folder = options.kept.as_deref().unwrap_or(temporary.path());
    let mut verdicts = Vec::new();
    if options.wants("many") {
        verdicts.extend(measure_many(size, folder)?);
    }
    let measure = |name: &str, catalogues: &[Catalogue], reached: &[Reached]| {
        few::measure(
            name,
            catalogues,
            reached,
            options.draws,
            options.shows,
            folder,
        )
    };
    if options.wants("few") {
        verdicts.extend(measure("few rows", &few::made_catalogues(), &few::ON_MADE)?);
    }
    if options.wants("real") {
        match std::env::var_os("LEARN_PAGES") {
            Some(pages) => {
                let catalogues = few::real_catalogues(Path::new(&pages))?;
                verdicts.extend(measure("LEARN_PAGES", &catalogues, &few::ON_REAL)?);
            }
            None => println!("fill: LEARN_PAGES names no folder of pages with true values"),
        }
    }
    Ok(report(&verdicts, size))
}

/// Measures tables of four sites with the same number of rows each.
fn measure_many(size: Size, folder: &Path) -> Result<Vec<Verdict>, Failure> {
    let catalogue = Catalogue::made_catalogue(size.pick(1_000, 100));
    let address = web::serve(catalogue.things.iter())?;
    let mut verdicts = measure_usual(&catalogue, folder, &address)?;
    for draw in [&SPARSE, &DIRTY] {
        let table = catalogue.draw_table(draw.deleted, draw.wrong, 0);
        let folder = create_folder(folder, draw)?;
        let cost = fill(&table, &folder, &address, None)?;
        println!("{}: {:.1} s", draw.name, cost.seconds);
        let judged = FillQuality::compare_with_truth(&table, &folder)?;
        judged.print();
        verdicts.push(draw.verdict(&COVERAGE, judged.coverage()));
        verdicts.push(draw.verdict(&PRECISION, judged.precision()));
    }
    Ok(verdicts)
}

/// Measures the usual table: its quality, and the time and memory that it takes.
fn measure_usual(
    catalogue: &Catalogue,
    folder: &Path,
    address: &str,
) -> Result<Vec<Verdict>, Failure> {
    let draw = &USUAL;
    let table = catalogue.draw_table(draw.deleted, draw.wrong, 0);
    let folder = create_folder(folder, draw)?;
    let cost = fill(&table, &folder, address, None)?;
    println!("{}: {:.1} s, with the fetching", draw.name, cost.seconds);
    let judged = FillQuality::compare_with_truth(&table, &folder)?;
    judged.print();
    // The command runs again when all pages are stored. Then it learns, reads, judges and writes, but fetches nothing.
    remove_mappings(&folder)?;
    let again = fill(&table, &folder, address, None)?;
    accept_all(&folder)?;
    fill(&table, &folder, address, Some("books.doubts.csv"))?;
    let accepted = FillQuality::compare_with_truth(&table, &folder)?;
    println!("all but the fetching: {:.1} s", again.seconds);
    let peak_kib = cost.peak_kib.max(again.peak_kib);
    Ok(vec![
        draw.verdict(&COVERAGE, judged.coverage()),
        draw.verdict(&PRECISION_OF_USUAL, judged.precision()),
        draw.verdict(&RIGHT_ROWS, accepted.right_row_share()),
        draw.verdict(&WRONG_LISTED, judged.wrong_listed_share()),
        draw.verdict(&RIGHT_LISTED, judged.right_listed_share()),
        draw.verdict(&SECONDS, again.core_seconds),
        draw.verdict(&MEMORY, peak_kib as f64 / 1024.0),
    ])
}

impl Draw {
    fn verdict(&self, aim: &Aim, figure: f64) -> Verdict {
        let missed = match aim.goal {
            Limit::AtLeast(least) if figure < least => format!(" (goal: {least})"),
            Limit::AtMost(most) if figure > most => format!(" (goal: {most})"),
            _ => String::new(),
        };
        Verdict {
            what: format!("{}: {}{missed}", self.name, aim.what),
            figure,
            limit: aim.limit,
        }
    }
}

fn create_folder(folder: &Path, draw: &Draw) -> Result<PathBuf, Failure> {
    let folder = folder.join(draw.name.replace([' ', '%', ','], ""));
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

struct Options {
    part: Option<String>,
    draws: u64,
    shows: bool,
    kept: Option<PathBuf>,
}

impl Options {
    fn from_args(size: Size) -> Result<Options, Failure> {
        let mut options = Options {
            part: None,
            draws: size.pick(3, 1),
            shows: false,
            kept: None,
        };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut next = || words.next().ok_or(format!("{word}: which one?"));
            match word.as_str() {
                "--draws" => options.draws = next()?.parse()?,
                "--show" => options.shows = true,
                "--keep" => {
                    let folder = PathBuf::from(next()?);
                    std::fs::create_dir(&folder)?;
                    options.kept = Some(folder);
                }
                _ => options.part = Some(word),
            }
        }
        Ok(options)
    }

    fn wants(&self, part: &str) -> bool {
        self.part.as_deref().is_none_or(|wanted| wanted == part)
    }
}

/// Writes the table to its file.
fn write_table(table: &Table, folder: &Path) -> Result<PathBuf, Failure> {
    let file = folder.join("books.csv");
    std::fs::write(&file, table.to_csv()?)?;
    Ok(file)
}
