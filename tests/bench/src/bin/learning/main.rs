//! Learning mappings: how fast, with how much memory, and how correctly.
//!
//! Correctness is judged on pages whose values the learner does not know. They come from generated sites, from manuals
//! that Debian packages install, and from a folder with true values, which `LEARN_PAGES` names.
//!
//!     learning                                      all of it
//!     learning speed | made | manuals | folder      one part
//!     learning PART --round N --draws N --show      one round of five, other than five draws, each field

mod judging;
mod large;

use std::path::Path;
use std::process::ExitCode;

use judging::{Figures, LearnScores, ROUNDS};
use webfill_bench::made_sites::made_sites;
use webfill_bench::sites::{Failure, Site, load_labelled_sites, load_manuals};
use webfill_bench::{Limit, Size, Verdict, report};

/// The number of pages of a site.
const PAGES: usize = 10;

fn main() -> Result<ExitCode, Failure> {
    let size = Size::from_env()?;
    let options = Options::from_args(size)?;
    let mut verdicts = Vec::new();
    if options.wants("speed") {
        verdicts.extend(large::measure(size)?);
    }
    let mappings = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../etl-mappings");
    if options.wants("made") {
        verdicts.extend(options.run_rounds("made sites", &made_sites(PAGES), &WANTED));
    }
    if options.wants("manuals") {
        let sites = load_manuals(Path::new("/usr/share/doc"), &mappings, PAGES)?;
        verdicts.extend(options.run_rounds("manuals", &sites, &WANTED_OF_MANUALS));
    }
    if options.wants("folder") {
        match std::env::var_os("LEARN_PAGES") {
            Some(folder) => {
                let sites = load_labelled_sites(Path::new(&folder))?;
                verdicts.extend(options.run_rounds("LEARN_PAGES", &sites, &WANTED));
            }
            None => println!("learning: LEARN_PAGES names no folder of pages with true values"),
        }
    }
    Ok(report(&verdicts, size))
}

/// The least macro F1 (the mean F1 of all fields) in each round. `lists` is the least for fields that are lists, in the
/// third round.
struct Least {
    rounds: [Limit; 5],
    /// For the last round, where some records are wrong: the least share of correct values among those read.
    precision: Limit,
    lists: Limit,
}

const WANTED: Least = Least {
    rounds: [
        Limit::None,
        Limit::None,
        Limit::AtLeast(0.95),
        Limit::None,
        // In some draws, only one of five records is correct. Then the field is rightly left out, so the limit is lower
        // than 1.
        Limit::AtLeast(0.95),
    ],
    precision: Limit::AtLeast(0.985),
    lists: Limit::AtLeast(0.9),
};

/// The limits for manuals. Their fields are hard to learn: names and declarations in code, and a version in a note that
/// few pages have.
const WANTED_OF_MANUALS: Least = Least {
    rounds: [
        Limit::None,
        Limit::None,
        Limit::AtLeast(0.8),
        Limit::None,
        Limit::None,
    ],
    precision: Limit::None,
    lists: Limit::None,
};

struct Options {
    part: Option<String>,
    rounds: Vec<usize>,
    draws: u64,
    shows: bool,
}

impl Options {
    fn from_args(size: Size) -> Result<Options, Failure> {
        let mut options = Options {
            part: None,
            rounds: size.pick(vec![0, 1, 2, 3, 4], vec![2, 4]),
            draws: size.pick(5, 1),
            shows: false,
        };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut number = || words.next().ok_or(format!("{word}: which number?"));
            match word.as_str() {
                "--round" => options.rounds = vec![number()?.parse()?],
                "--draws" => options.draws = number()?.parse()?,
                "--show" => options.shows = true,
                _ => options.part = Some(word),
            }
        }
        Ok(options)
    }

    fn wants(&self, part: &str) -> bool {
        self.part.as_deref().is_none_or(|wanted| wanted == part)
    }

    /// Runs the requested rounds on these sites, and judges the results by the limits in `least`.
    fn run_rounds(&self, name: &str, sites: &[Site], least: &Least) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        if sites.is_empty() {
            println!("learning: {name}: left out, there are no pages");
            return verdicts;
        }
        println!("\n{name}: {} sites, {} draws", sites.len(), self.draws);
        for (number, (known, wrong)) in ROUNDS.into_iter().enumerate() {
            if !self.rounds.contains(&number) {
                continue;
            }
            let judged = LearnScores::measure(sites, known, wrong, self.draws);
            let of = format!("{name}, {known} known, {wrong} wrong");
            if self.shows {
                judged.print_fields();
            }
            let figures = judged.figures();
            println!("{of}: {figures}");
            verdicts.extend(verdicts_of(
                &of,
                &figures,
                least.rounds[number],
                match number {
                    4 => least.precision,
                    _ => Limit::None,
                },
                match number {
                    2 => least.lists,
                    _ => Limit::None,
                },
            ));
        }
        verdicts
    }
}

fn verdicts_of(
    of: &str,
    figures: &Figures,
    least: Limit,
    precision: Limit,
    lists: Limit,
) -> Vec<Verdict> {
    let verdict = |what: &str, figure, limit| Verdict {
        what: format!("{of}: {what}"),
        figure,
        limit,
    };
    let mut verdicts = vec![
        verdict("macro F1", figures.macro_f1, least),
        verdict("micro F1", figures.micro_f1, Limit::None),
        verdict("precision", figures.precision, precision),
        verdict("coverage", figures.coverage, Limit::None),
        verdict(
            "fields of at least .95, share",
            figures.good_fields,
            Limit::None,
        ),
    ];
    verdicts.extend(
        figures
            .lists
            .map(|figure| verdict("macro F1 of lists", figure, lists)),
    );
    verdicts
}
