//! Reads pages with a mapping, and compares the values with known ones.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use webfill_mapping::{Engine, Extraction, Limits, MappingSet, PageInput, RequestedParts};
use webfill_service::Fault;

use crate::mapping_command::learn::gathered::GatheredPage;
use crate::mapping_command::learn::output::load_checked;
use crate::mapping_command::learn::records::known_values;

use super::evidence::{Evidence, Values};

/// The time limit for reading one page.
const PAGE_TIME: Duration = Duration::from_secs(10);

/// One mapping of a file, ready to read pages.
pub struct Reader {
    set: Arc<MappingSet>,
    engine: Engine,
    name: String,
}

impl Reader {
    /// `file` is the text of a mapping file, and `name` selects one of its mappings. `shown` names the file in errors.
    pub fn new(shown: &str, file: &str, name: &str) -> Result<Reader, Fault> {
        let set = Arc::new(load_checked(shown, file)?);
        Ok(Reader {
            engine: Engine::new(Arc::clone(&set), Limits::default()),
            set,
            name: name.to_owned(),
        })
    }

    /// Whether the mapping applies to this page.
    pub fn is_for(&self, page: &GatheredPage) -> bool {
        let index = self.set.find_by_name(&self.name);
        index.is_some_and(|index| self.set.find_all(page.url.as_str()).contains(&index))
    }

    pub fn extract(&self, page: &GatheredPage) -> Option<Extraction> {
        let index = self.set.find_by_name(&self.name)?;
        let input = PageInput {
            url: &page.url,
            kind: page.kind,
            text: &page.text,
        };
        let wants = RequestedParts {
            mapped_links: true,
            deadline: Some(Instant::now() + PAGE_TIME),
            ..RequestedParts::default()
        };
        self.engine
            .extract_with_mapping(Some(index), input, wants)
            .ok()
    }

    /// The values on a page; `None` if it could not be read completely, for example within the time limit.
    pub fn read_values(&self, page: &GatheredPage) -> Option<Values> {
        let extraction = self.extract(page)?;
        Some(known_values(&extraction.fields))
    }

    /// Reads all pages of the evidence, each once.
    pub fn read_all(&self, evidence: &Evidence) -> Readings {
        let read =
            |pages: &[GatheredPage]| pages.iter().map(|page| self.read_values(page)).collect();
        Readings {
            before: read(&evidence.before),
            now: read(&evidence.now),
        }
    }
}

/// The values that a mapping reads on the pages from before the change and on the current pages.
pub struct Readings {
    pub before: Vec<Option<Values>>,
    pub now: Vec<Option<Values>>,
}

/// Normalises values for comparison: order, spaces and letter case do not matter.
pub fn fold_values(values: &[String]) -> Vec<String> {
    let fold = |value: &String| {
        let words: Vec<&str> = value.split_whitespace().collect();
        words.join(" ").to_lowercase()
    };
    let mut folded: Vec<String> = values.iter().map(fold).collect();
    folded.sort_unstable();
    folded
}

/// Whether values are equal apart from order, spaces and letter case.
pub fn are_same(one: &[String], other: &[String]) -> bool {
    fold_values(one) == fold_values(other)
}

/// Formats values for people.
pub fn format_values(values: Option<&Vec<String>>) -> String {
    match values {
        None => String::from("nothing"),
        Some(values) => Value::from(values.join(", ")).to_string(),
    }
}
