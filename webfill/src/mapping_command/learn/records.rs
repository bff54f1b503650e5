//! Known values from records, in a file or a MongoDB collection. There may be millions of records, so only those that
//! link to available pages are kept.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use serde_json::{Map, Value};
use webfill_mapping::nearest_first;
use webfill_service::Fault;
use webfill_urls::{Url, site};

use crate::cli::KnownRecordsOptions;
use crate::dataset::DatasetOptions;
use crate::feeding::now_ms;
use crate::seeds::{DocumentRules, Seed, SeedFault, SeedReader, read_document};

/// The most records that are kept, and the most field names that are reported.
const MOST_RECORDS: usize = 5_000;
const MOST_NAMES: usize = 1_000;

/// The most links kept from other records, per site and in total. Learned URL patterns must match these links.
const MOST_LINKS_OF_SITE: usize = 1_000;
const MOST_LINKS: usize = 200_000;

/// The most unusable lines that are reported.
const FAULTS_SHOWN: u64 = 3;

/// A record that links to a page.
#[derive(Debug)]
pub struct KnownRecord {
    pub id: String,
    pub links: Vec<String>,
    pub known: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Default)]
pub struct KnownRecords {
    pub records: Vec<KnownRecord>,
    by_link: HashMap<String, Vec<usize>>,
    /// The links of all records, by site.
    links: HashMap<String, Vec<Url>>,
    links_kept: usize,
    /// The names of all fields, including those without a value in any record.
    names: BTreeSet<String>,
    /// The number of records that were read, and the number that were left out because of the limit.
    pub read: u64,
    pub passed_over: u64,
    faults: u64,
}

impl KnownRecords {
    /// Reads records until `is_enough` returns true. Keeps the records that `is_wanted` selects.
    pub fn read(
        options: &KnownRecordsOptions,
        runtime: &tokio::runtime::Runtime,
        is_wanted: &dyn Fn(&KnownRecord) -> bool,
        is_enough: &dyn Fn(&KnownRecords) -> bool,
    ) -> Result<KnownRecords, Fault> {
        let mut known = KnownRecords::default();
        let Some(from) = &options.records else {
            return Ok(known);
        };
        let mut take = |seed: Result<Seed, SeedFault>| {
            known.add_seed(seed, is_wanted);
            is_enough(&known)
        };
        if options.records_collection.is_some() || from.starts_with("mongodb") {
            read_collection(options, runtime, &mut take)?;
        } else {
            let path = Path::new(from);
            let reader = SeedReader::open(path, now_ms());
            let reader = reader.map_err(|fault| Fault::usage(format!("--records: {fault}")))?;
            if !reader.may_have_records() {
                return Err(Fault::usage(format!(
                    "--records {from}: only links, no known fields: give records as JSON lines or CSV"
                )));
            }
            for seed in reader {
                if take(seed) {
                    break;
                }
            }
        }
        if known.faults > FAULTS_SHOWN {
            let more = known.faults - FAULTS_SHOWN;
            webfill_service::say!("webfill: {from}: {more} more records cannot be used");
        }
        Ok(known)
    }

    fn add_seed(
        &mut self,
        seed: Result<Seed, SeedFault>,
        is_wanted: &dyn Fn(&KnownRecord) -> bool,
    ) {
        self.read += 1;
        let seed = match seed {
            Ok(seed) => seed,
            Err(fault) => return self.report_fault(&fault),
        };
        let (Some(id), Some(fields)) = (seed.id, seed.fields) else {
            return;
        };
        for name in fields.keys().chain(&seed.want) {
            if self.names.len() < MOST_NAMES && !self.names.contains(name) {
                self.names.insert(name.clone());
            }
        }
        self.keep_links(&seed.urls);
        let record = KnownRecord {
            id,
            links: seed.urls,
            known: known_values(&fields),
        };
        if !is_wanted(&record) {
            return;
        }
        if self.records.len() >= MOST_RECORDS {
            self.passed_over += 1;
            return;
        }
        for link in &record.links {
            let place = self.records.len();
            self.by_link.entry(link.clone()).or_default().push(place);
        }
        self.records.push(record);
    }

    fn keep_links(&mut self, links: &[String]) {
        for link in links {
            let Ok(url) = Url::parse(link) else { continue };
            let of_site = self.links.entry(site(&url)).or_default();
            if self.links_kept < MOST_LINKS && of_site.len() < MOST_LINKS_OF_SITE {
                of_site.push(url);
                self.links_kept += 1;
            }
        }
    }

    /// All links of records to the sites of these pages, including links to other pages of these sites.
    pub fn links_to_sites_of<'u>(&self, pages: impl Iterator<Item = &'u Url>) -> Vec<Url> {
        let sites: BTreeSet<String> = pages.map(site).collect();
        let links = sites.iter().filter_map(|site| self.links.get(site));
        links.flatten().cloned().collect()
    }

    fn report_fault(&mut self, fault: &SeedFault) {
        self.faults += 1;
        if self.faults <= FAULTS_SHOWN {
            let place = match &fault.document {
                Some(document) => format!("record {document}"),
                None => format!("line {}", fault.line),
            };
            webfill_service::say!(
                "webfill: --records: {place}: {}: {}",
                fault.reason,
                fault.text
            );
        }
    }

    pub fn find_by_link(&self, url: &str) -> Option<&KnownRecord> {
        self.find_all_by_link(url).next()
    }

    /// The records that link to a page. A page that lists records has several.
    pub fn find_all_by_link(&self, url: &str) -> impl Iterator<Item = &KnownRecord> {
        let places = self.by_link.get(url).into_iter().flatten();
        places.map(|&place| &self.records[place])
    }

    pub fn has_link(&self, url: &str) -> bool {
        self.by_link.contains_key(url)
    }

    /// Refuses fields that no record has.
    pub fn check_fields<'f>(&self, fields: impl Iterator<Item = &'f String>) -> Result<(), Fault> {
        for field in fields {
            if self.names.contains(field) || self.names.len() >= MOST_NAMES {
                continue;
            }
            let names = nearest_first(field, self.names.iter().map(String::as_str));
            let nearest = names[..names.len().min(5)].join(", ");
            return Err(Fault::usage(format!(
                "--fields: no record has a field `{field}`; did you mean {nearest}?"
            )));
        }
        Ok(())
    }
}

fn read_collection(
    options: &KnownRecordsOptions,
    runtime: &tokio::runtime::Runtime,
    take: &mut dyn FnMut(Result<Seed, SeedFault>) -> bool,
) -> Result<(), Fault> {
    if options.records_collection.is_none() {
        return Err(Fault::usage(
            "--records: name the collection with --records-collection",
        ));
    }
    let plan = DatasetOptions {
        records: options.records.clone(),
        records_collection: options.records_collection.clone(),
        records_query: options.records_query.clone(),
        records_projection: options.records_projection.clone(),
        ..DatasetOptions::default()
    };
    let Some(plan) = plan.validate()? else {
        return Ok(());
    };
    let dataset = runtime.block_on(plan.open()).map_err(Fault::error)?;
    let rules = DocumentRules {
        collection: plan.collection_name(),
        ..DocumentRules::default()
    };
    let mut read = 0;
    for chunk in dataset.read(None).map_err(Fault::error)? {
        for document in chunk.map_err(Fault::error)? {
            read += 1;
            for seed in read_document(document, read, &rules) {
                if take(seed) {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

/// The values of a record's fields, as texts.
pub fn known_values(fields: &Map<String, Value>) -> BTreeMap<String, Vec<String>> {
    let mut known = BTreeMap::new();
    for (name, value) in fields {
        let values = match value {
            Value::Array(items) => items.iter().filter_map(value_as_text).collect(),
            value => value_as_text(value).into_iter().collect::<Vec<String>>(),
        };
        if !values.is_empty() {
            known.insert(name.clone(), values);
        }
    }
    known
}

fn value_as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !webfill_values::is_blank(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
