//! How well mappings are learned from a few known records, judged on the pages that were not known.
//!
//! A folder holds `truth.jsonl`, a line per page: `{"page": "SITE/FILE", "fields": {NAME: [VALUE, ...]}}`,
//! and the pages. Without a folder only the time is measured, on made pages.
//!
//!     cargo run -p webfill-learn --example judge [FOLDER]        or LEARN_PAGES=FOLDER
//!
//! `LEARN_ROUND` takes one round out of five, `LEARN_DRAWS` other than five draws, `LEARN_SHOW` shows fields.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use webfill_learn::{Limits, Page, Task, learn};
use webfill_mapping::{Engine, MappingSet, PageInput, PageKind, Source, Wants};
use webfill_urls::Url;

type Failure = Box<dyn std::error::Error>;

/// One page with its true values.
struct Truth {
    url: Url,
    text: String,
    fields: BTreeMap<String, Vec<String>>,
}

type Site = (String, Vec<Truth>);

const DRAWS: u64 = 5;
/// Known records, and the share of wrong values.
const ROUNDS: [(usize, f64); 5] = [(1, 0.0), (2, 0.0), (3, 0.0), (5, 0.0), (5, 0.3)];

fn main() -> Result<ExitCode, Failure> {
    let folder = std::env::args()
        .nth(1)
        .or_else(|| std::env::var("LEARN_PAGES").ok());
    match &folder {
        Some(folder) => {
            let sites = read_sites(Path::new(folder))?;
            let shows = std::env::var_os("LEARN_SHOW").is_some();
            let only: Option<usize> = std::env::var("LEARN_ROUND")
                .ok()
                .and_then(|round| round.parse().ok());
            let draws = std::env::var("LEARN_DRAWS")
                .ok()
                .and_then(|draws| draws.parse().ok());
            for (round, (known, wrong)) in ROUNDS.into_iter().enumerate() {
                if only.is_some_and(|only| only != round) {
                    continue;
                }
                let figures = judge(&sites, known, wrong, draws.unwrap_or(DRAWS), shows);
                println!("{known} records, {wrong} wrong: {figures}");
            }
            if only.is_some() {
                return Ok(ExitCode::SUCCESS);
            }
        }
        None => println!("pages with true values: skipped, no folder was given"),
    }
    println!(
        "50 pages of 160 KB, five fields: {:.1} s",
        seconds_of_large()?
    );
    Ok(ExitCode::SUCCESS)
}

fn read_sites(folder: &Path) -> Result<Vec<Site>, Failure> {
    let mut sites: BTreeMap<String, Vec<Truth>> = BTreeMap::new();
    for line in std::fs::read_to_string(folder.join("truth.jsonl"))?.lines() {
        let line: Value = serde_json::from_str(line)?;
        let name = line["page"]
            .as_str()
            .ok_or("truth.jsonl: a line without page")?;
        let (site, file) = name
            .split_once('/')
            .ok_or("truth.jsonl: a page without site")?;
        let bytes = std::fs::read(folder.join(name))?;
        let fields = serde_json::from_value(line["fields"].clone())?;
        let truth = Truth {
            url: Url::parse(&format!("http://{site}.example/page/{file}"))?,
            text: String::from_utf8_lossy(&bytes).into_owned(),
            fields,
        };
        sites.entry(site.to_owned()).or_default().push(truth);
    }
    Ok(sites.into_iter().collect())
}

/// What a number of known records brings.
struct Figures {
    macro_f1: f64,
    micro_f1: f64,
    lists: f64,
    good_fields: f64,
}

impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "macro F1 {:.3}, micro F1 {:.3}, lists {:.3}, fields of at least .95: {:.3}",
            self.macro_f1, self.micro_f1, self.lists, self.good_fields
        )
    }
}

/// Sums over pages of one field of one site.
#[derive(Default)]
struct Counts {
    f1: f64,
    pages: f64,
    right: f64,
    read: f64,
    truly: f64,
    lists: f64,
}

impl Counts {
    fn add(&mut self, read: &BTreeSet<String>, truth: &BTreeSet<String>) {
        let right = read.intersection(truth).count() as f64;
        let (read, truly) = (read.len() as f64, truth.len() as f64);
        self.pages += 1.0;
        self.f1 += if read + truly == 0.0 {
            1.0
        } else {
            2.0 * right / (read + truly)
        };
        self.right += right;
        self.read += read;
        self.truly += truly;
        self.lists += f64::from(u8::from(truly > 1.0));
    }
}

fn judge(sites: &[Site], known: usize, wrong: f64, draws: u64, shows: bool) -> Figures {
    let mut fields: BTreeMap<(String, String), Counts> = BTreeMap::new();
    for (site, pages) in sites {
        for draw in 0..draws {
            let mut random = fastrand::Rng::with_seed(draw * 1_000 + known as u64);
            let mut order: Vec<usize> = (0..pages.len()).collect();
            random.shuffle(&mut order);
            let labelled = &order[..known.min(order.len())];
            let given = given(pages, labelled, wrong, &mut random);
            let mapping = mapping_of(&given, shows.then_some(site));
            for &page in &order[known.min(order.len())..] {
                let read = mapping
                    .as_ref()
                    .map(|engine| extract(engine, &pages[page]))
                    .unwrap_or_default();
                for (field, truth) in &pages[page].fields {
                    let truth: BTreeSet<String> = truth.iter().map(|value| normal(value)).collect();
                    let key = (site.clone(), field.clone());
                    let nothing = BTreeSet::new();
                    fields
                        .entry(key)
                        .or_default()
                        .add(read.get(field).unwrap_or(&nothing), &truth);
                }
            }
        }
    }
    // A field that no page of a site has cannot be learned there.
    fields.retain(|_, counts| counts.truly > 0.0);
    if shows {
        for ((site, field), counts) in &fields {
            println!(
                "  {known} {wrong} {site} {field}: {:.3}",
                counts.f1 / counts.pages
            );
        }
    }
    summed(fields.values())
}

fn summed<'c>(fields: impl Iterator<Item = &'c Counts> + Clone) -> Figures {
    let share = |counts: &Counts| counts.f1 / counts.pages;
    let mean = |all: Vec<f64>| all.iter().sum::<f64>() / (all.len() as f64).max(1.0);
    let lists = fields
        .clone()
        .filter(|counts| counts.lists / counts.pages >= 0.3);
    let sum = |of: fn(&Counts) -> f64| fields.clone().map(of).sum::<f64>();
    Figures {
        macro_f1: mean(fields.clone().map(share).collect()),
        micro_f1: 2.0 * sum(|one| one.right) / (sum(|one| one.read) + sum(|one| one.truly)),
        lists: mean(lists.map(share).collect()),
        good_fields: mean(
            fields
                .clone()
                .map(|one| f64::from(u8::from(share(one) >= 0.95)))
                .collect(),
        ),
    }
}

/// The pages as the learner gets them. A wrong value is that of another page.
fn given(pages: &[Truth], labelled: &[usize], wrong: f64, random: &mut fastrand::Rng) -> Vec<Page> {
    let page = |index: usize, random: &mut fastrand::Rng| {
        let mut known = BTreeMap::new();
        if labelled.contains(&index) {
            for (field, values) in pages[index]
                .fields
                .iter()
                .filter(|(_, values)| !values.is_empty())
            {
                let mut values = values.clone();
                if random.f64() < wrong {
                    let other = &pages[(index + random.usize(1..pages.len())) % pages.len()];
                    values = other.fields.get(field).cloned().unwrap_or_default();
                }
                known.insert(field.clone(), values);
            }
        }
        Page {
            url: pages[index].url.clone(),
            kind: PageKind::Html,
            text: pages[index].text.clone(),
            record: None,
            known,
            said: BTreeMap::new(),
        }
    };
    (0..pages.len()).map(|index| page(index, random)).collect()
}

fn mapping_of(pages: &[Page], show: Option<&String>) -> Option<Engine> {
    let task = Task {
        name: "learned".to_owned(),
        fields: Vec::new(),
        limits: Limits::default(),
    };
    let learned = learn(pages, &[], &task).ok()?;
    if let Some(site) = show {
        for mapping in &learned.mappings {
            for field in &mapping.fields {
                let chain = field.processors.as_ref().map(Value::to_string);
                println!(
                    "    {site} {} {} {:?}",
                    field.field, field.confidence, chain
                );
            }
        }
    }
    let all: Vec<Value> = learned
        .mappings
        .into_iter()
        .map(|mapping| mapping.mapping)
        .collect();
    let source = Source {
        name: "learned.json".to_owned(),
        text: json!(all).to_string(),
    };
    let set = MappingSet::from_sources(vec![source]).ok()?;
    Some(Engine::new(
        Arc::new(set),
        webfill_mapping::Limits::default(),
    ))
}

fn extract(engine: &Engine, page: &Truth) -> BTreeMap<String, BTreeSet<String>> {
    let input = PageInput {
        url: &page.url,
        kind: PageKind::Html,
        text: &page.text,
    };
    let Ok(extraction) = engine.extract(input, Wants::default()) else {
        return BTreeMap::new();
    };
    let texts = |value: &Value| -> BTreeSet<String> {
        match value {
            Value::Array(values) => values
                .iter()
                .filter_map(Value::as_str)
                .map(normal)
                .collect(),
            Value::String(text) => BTreeSet::from([normal(text)]),
            value => BTreeSet::from([value.to_string()]),
        }
    };
    extraction
        .fields
        .iter()
        .map(|(name, value)| (name.clone(), texts(value)))
        .collect()
}

fn normal(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Seconds for 50 pages of 160 KB, of which five fields are known on each.
fn seconds_of_large() -> Result<f64, Failure> {
    let mut pages = Vec::new();
    for number in 0..50 {
        let mut text = format!(
            "<html><head><title>Thing {number}</title></head><body><h1>Thing {number}</h1><table>"
        );
        for (label, value) in ["Maker", "Colour", "Price", "Weight"].iter().zip(1..) {
            text.push_str(&format!(
                "<tr><th>{label}:</th><td class=\"v\">{label} of {}</td></tr>",
                number * value
            ));
        }
        text.push_str("</table><ul>");
        let mut item = 0;
        while text.len() < 160_000 {
            item += 1;
            text.push_str(&format!("<li class=\"item\"><div><a href=\"/t/{item}\">Link {item}</a> <span>of {number}</span></div></li>"));
        }
        text.push_str("</ul></body></html>");
        let known = [("title", format!("Thing {number}"))].into_iter().chain(
            [
                ("maker", "Maker", 1),
                ("colour", "Colour", 2),
                ("price", "Price", 3),
                ("weight", "Weight", 4),
            ]
            .map(|(field, label, value)| (field, format!("{label} of {}", number * value))),
        );
        pages.push(Page {
            url: Url::parse(&format!("http://large.example/thing/{number}"))?,
            kind: PageKind::Html,
            record: None,
            known: known
                .map(|(field, value)| (field.to_owned(), vec![value]))
                .collect(),
            said: BTreeMap::new(),
            text,
        });
    }
    let start = Instant::now();
    let task = Task {
        name: "large".to_owned(),
        fields: Vec::new(),
        limits: Limits::default(),
    };
    let learned = learn(&pages, &[], &task)?;
    let fields = learned.mappings.iter().flat_map(|mapping| &mapping.fields);
    let sure = fields.filter(|field| field.confidence >= 0.9).count();
    if sure != 5 {
        return Err(format!("{sure} of 5 fields were learned from the large pages").into());
    }
    Ok(start.elapsed().as_secs_f64())
}
