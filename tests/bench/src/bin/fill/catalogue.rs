//! Made catalogues, and tables of their things that lack some values and have wrong ones.

use fastrand::Rng;
use webfill_bench::made_sites::made_site;
use webfill_bench::sites::{Failure, LabelledPage};

/// A table of labels and values, a German description list, linked data, attributes.
const LAYOUTS: [&str; 4] = ["rows", "definitions", "linked-data", "attributes"];

/// Not every site has each of them.
pub const FIELDS: [&str; 6] = ["name", "maker", "price", "date", "city", "colour"];

pub struct Catalogue {
    pub pages: Vec<LabelledPage>,
}

/// The content of a cell of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Given {
    /// A gap that stays one: its page has no such value.
    Nothing,
    Gap,
    Right,
    Wrong(String),
}

/// A row: its URL, the true values (empty: there is none), and what is given.
pub struct Row {
    pub url: String,
    pub truth: [String; FIELDS.len()],
    pub given: [Given; FIELDS.len()],
}

pub struct Table {
    pub rows: Vec<Row>,
}

impl Catalogue {
    /// With this many pages of each site.
    pub fn make(pages: usize) -> Catalogue {
        let mut catalogue = Catalogue { pages: Vec::new() };
        for layout in LAYOUTS {
            for mut page in made_site(layout, pages).pages {
                // As the others, `webfill fill` reaches them without TLS.
                let url = page.url.as_str().replacen("https:", "http:", 1);
                page.url = url.parse().expect("it was a URL");
                catalogue.pages.push(page);
            }
        }
        catalogue
    }

    /// The same for the same shares.
    pub fn table(&self, deleted: f64, wrong: f64) -> Table {
        let mut chance = Rng::with_seed((deleted * 100.0) as u64 * 1_000 + (wrong * 100.0) as u64);
        let truths: Vec<[String; FIELDS.len()]> = self.pages.iter().map(truth_of).collect();
        let mut rows = Vec::with_capacity(truths.len());
        for (page, truth) in self.pages.iter().zip(&truths) {
            let given = std::array::from_fn(|field| {
                if truth[field].is_empty() {
                    return Given::Nothing;
                }
                if chance.f64() < deleted {
                    return Given::Gap;
                }
                if chance.f64() >= wrong {
                    return Given::Right;
                }
                let other = &truths[chance.usize(..truths.len())][field];
                match other.is_empty() || *other == truth[field] {
                    true => Given::Right,
                    false => Given::Wrong(other.clone()),
                }
            });
            rows.push(Row {
                url: page.url.to_string(),
                truth: truth.clone(),
                given,
            });
        }
        // The sites are mixed, as in tables of people.
        chance.shuffle(&mut rows);
        Table { rows }
    }
}

fn truth_of(page: &LabelledPage) -> [String; FIELDS.len()] {
    FIELDS.map(|field| {
        let values = page.truth.get(field);
        let value = values.and_then(|values| values.first());
        let value = value.cloned().unwrap_or_default();
        match field {
            // People keep plain numbers.
            "price" => value.replace(['$', ','], ""),
            _ => value,
        }
    })
}

impl Table {
    pub fn text(&self) -> Result<Vec<u8>, Failure> {
        let mut out = csv::Writer::from_writer(Vec::new());
        let heads = ["id", "url"].into_iter().chain(FIELDS);
        out.write_record(heads)?;
        for (number, row) in self.rows.iter().enumerate() {
            let mut cells = vec![format!("t{number}"), row.url.clone()];
            for (given, truth) in row.given.iter().zip(&row.truth) {
                cells.push(match given {
                    Given::Nothing | Given::Gap => String::new(),
                    Given::Right => truth.clone(),
                    Given::Wrong(value) => value.clone(),
                });
            }
            out.write_record(cells)?;
        }
        out.into_inner().map_err(|error| error.to_string().into())
    }
}
