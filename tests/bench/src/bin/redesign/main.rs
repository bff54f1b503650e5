//! The effects of redesigns: which anchors survive, whether broken fields of a mapping are noticed, and how correctly
//! the fields are repaired.
//!
//! Pages are real (`REDESIGN_PAGES` names a folder with a `truth.jsonl`; manuals are installed by Debian packages),
//! their redesigns are generated (`webfill_bench::redesign`). A pair is a site and a seed.
//!
//!     redesign                            all of it
//!     redesign survival | repair [PAIRS]  one part, with at least this many pairs

mod anchors;
mod detection;
mod repairing;
mod survival;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

use anchors::Kind;
use serde_json::{Value, json};
use survival::{Count, Rule};
use webfill_bench::redesign::Redesign;
use webfill_bench::repairs::{Break, RepairOutcome};
use webfill_bench::sites::{Failure, Site, load_labelled_sites, load_manuals};
use webfill_bench::{Limit, Size, Verdict, report};

/// The least number of pairs (a site and one of its redesigns).
const PAIRS: usize = 280;
const PAIRS_OF_SMALL: usize = 8;

/// The number of pages of each manual.
const PAGES: usize = 10;

/// The strengths of redesigns, from minor changes to a new site.
const STRENGTHS: [f64; 4] = [0.2, 0.4, 0.6, 0.8];

fn main() -> Result<ExitCode, Failure> {
    let size = Size::from_env()?;
    let wanted = std::env::args().nth(1);
    let wants = |part: &str| wanted.as_deref().is_none_or(|wanted| wanted == part);
    let sites = load_sites()?;
    if sites.is_empty() {
        println!(
            "redesign: left out, there are no pages; set REDESIGN_PAGES, or install postgresql-doc, python3-doc, sqlite3-doc"
        );
        return Ok(ExitCode::SUCCESS);
    }
    let pairs = match std::env::args().nth(2) {
        Some(pairs) => pairs.parse()?,
        None => size.pick(PAIRS, PAIRS_OF_SMALL),
    };
    let pairs = pairs.div_ceil(sites.len());
    println!(
        "redesign: {} sites, {} pairs",
        sites.len(),
        sites.len() * pairs
    );
    let mut taught = Vec::new();
    for site in &sites {
        taught.push((site, survival::rules_of(site)?));
    }
    let mut verdicts = vec![Verdict {
        what: "pairs of an old and a new layout".into(),
        figure: (sites.len() * pairs) as f64,
        limit: Limit::None,
    }];
    if wants("survival") {
        measure_survival(&taught, pairs)?;
    }
    if wants("repair") {
        verdicts.extend(measure_repair(&taught, pairs)?);
    }
    Ok(report(&verdicts, size))
}

fn load_sites() -> Result<Vec<Site>, Failure> {
    let mappings = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../etl-mappings");
    let mut sites = load_manuals(Path::new("/usr/share/doc"), &mappings, PAGES)?;
    match std::env::var_os("REDESIGN_PAGES") {
        Some(folder) => sites.extend(load_labelled_sites(Path::new(&folder))?),
        None => println!("redesign: REDESIGN_PAGES names no folder, manuals alone are redesigned"),
    }
    Ok(sites)
}

/// The redesign of a pair (a site and a number). Sites have different redesigns, but the same strengths.
fn make_redesign(site: usize, pair: usize) -> Redesign {
    let seed = (site * 1_000 + pair) as u64;
    Redesign::new(seed, STRENGTHS[(site + pair) % STRENGTHS.len()])
}

fn measure_survival(taught: &[(&Site, Vec<Rule>)], pairs: usize) -> Result<(), Failure> {
    let mut counts: BTreeMap<Kind, Count> = BTreeMap::new();
    let mut rules: BTreeMap<Kind, usize> = BTreeMap::new();
    for (number, (site, of_site)) in taught.iter().enumerate() {
        for rule in of_site {
            *rules.entry(rule.kind).or_default() += 1;
        }
        for pair in 0..pairs {
            survival::count_survivals(site, of_site, &make_redesign(number, pair), &mut counts)?;
        }
    }
    println!("\nanchors that survive a made redesign");
    println!(
        "{:24}{:>7}{:>10}{:>8}{:>8}{:>8}",
        "anchor", "rules", "pages", "right", "empty", "wrong"
    );
    for kind in Kind::ALL {
        let count = counts.get(&kind).copied().unwrap_or_default();
        println!(
            "{:24}{:>7}{:>10}{:>8.2}{:>8.2}{:>8.2}",
            kind.name(),
            rules.get(&kind).copied().unwrap_or_default(),
            count.all(),
            count.share(count.right),
            count.share(count.empty),
            count.share(count.wrong)
        );
    }
    Ok(())
}

/// The mapping of a site: its own if it has one, otherwise a mapping with one rule for each field, of randomly chosen
/// kinds.
fn build_mapping(site: &Site, rules: &[Rule], pair: usize) -> Value {
    if let Some(mapping) = &site.mapping {
        return mapping.clone();
    }
    let mut rng = fastrand::Rng::with_seed(pair as u64);
    let mut of_fields: BTreeMap<&str, Vec<&Rule>> = BTreeMap::new();
    for rule in rules {
        of_fields.entry(&rule.field).or_default().push(rule);
    }
    let fields = of_fields.iter().map(|(field, rules)| {
        let rule = rules[rng.usize(..rules.len())];
        json!({"name": field, "processors": rule.chain})
    });
    let fields: Vec<Value> = fields.collect();
    json!({
        "name": site.name,
        "url_patterns": [{"type": "regex", "pattern": "^https?://"}],
        "fields": fields,
    })
}

/// The results for the fields that redesigns have broken.
#[derive(Default)]
struct RepairResults {
    fields: usize,
    /// For each broken field, the number of pages until an alert named it. First for pages without records, then for
    /// pages with records that have the values.
    noticed: [Vec<Option<usize>>; 2],
    unharmed: usize,
    false_alerts: usize,
    by_plain: BTreeMap<RepairOutcome, usize>,
    by_learner: BTreeMap<RepairOutcome, usize>,
}

fn measure_repair(taught: &[(&Site, Vec<Rule>)], pairs: usize) -> Result<Vec<Verdict>, Failure> {
    let of_all: Vec<(usize, usize)> = (0..taught.len())
        .flat_map(|site| (0..pairs).map(move |pair| (site, pair)))
        .collect();
    let next = AtomicUsize::new(0);
    // Each core takes the next pair until none is left.
    let of_a_core = || -> Result<Vec<RepairResults>, String> {
        let mut measured = Vec::new();
        while let Some((site, pair)) = of_all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let of_pair = RepairResults::measure_pair(&taught[*site], *site, *pair);
            measured.push(of_pair.map_err(|error| error.to_string())?);
        }
        Ok(measured)
    };
    let mut broken = RepairResults::default();
    std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let at_work: Vec<_> = (0..cores).map(|_| scope.spawn(of_a_core)).collect();
        for core in at_work {
            let measured = core.join().map_err(|_| "a pair could not be measured")??;
            measured.into_iter().for_each(|of_pair| broken.add(of_pair));
        }
        Ok::<(), Failure>(())
    })?;
    println!(
        "\n{} fields broke; {} redesigns harmed nothing",
        broken.fields, broken.unharmed
    );
    Ok(broken.verdicts())
}

impl RepairResults {
    /// Measures one pair (a site and one of its redesigns).
    fn measure_pair(
        (site, rules): &(&Site, Vec<Rule>),
        number: usize,
        pair: usize,
    ) -> Result<RepairResults, Failure> {
        let mut broken = RepairResults::default();
        let mapping = build_mapping(site, rules, pair);
        let redesign = make_redesign(number, pair);
        if mapping["fields"]
            .as_array()
            .is_some_and(|fields| !fields.is_empty())
            && let Some(found) = Break::find(site, &mapping, &redesign)?
        {
            broken.judge_break(site, &found, pair, &redesign)?;
        }
        Ok(broken)
    }

    /// Adds the results of another pair. Pairs may be added in any order.
    fn add(&mut self, other: RepairResults) {
        self.fields += other.fields;
        self.unharmed += other.unharmed;
        self.false_alerts += other.false_alerts;
        for (noticed, more) in self.noticed.iter_mut().zip(other.noticed) {
            noticed.extend(more);
        }
        for (endings, more) in [
            (&mut self.by_plain, other.by_plain),
            (&mut self.by_learner, other.by_learner),
        ] {
            for (ending, count) in more {
                *endings.entry(ending).or_default() += count;
            }
        }
    }

    fn judge_break(
        &mut self,
        site: &Site,
        found: &Break,
        pair: usize,
        redesign: &Redesign,
    ) -> Result<(), Failure> {
        for (noticed, with_records) in self.noticed.iter_mut().zip([false, true]) {
            let seen = detection::measure_alerts(site, found, with_records)?;
            noticed.extend(seen.after_pages);
            self.false_alerts += usize::from(seen.is_false_alert);
        }
        self.unharmed += usize::from(found.is_unharmed);
        if found.fields.is_empty() {
            return Ok(());
        }
        self.fields += found.fields.len();
        for ending in found
            .compare_with_truth(&repairing::repair_plainly(site, found)?)?
            .into_values()
        {
            *self.by_plain.entry(ending).or_default() += 1;
        }
        let (repaired, reasons) = repairing::repair_by_learning(found)?;
        for (field, ending) in found.compare_with_truth(&repaired)? {
            *self.by_learner.entry(ending).or_default() += 1;
            let what = match ending {
                RepairOutcome::Right => continue,
                RepairOutcome::Wrong => "repaired wrongly",
                RepairOutcome::Refused => "not repaired",
            };
            let why = reasons.get(&field).map_or("", String::as_str);
            let changes = redesign.changes();
            println!(
                "{what}: {} {field}, pair {pair}: {why}; {changes:?}",
                site.name
            );
        }
        Ok(())
    }

    fn verdicts(&self) -> Vec<Verdict> {
        let share = |of: &BTreeMap<RepairOutcome, usize>, ending| {
            of.get(&ending).copied().unwrap_or_default() as f64 / self.fields.max(1) as f64
        };
        let verdict = |what: &str, figure, limit| Verdict {
            what: what.into(),
            figure,
            limit,
        };
        let mut verdicts = Vec::new();
        for (noticed, with, least) in [
            (&self.noticed[0], "", 0.8),
            (&self.noticed[1], ", with records", 0.95),
        ] {
            let mut pages: Vec<usize> = noticed.iter().flatten().copied().collect();
            pages.sort_unstable();
            let at = |part: usize| {
                pages
                    .get(pages.len() * part / 100)
                    .map_or(f64::NAN, |pages| *pages as f64)
            };
            let named = pages.len() as f64 / noticed.len().max(1) as f64;
            verdicts.push(verdict(
                &format!("broken fields that an alert names{with}, share"),
                named,
                Limit::AtLeast(least),
            ));
            verdicts.push(verdict(
                &format!("pages until then{with}, median"),
                at(50),
                Limit::AtMost(10.0),
            ));
            verdicts.push(verdict(
                &format!("pages until then{with}, 95th percentile"),
                at(95),
                Limit::None,
            ));
        }
        let unbroken = self.unharmed.max(1) as f64;
        verdicts.push(verdict(
            "false alarms: redesigns that harmed nothing, share",
            self.false_alerts as f64 / unbroken,
            Limit::None,
        ));
        let none = (Limit::None, Limit::None);
        let wanted = (Limit::AtLeast(0.85), Limit::AtMost(0.02));
        for (of, by, (right, wrong)) in [
            (&self.by_plain, "plain rules", none),
            (&self.by_learner, "the learner", wanted),
        ] {
            verdicts.push(verdict(
                &format!("broken fields repaired rightly by {by}, share"),
                share(of, RepairOutcome::Right),
                right,
            ));
            verdicts.push(verdict(
                &format!("broken fields repaired wrongly by {by}, share"),
                share(of, RepairOutcome::Wrong),
                wrong,
            ));
            verdicts.push(verdict(
                &format!("broken fields not repaired by {by}, share"),
                share(of, RepairOutcome::Refused),
                Limit::None,
            ));
        }
        verdicts
    }
}
