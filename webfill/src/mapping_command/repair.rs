//! `webfill mapping repair`: learns new chains for the fields that a changed layout has broken. The values extracted
//! before the change serve as known values for the pages fetched after it. Nothing is written unless requested.

mod evidence;
mod merge;
mod reading;
mod relearning;
mod report;
mod tally;

use std::collections::BTreeSet;

use serde_json::Value;
use webfill_learn::Page;
use webfill_service::{ExitStatus, Fault};

use self::evidence::Evidence;
use self::merge::{chains_of, find_mapping, set_chains};
use self::reading::{Reader, Readings, are_same};
use self::report::Repair;
use self::tally::{ORDERS, Trials};
use super::learn::{output, run_on_thread, runtime};
use crate::cli::MappingRepairOptions;
use crate::mapping_files::load_files;
use crate::stdout::print;

/// Runs `webfill mapping repair` on a thread whose stack is large enough for reading pages.
pub fn run(options: MappingRepairOptions) -> Result<ExitStatus, Fault> {
    run_on_thread("repair", move || repair(&options))
}

fn repair(options: &MappingRepairOptions) -> Result<ExitStatus, Fault> {
    output::refuse_existing(&options.to)?;
    let broken = BrokenMapping::load(options)?;
    let mut evidence = Evidence::gather(options, &broken.name, &runtime()?)?;
    if options.pages.is_some() || options.warc.is_some() {
        evidence.now.retain(|page| broken.reader.is_for(page));
    }
    let is_of_alert = options.crawl.is_none() && options.pages.is_none() && options.warc.is_none();
    if is_of_alert && evidence.fallen.is_empty() && !evidence.rows.is_empty() {
        return Err(only_rows_fault(&broken.name, &evidence));
    }
    if evidence.now.is_empty() {
        return Err(Fault::error(format!(
            "no pages from after the change: mapping {} has no alert in this store; name pages with --crawl ID (run with --keep-bodies), --pages DIR or --warc PATH",
            broken.name
        )));
    }
    let former = broken.reader.read_all(&evidence);
    let fields = broken.broken_fields(&evidence, &former);
    if fields.is_empty() && !evidence.rows.is_empty() {
        return Err(only_rows_fault(&broken.name, &evidence));
    }
    if fields.is_empty() {
        print(format_args!(
            "mapping {} reads {} pages as before: nothing to repair",
            broken.name,
            evidence.now.len()
        ))?;
        return Ok(ExitStatus::Done);
    }
    let is_labelled = |field: &String| {
        evidence
            .known_values_of_current_pages(field)
            .any(|label| label.is_some())
    };
    if !fields.iter().any(is_labelled) {
        return Err(Fault::error(format!(
            "none of {} pages from after the change has a value of {} known from before: crawl earlier pages again, or give records with --records",
            evidence.now.len(),
            fields.iter().cloned().collect::<Vec<_>>().join(", ")
        )));
    }
    let mut file = broken.file.clone();
    let mapping = find_mapping(&mut file, &broken.name).map(|mapping| mapping.take());
    let mapping = mapping.unwrap_or_default();
    let mut repair = Repair::default();
    let of_rows = evidence.rows.iter();
    repair
        .refused
        .extend(of_rows.map(|name| (name.clone(), ROWS_STAY.to_owned())));
    for field in &fields {
        let pages = broken.pages_to_relearn(&evidence, &former, field);
        match relearning::relearn_field(&mapping, field, &pages) {
            Ok(new) => repair.accepted.push(new),
            Err(why) => repair.refused.push((field.clone(), why)),
        }
    }
    broken.replace_chains(&evidence, former, &mut repair)?;
    repair.report_and_write(options, &broken, &evidence)
}

/// The reason why rows are not repaired.
const ROWS_STAY: &str = "rules of rows cannot be repaired: learn new ones with `webfill mapping learn`, or point at rows in the mapping editor";

fn only_rows_fault(mapping: &str, evidence: &Evidence) -> Fault {
    Fault::error(format!(
        "the alert of mapping {mapping} is about rows ({}): {ROWS_STAY}",
        evidence.rows.join(", ")
    ))
}

/// The mapping to be repaired.
struct BrokenMapping {
    /// The content of the mapping file.
    file: Value,
    name: String,
    reader: Reader,
    declared: Vec<String>,
}

impl BrokenMapping {
    fn load(options: &MappingRepairOptions) -> Result<BrokenMapping, Fault> {
        let shown = options.file.display();
        if options.file.is_dir() {
            return Err(Fault::usage(format!(
                "{shown}: is a folder; name the file of the mapping"
            )));
        }
        let set = load_files(&options.file)?;
        let name = match &options.mapping {
            Some(name) => name.clone(),
            None => only_name(set.names(), &options.file)?,
        };
        let Some(index) = set.find_by_name(&name) else {
            return Err(Fault::usage(format!(
                "{shown}: no mapping `{name}`; there is {}",
                set.names().collect::<Vec<_>>().join(", ")
            )));
        };
        let declared = set.fields_of(index).into_iter().map(str::to_owned);
        let text = set
            .sources()
            .first()
            .map_or("", |source| source.text.as_str());
        Ok(BrokenMapping {
            file: serde_json::from_str(text).map_err(Fault::usage)?,
            reader: Reader::new(&shown.to_string(), text, &name)?,
            declared: declared.collect(),
            name,
        })
    }

    /// The broken fields: on most pages that had a value, they now have none, or one that is certainly wrong. If the
    /// alert names the field, fewer such pages are enough, and every other value counts as wrong.
    fn broken_fields(&self, evidence: &Evidence, former: &Readings) -> BTreeSet<String> {
        let is_broken = |field: &&String| {
            let is_fallen = evidence.fallen.contains(*field);
            let (mut labelled, mut wrong, mut empty, mut judged) = (0, 0, 0, 0_usize);
            let pages = evidence.now.iter().zip(&former.now);
            for (known, (page, read)) in evidence.known_values_of_current_pages(field).zip(pages) {
                // A page that could not be read completely proves nothing.
                let Some(read) = read else { continue };
                let is_wrong = match (&known, read.get(*field)) {
                    (_, None) => true,
                    (Some(known), Some(read)) => {
                        !are_same(known, read)
                            && (is_fallen || evidence.are_other_values_wrong(page, field, known))
                    }
                    (None, Some(_)) => false,
                };
                judged += 1;
                empty += usize::from(!read.contains_key(*field));
                if known.is_some() {
                    labelled += 1;
                    wrong += usize::from(is_wrong);
                }
            }
            match (is_fallen, labelled) {
                (true, 0) => empty * 2 > judged,
                (true, _) => wrong * 5 > labelled,
                (false, _) => wrong * 2 > labelled,
            }
        };
        self.declared.iter().filter(is_broken).cloned().collect()
    }

    /// The pages where the mapping does not read a field as before. Pages that are better evidence come first.
    fn pages_to_relearn(
        &self,
        evidence: &Evidence,
        former: &Readings,
        field: &String,
    ) -> Vec<Page> {
        let mut pages = Vec::new();
        let labels = evidence
            .known_values_of_current_pages(field)
            .zip(&former.now);
        for (page, (known, read)) in evidence.now.iter().zip(labels) {
            let is_read = match (&known, read.as_ref().map(|read| read.get(field))) {
                // A page that could not be read completely proves nothing, so it is left out.
                (_, None) => true,
                (Some(known), Some(Some(read))) => are_same(known, read),
                (None, Some(read)) => read.is_some(),
                (Some(_), Some(None)) => false,
            };
            if !is_read {
                let known = known.or_else(|| evidence.was_empty(page, field).then(Vec::new));
                pages.push(Page {
                    url: page.url.clone(),
                    kind: page.kind,
                    text: page.text.clone(),
                    record: None,
                    known: known
                        .map(|known| (field.clone(), known))
                        .into_iter()
                        .collect(),
                    said: Default::default(),
                });
            }
        }
        order_by_evidence(pages)
    }

    /// Adds the new chains to the fields, combined with the former chains in the best order. New chains that read no
    /// more pages correctly than the former ones are refused. All fields are tried together, so each page is read only
    /// once for each order.
    fn replace_chains(
        &self,
        evidence: &Evidence,
        former: Readings,
        repair: &mut Repair,
    ) -> Result<(), Fault> {
        let mut orders = Vec::new();
        for order in ORDERS {
            let mut tried = self.file.clone();
            for new in &repair.accepted {
                let chains = order(&new.chains, &self.chains(&new.field));
                if let Some(mapping) = find_mapping(&mut tried, &self.name) {
                    set_chains(mapping, &new.field, chains);
                }
            }
            let reader = Reader::new("the repaired mapping", &tried.to_string(), &self.name)?;
            orders.push(reader.read_all(evidence));
        }
        let trials = Trials { former, orders };
        let mut file = self.file.clone();
        for new in std::mem::take(&mut repair.accepted) {
            let order = match trials.best_order(&new.field, evidence) {
                Ok(order) => order,
                Err(why) => {
                    repair.refused.push((new.field, why));
                    continue;
                }
            };
            let chains = order(&new.chains, &self.chains(&new.field));
            if let Some(mapping) = find_mapping(&mut file, &self.name) {
                set_chains(mapping, &new.field, chains);
            }
            repair.accepted.push(new);
        }
        repair.file = file;
        Ok(())
    }

    fn chains(&self, field: &str) -> Vec<Value> {
        let mut file = self.file.clone();
        let fields = find_mapping(&mut file, &self.name).map(|mapping| mapping["fields"].take());
        let fields = fields
            .as_ref()
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        fields
            .filter(|member| member["name"] == field)
            .flat_map(chains_of)
            .collect()
    }
}

/// Sorts pages for learning, which uses only the first ones. After every three pages with known values comes a page
/// that had no value. Pages about which nothing is known come last.
fn order_by_evidence(pages: Vec<Page>) -> Vec<Page> {
    let (unknown, known): (Vec<Page>, Vec<Page>) =
        pages.into_iter().partition(|page| page.known.is_empty());
    let (empty, filled): (Vec<Page>, Vec<Page>) = known
        .into_iter()
        .partition(|page| page.known.values().all(Vec::is_empty));
    let (mut empty, mut ordered) = (empty.into_iter(), Vec::new());
    for (number, page) in filled.into_iter().enumerate() {
        ordered.push(page);
        if number % 3 == 2 {
            ordered.extend(empty.next());
        }
    }
    ordered.extend(empty);
    ordered.extend(unknown);
    ordered
}

fn only_name<'n>(
    mut names: impl Iterator<Item = &'n str>,
    file: &std::path::Path,
) -> Result<String, Fault> {
    match (names.next(), names.next()) {
        (Some(only), None) => Ok(only.to_owned()),
        (None, _) => Err(Fault::usage(format!(
            "{}: no mapping in it",
            file.display()
        ))),
        _ => Err(Fault::usage(format!(
            "{}: several mappings: choose one with --mapping",
            file.display()
        ))),
    }
}
