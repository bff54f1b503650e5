//! `webfill mapping repair`: learns the fields anew that a changed layout has broken. The values that were
//! extracted before the change are what is known, the pages of after it what is learned from. Nothing is
//! written unless it is asked for.

mod evidence;
mod merge;
mod reading;
mod report;

use std::collections::BTreeSet;

use serde_json::Value;
use webfill_learn::{FieldReport, Limits, Page, Task};
use webfill_startup::{ExitStatus, Fault};

use self::evidence::Evidence;
use self::merge::{chains_of, joined, mapping_of, set_chains};
use self::reading::{Reader, are_same};
use self::report::Repair;
use super::learn::gathered::Gathered;
use super::learn::{on_thread, output, runtime};
use crate::cli::MappingRepairOptions;
use crate::stdout::tell;

/// A chain that reads fewer of the labelled pages rightly, when it is learned without them, is refused.
const LEAST_CONFIDENCE: f64 = 0.9;

/// And one that was learned from fewer pages.
const LEAST_PAGES: usize = 3;

/// Runs the command, on a thread whose stack is made for pages.
pub fn run(options: MappingRepairOptions) -> Result<ExitStatus, Fault> {
    on_thread("repair", move || repair(&options))
}

fn repair(options: &MappingRepairOptions) -> Result<ExitStatus, Fault> {
    output::check(&options.to)?;
    let broken = Broken::load(options)?;
    let evidence = Evidence::gather(options, &broken.name, &runtime()?)?;
    if evidence.now.is_empty() {
        return Err(Fault::error(format!(
            "there is no page of after the change: no alarm of mapping {} stands in this store, and no crawl is named whose bodies were kept (--crawl)",
            broken.name
        )));
    }
    let fields = broken.fields(&evidence);
    if fields.is_empty() {
        tell(format_args!(
            "mapping {} reads {} pages as before: there is nothing to repair",
            broken.name,
            evidence.now.len()
        ))?;
        return Ok(ExitStatus::Done);
    }
    let pages = broken.pages(&evidence, &fields);
    let is_labelled = |page: &Page| !page.known.is_empty();
    if !pages.iter().any(is_labelled) {
        return Err(Fault::error(format!(
            "of none of {} pages of after the change a value of {} is known from before it: crawl pages again that were read before, or give records by --records",
            pages.len(),
            fields.iter().cloned().collect::<Vec<_>>().join(", ")
        )));
    }
    let task = Task {
        name: broken.name.clone(),
        fields: fields.iter().cloned().collect(),
        limits: Limits::default(),
    };
    let learned = webfill_learn::learn(&pages, &[], &task).map_err(Fault::error)?;
    let mut repair = Repair::default();
    for field in &fields {
        let reports = learned.mappings.iter().flat_map(|mapping| &mapping.fields);
        let reports: Vec<&FieldReport> = reports.filter(|one| one.field == *field).collect();
        repair.judge(field, &reports);
    }
    broken.mend(&evidence, &mut repair)?;
    repair.finish(options, &broken, &evidence)
}

/// The mapping that is to be repaired.
struct Broken {
    /// The file.
    file: Value,
    name: String,
    reader: Reader,
    declared: Vec<String>,
}

impl Broken {
    fn load(options: &MappingRepairOptions) -> Result<Broken, Fault> {
        let shown = options.file.display();
        if options.file.is_dir() {
            return Err(Fault::usage(format!(
                "{shown}: this is a folder; name the file of the mapping"
            )));
        }
        let set = super::load(&options.file)?;
        let name = match &options.mapping {
            Some(name) => name.clone(),
            None => only_name(set.names(), &options.file)?,
        };
        let Some(index) = set.by_name(&name) else {
            return Err(Fault::usage(format!(
                "{shown}: no mapping is called `{name}`; there is {}",
                set.names().collect::<Vec<_>>().join(", ")
            )));
        };
        let declared = set.fields_of(index).into_iter().map(str::to_owned);
        let text = set
            .sources()
            .first()
            .map_or("", |source| source.text.as_str());
        Ok(Broken {
            file: serde_json::from_str(text).map_err(Fault::usage)?,
            reader: Reader::new(&shown.to_string(), text, &name)?,
            declared: declared.collect(),
            name,
        })
    }

    /// Those without a value on most pages where there was one. Of those that the alarm names a few such pages
    /// are enough, and other values count as well.
    fn fields(&self, evidence: &Evidence) -> BTreeSet<String> {
        let is_broken = |field: &&String| {
            let is_fallen = evidence.fallen.contains(*field);
            let (mut labelled, mut wrong, mut empty) = (0_usize, 0_usize, 0_usize);
            for page in &evidence.now {
                let (known, read) = (evidence.known_of(page), self.reader.values(page));
                let is_wrong = match (known.get(*field), read.get(*field)) {
                    (_, None) => true,
                    (Some(known), Some(read)) => is_fallen && !are_same(known, read),
                    (None, Some(_)) => false,
                };
                empty += usize::from(!read.contains_key(*field));
                if known.contains_key(*field) {
                    labelled += 1;
                    wrong += usize::from(is_wrong);
                }
            }
            match (is_fallen, labelled) {
                (true, 0) => empty * 2 > evidence.now.len(),
                (true, _) => wrong * 5 > labelled,
                (false, _) => wrong * 2 > labelled,
            }
        };
        self.declared.iter().filter(is_broken).cloned().collect()
    }

    /// The pages on which one of the fields is not read as it was.
    fn pages(&self, evidence: &Evidence, fields: &BTreeSet<String>) -> Vec<Page> {
        let mut pages = Vec::new();
        for page in &evidence.now {
            let mut known = evidence.known_of(page);
            known.retain(|field, _| fields.contains(field));
            let read = self.reader.values(page);
            let is_read = |field: &String| match (known.get(field), read.get(field)) {
                (Some(known), Some(read)) => are_same(known, read),
                (None, Some(_)) => true,
                (_, None) => false,
            };
            if !fields.iter().all(is_read) {
                pages.push(Page {
                    url: page.url.clone(),
                    kind: page.kind,
                    text: page.text.clone(),
                    record: None,
                    known,
                    said: Default::default(),
                });
            }
        }
        pages
    }

    /// Gives the learned fields their new chains. The former ones stay behind or before them if pages of
    /// before the change are read by them as they were, and pages of after it not wrongly.
    fn mend(&self, evidence: &Evidence, repair: &mut Repair) -> Result<(), Fault> {
        let mut file = self.file.clone();
        for (field, new) in &repair.accepted {
            let former = self.chains(field);
            let orders = [joined(new, &former), joined(&former, new), new.clone()];
            let mut best: Option<(usize, Vec<Value>)> = None;
            for chains in orders {
                let mut tried = file.clone();
                if let Some(mapping) = mapping_of(&mut tried, &self.name) {
                    set_chains(mapping, field, chains.clone());
                }
                let reader = Reader::new("the repaired mapping", &tried.to_string(), &self.name)?;
                let right = self.right(&reader, field, evidence);
                if best.as_ref().is_none_or(|(most, _)| right > *most) {
                    best = Some((right, chains));
                }
            }
            if let (Some((_, chains)), Some(mapping)) = (best, mapping_of(&mut file, &self.name)) {
                set_chains(mapping, field, chains);
            }
        }
        repair.file = file;
        Ok(())
    }

    fn chains(&self, field: &str) -> Vec<Value> {
        let mut file = self.file.clone();
        let fields = mapping_of(&mut file, &self.name).map(|mapping| mapping["fields"].take());
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

    /// On how many pages a field is read as it should be: on those of before as it was read then.
    fn right(&self, reader: &Reader, field: &str, evidence: &Evidence) -> usize {
        let is_right = |page: &Gathered, wanted: Option<&Vec<String>>| {
            let read = reader.values(page);
            match (wanted, read.get(field)) {
                (Some(wanted), Some(read)) => are_same(wanted, read),
                _ => false,
            }
        };
        let before = evidence.before.iter();
        let before = before.filter(|page| is_right(page, self.reader.values(page).get(field)));
        let now = evidence.now.iter();
        let now = now.filter(|page| is_right(page, evidence.known_of(page).get(field)));
        before.count() + now.count()
    }
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
            "{}: several mappings; --mapping says which one is to be repaired",
            file.display()
        ))),
    }
}
