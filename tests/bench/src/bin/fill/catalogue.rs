//! Tables about things on pages whose true values are known. Some values of a table are deleted, and some others are
//! replaced by wrong ones.

use std::collections::BTreeSet;

use fastrand::Rng;
use webfill_bench::made_sites::made_site;
use webfill_bench::sites::{Failure, LabelledPage, Site, normalise_spaces};

/// The layouts: a table of labels and values, a German description list, linked data, and attributes.
const LAYOUTS: [&str; 4] = ["rows", "definitions", "linked-data", "attributes"];

/// The columns of the table. A generated site may lack some of these fields.
const FIELDS: [&str; 6] = ["name", "maker", "price", "date", "city", "colour"];

/// The separator between several values in one cell.
pub const BETWEEN: &str = "|";

/// Things of one kind with their pages, and the columns of a table about them.
pub struct Catalogue {
    pub name: String,
    pub fields: Vec<String>,
    pub things: Vec<Thing>,
}

/// A thing with its page, and the true value of each column.
pub struct Thing {
    pub url: String,
    pub html: String,
    pub truth: Vec<Truth>,
}

/// The true value of a cell. It is empty if the page has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Truth {
    /// A single value. The page has it in each of these spellings.
    Spellings(Vec<String>),
    List(Vec<String>),
}

/// What the table contains in a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Given {
    /// An empty cell whose page has no value, so it must stay empty.
    Nothing,
    Gap,
    Right,
    Wrong(String),
}

pub struct Row {
    pub url: String,
    pub truth: Vec<Truth>,
    pub given: Vec<Given>,
}

pub struct Table {
    pub fields: Vec<String>,
    pub rows: Vec<Row>,
}

impl Truth {
    pub fn is_empty(&self) -> bool {
        self.values().is_empty()
    }

    /// The value as the text of a cell.
    pub fn text(&self) -> String {
        match self {
            Truth::Spellings(values) => values.first().cloned().unwrap_or_default(),
            Truth::List(values) => values.join(BETWEEN),
        }
    }

    /// Whether a filled cell has the true value.
    pub fn matches(&self, cell: &str) -> bool {
        // A page may show a shortened text (`...`) in one place and the whole text in another.
        let is_same = |value: &String| match normalise_spaces(value).trim_end().strip_suffix("...")
        {
            Some(begin) => normalise_spaces(cell).starts_with(begin.trim_end()),
            None => normalise_spaces(value) == normalise_spaces(cell),
        };
        match self {
            Truth::Spellings(values) => {
                values.iter().any(is_same) || self.is_empty() && cell.is_empty()
            }
            Truth::List(values) => {
                let values: BTreeSet<String> =
                    values.iter().map(|value| normalise_spaces(value)).collect();
                let filled = cell.split(BETWEEN).map(normalise_spaces);
                filled
                    .filter(|value| !value.is_empty())
                    .collect::<BTreeSet<String>>()
                    == values
            }
        }
    }

    fn values(&self) -> &[String] {
        match self {
            Truth::Spellings(values) | Truth::List(values) => values,
        }
    }
}

impl Catalogue {
    /// A catalogue of four sites with different layouts, each with this many pages.
    pub fn made_catalogue(pages: usize) -> Catalogue {
        let sites = LAYOUTS.map(|layout| made_site(layout, pages));
        let pages = sites.into_iter().flat_map(|site| site.pages);
        Catalogue {
            name: "made".to_owned(),
            fields: FIELDS.map(str::to_owned).to_vec(),
            things: pages.map(|page| Thing::made_thing(&page)).collect(),
        }
    }

    /// A catalogue of several sites about things of one kind, with all of their fields.
    pub fn of_sites(name: &str, sites: &[Site]) -> Catalogue {
        let pages = || sites.iter().flat_map(|site| &site.pages);
        let fields: BTreeSet<&String> = pages().flat_map(|page| page.truth.keys()).collect();
        let fields: Vec<String> = fields.into_iter().cloned().collect();
        let mut things = Vec::new();
        for site in sites {
            let lists: Vec<bool> = fields.iter().map(|field| is_list(site, field)).collect();
            for page in &site.pages {
                let truth = fields.iter().zip(&lists).map(|(field, is_list)| {
                    let values = page.truth.get(field).cloned().unwrap_or_default();
                    match is_list {
                        true => Truth::List(values),
                        false => Truth::Spellings(values),
                    }
                });
                things.push(Thing::new(page, truth.collect()));
            }
        }
        Catalogue {
            name: name.to_owned(),
            fields,
            things,
        }
    }

    /// Makes a table with random gaps and wrong values. The same shares and the same `draw` always give the same table.
    pub fn draw_table(&self, deleted: f64, wrong: f64, draw: u64) -> Table {
        let shares = (deleted * 100.0) as u64 * 1_000 + (wrong * 100.0) as u64;
        // The seed includes the name, so that tables with different names have their gaps and wrong values in different
        // places.
        let seed = self
            .name
            .bytes()
            .fold(draw * 1_000_000 + shares, |sum, byte| {
                sum.wrapping_mul(1_000_003) ^ u64::from(byte)
            });
        let mut chance = Rng::with_seed(seed);
        let things = &self.things;
        let mut rows = Vec::with_capacity(things.len());
        for thing in things {
            let given = (0..self.fields.len()).map(|field| {
                let truth = &thing.truth[field];
                if truth.is_empty() {
                    return Given::Nothing;
                }
                if chance.f64() < deleted {
                    return Given::Gap;
                }
                if chance.f64() >= wrong {
                    return Given::Right;
                }
                let other = &things[chance.usize(..things.len())].truth[field];
                match other.is_empty() || other.text() == truth.text() {
                    true => Given::Right,
                    false => Given::Wrong(other.text()),
                }
            });
            rows.push(Row {
                url: thing.url.clone(),
                truth: thing.truth.clone(),
                given: given.collect(),
            });
        }
        // The rows of different sites are mixed, as in real tables.
        chance.shuffle(&mut rows);
        Table {
            fields: self.fields.clone(),
            rows,
        }
    }
}

/// Whether a field of a site has several values. If the values share a word, or one of them contains all others, they
/// are spellings of one value.
fn is_list(site: &Site, field: &str) -> bool {
    let words = |value: &String| -> BTreeSet<String> {
        let words = value.split_whitespace().map(str::to_lowercase);
        words
            .filter(|word| word.contains(char::is_alphabetic))
            .collect()
    };
    let are_spellings = |values: &&&Vec<String>| {
        let has_all = |one: &String| values.iter().all(|other| one.contains(other.as_str()));
        let mut of_all = values.iter().map(words);
        let first = of_all.next().unwrap_or_default();
        let shared = of_all.fold(first, |shared, words| &shared & &words);
        !shared.is_empty() || values.iter().any(has_all)
    };
    let of_pages = site.pages.iter().filter_map(|page| page.truth.get(field));
    let several: Vec<&Vec<String>> = of_pages.filter(|values| values.len() > 1).collect();
    several.iter().filter(are_spellings).count() * 2 < several.len()
}

impl Thing {
    fn new(page: &LabelledPage, truth: Vec<Truth>) -> Thing {
        Thing {
            // The pages are served by plain HTTP, so that `webfill fill` needs no TLS.
            url: page.url.as_str().replacen("https:", "http:", 1),
            html: page.html.clone(),
            truth,
        }
    }

    fn made_thing(page: &LabelledPage) -> Thing {
        let truth = FIELDS.map(|field| {
            let values = page.truth.get(field);
            let value = values.and_then(|values| values.first());
            let value = value.map(|value| match field {
                // In tables, people write prices as plain numbers.
                "price" => value.replace(['$', ','], ""),
                _ => value.clone(),
            });
            Truth::Spellings(value.into_iter().collect())
        });
        Thing::new(page, truth.to_vec())
    }
}

impl Row {
    /// The host of the row's page.
    pub fn site(&self) -> &str {
        let url = self.url.trim_start_matches("http://");
        url.split('/').next().unwrap_or_default()
    }
}

impl Table {
    pub fn to_csv(&self) -> Result<Vec<u8>, Failure> {
        let mut out = csv::Writer::from_writer(Vec::new());
        let heads = ["id", "url"].into_iter();
        out.write_record(heads.chain(self.fields.iter().map(String::as_str)))?;
        for (number, row) in self.rows.iter().enumerate() {
            let mut cells = vec![format!("t{number}"), row.url.clone()];
            for (given, truth) in row.given.iter().zip(&row.truth) {
                cells.push(match given {
                    Given::Nothing | Given::Gap => String::new(),
                    Given::Right => truth.text(),
                    Given::Wrong(value) => value.clone(),
                });
            }
            out.write_record(cells)?;
        }
        out.into_inner().map_err(|error| error.to_string().into())
    }
}
