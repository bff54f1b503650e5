//! Judges mappings that were learned from a few known records, on pages whose values the learner does not know.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};
use webfill_bench::sites::{LabelledPage, Site, Values, extract, normalise_spaces};
use webfill_learn::{Limits, Page, Task, learn};
use webfill_mapping::{Engine, MappingSet, PageKind, Source};

/// The rounds of the measurement. Each has a number of known records, and a share of wrong values among them.
pub const ROUNDS: [(usize, f64); 5] = [(1, 0.0), (2, 0.0), (3, 0.0), (5, 0.0), (5, 0.3)];

/// A field counts as a list if at least this share of its pages has several values.
const LIST: f64 = 0.3;

/// A field counts as good if its F1 score is at least this.
const GOOD: f64 = 0.95;

/// For each field, its chain of processors as text.
type Chains = BTreeMap<String, String>;

/// The scores for one number of known records, by site and field.
pub struct LearnScores(BTreeMap<(String, String), Counts>);

/// The results over all fields. They are means over fields, except for `micro_f1`, `precision` and `coverage`.
pub struct Figures {
    pub macro_f1: f64,
    pub micro_f1: f64,
    /// The share of correct values among all values that were read.
    pub precision: f64,
    /// The share of existing values that were read correctly.
    pub coverage: f64,
    /// The mean F1 of fields that are lists; `None` if there are none.
    pub lists: Option<f64>,
    pub good_fields: f64,
    fields: usize,
}

/// Sums for one field of one site over all judged pages.
#[derive(Default)]
struct Counts {
    f1: f64,
    pages: f64,
    right: f64,
    read: f64,
    truly: f64,
    lists: f64,
    /// The chain of processors that was learned in the last draw, as text.
    chain: String,
}

impl LearnScores {
    pub fn measure(sites: &[Site], known: usize, wrong: f64, draws: u64) -> LearnScores {
        let mut judged = LearnScores(BTreeMap::new());
        for site in sites {
            for draw in 0..draws {
                judged.run_draw(site, known, wrong, draw);
            }
        }
        // A field that is on no judged page of a site cannot be judged there.
        judged.0.retain(|_, counts| counts.truly > 0.0);
        judged
    }

    fn run_draw(&mut self, site: &Site, known: usize, wrong: f64, draw: u64) {
        let mut random = fastrand::Rng::with_seed(draw * 1_000 + known as u64);
        let mut order: Vec<usize> = (0..site.pages.len()).collect();
        random.shuffle(&mut order);
        let (labelled, others) = order.split_at(known.min(order.len()));
        let given = learner_pages(&site.pages, labelled, wrong, &mut random);
        let (engine, mut chains) = learn_engine(&given).unzip();
        for &page in others {
            let page = &site.pages[page];
            let read = engine
                .as_ref()
                .map(|engine| extract(engine, &page.url, &page.html))
                .unwrap_or_default();
            for (field, truth) in &page.truth {
                let key = (site.name.clone(), field.clone());
                let counts = self.0.entry(key).or_default();
                counts.add(
                    &normalise_values(read.get(field)),
                    &normalise_values(Some(truth)),
                );
                if let Some(chain) = chains.as_mut().and_then(|chains| chains.remove(field)) {
                    counts.chain = chain;
                }
            }
        }
    }

    pub fn figures(&self) -> Figures {
        let fields = || self.0.values();
        let mean = |all: Vec<f64>| all.iter().sum::<f64>() / (all.len() as f64).max(1.0);
        let sum = |of: fn(&Counts) -> f64| fields().map(of).sum::<f64>();
        let lists: Vec<f64> = fields()
            .filter(|one| one.lists / one.pages >= LIST)
            .map(Counts::mean_f1)
            .collect();
        Figures {
            macro_f1: mean(fields().map(Counts::mean_f1).collect()),
            micro_f1: 2.0 * sum(|one| one.right)
                / (sum(|one| one.read) + sum(|one| one.truly)).max(1.0),
            precision: sum(|one| one.right) / sum(|one| one.read).max(1.0),
            coverage: sum(|one| one.right) / sum(|one| one.truly).max(1.0),
            lists: (!lists.is_empty()).then(|| mean(lists)),
            good_fields: mean(
                fields()
                    .map(|one| f64::from(u8::from(one.mean_f1() >= GOOD)))
                    .collect(),
            ),
            fields: self.0.len(),
        }
    }

    /// Prints the mean F1 of each field, with the chain that was learned last.
    pub fn print_fields(&self) {
        for ((site, field), counts) in &self.0 {
            println!(
                "  {site} {field}: {:.3}  {}",
                counts.mean_f1(),
                counts.chain
            );
        }
    }
}

impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "macro F1 {:.3}, micro F1 {:.3}, precision {:.3}, coverage {:.3}, lists {:.3}, {:.3} of {} fields at least {GOOD}",
            self.macro_f1,
            self.micro_f1,
            self.precision,
            self.coverage,
            self.lists.unwrap_or(f64::NAN),
            self.good_fields,
            self.fields
        )
    }
}

impl Counts {
    fn add(&mut self, read: &BTreeSet<String>, truth: &BTreeSet<String>) {
        let right = read.intersection(truth).count() as f64;
        let (read, truly) = (read.len() as f64, truth.len() as f64);
        self.pages += 1.0;
        self.f1 += match read + truly {
            0.0 => 1.0,
            all => 2.0 * right / all,
        };
        self.right += right;
        self.read += read;
        self.truly += truly;
        self.lists += f64::from(u8::from(truly > 1.0));
    }

    fn mean_f1(&self) -> f64 {
        self.f1 / self.pages
    }
}

/// The pages as input for the learner. On the pages `labelled`, the values are known. A share of them is wrong: each is
/// the value of another page.
fn learner_pages(
    pages: &[LabelledPage],
    labelled: &[usize],
    wrong: f64,
    random: &mut fastrand::Rng,
) -> Vec<Page> {
    let mut given = Vec::new();
    for (index, page) in pages.iter().enumerate() {
        let mut known = Values::new();
        if labelled.contains(&index) {
            for (field, values) in page.truth.iter().filter(|(_, values)| !values.is_empty()) {
                let mut values = values.clone();
                if random.f64() < wrong {
                    let other = &pages[(index + random.usize(1..pages.len())) % pages.len()];
                    values = other.truth.get(field).cloned().unwrap_or_default();
                }
                known.insert(field.clone(), values);
            }
        }
        given.push(Page {
            url: page.url.clone(),
            kind: PageKind::Html,
            text: page.html.clone(),
            record: None,
            known,
            said: BTreeMap::new(),
        });
    }
    given
}

/// Learns a mapping. Returns an engine with it, and the chain of each field.
fn learn_engine(pages: &[Page]) -> Option<(Engine, Chains)> {
    let task = Task {
        name: "learned".to_owned(),
        fields: Vec::new(),
        limits: Limits::default(),
    };
    let learned = learn(pages, &[], &task).ok()?;
    let mut chains = Chains::new();
    for field in learned.mappings.iter().flat_map(|mapping| &mapping.fields) {
        let chain = field
            .processors
            .as_ref()
            .map(Value::to_string)
            .unwrap_or_default();
        chains.insert(
            field.field.clone(),
            format!("{:.2} {chain}", field.confidence),
        );
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
    Some((
        Engine::new(Arc::new(set), webfill_mapping::Limits::default()),
        chains,
    ))
}

/// Normalises the values of a field. Numbers are compared as numbers, because a record may have more zeros than a page.
fn normalise_values(values: Option<&Vec<String>>) -> BTreeSet<String> {
    let values = values.into_iter().flatten();
    values
        .map(|value| match value.parse::<f64>() {
            Ok(number) if value.contains('.') => number.to_string(),
            _ => normalise_spaces(value),
        })
        .collect()
}
