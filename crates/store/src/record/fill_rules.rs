//! Filling records: the values of a page, and the mappings' rules for it.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::source::{EVIDENCE, MAX_PARTS};
use crate::timestamp::iso_time;

/// The names of mappings, in the order of their priority. A mapping that is not listed comes last.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MappingOrder(pub Vec<String>);

impl MappingOrder {
    pub(super) fn priority_rank(&self, mapping: Option<&str>) -> usize {
        let same = |name: &String| Some(name.as_str()) == mapping;
        self.0.iter().position(same).unwrap_or(self.0.len())
    }
}

/// The rules for how mappings fill records.
pub trait MappingRules: Debug + Send + Sync {
    /// The mappings in the order of their priority: the value of the first one wins.
    fn order(&self) -> MappingOrder;

    /// The mapping that reads the page with this URL.
    fn mapping_of(&self, url: &str) -> Option<&str>;

    /// The fields that a mapping uses to recognise the record that its page is about; empty if it names none.
    fn match_fields(&self, mapping: &str) -> &[String];

    /// The fields whose lists continue on further pages of the mapping.
    fn continued_fields(&self, mapping: &str) -> Vec<&str>;

    /// Whether any mapping has lists that mark missing rows as gone.
    fn marks_missing_rows(&self) -> bool {
        false
    }

    /// Whether a mapping's pages list rows.
    fn lists_rows(&self, _mapping: &str) -> bool {
        false
    }
}

/// An order of mappings alone gives no further rules.
impl MappingRules for MappingOrder {
    fn order(&self) -> MappingOrder {
        self.clone()
    }

    fn mapping_of(&self, _url: &str) -> Option<&str> {
        None
    }

    fn match_fields(&self, _mapping: &str) -> &[String] {
        &[]
    }

    fn continued_fields(&self, _mapping: &str) -> Vec<&str> {
        Vec::new()
    }
}

/// The rules for how pages fill records.
#[derive(Clone, Default)]
pub(crate) struct FillRules {
    pub(crate) order: MappingOrder,
    pub(crate) mappings: Option<Arc<dyn MappingRules>>,
}

impl FillRules {
    pub(crate) fn from_mappings(mappings: Arc<dyn MappingRules>) -> FillRules {
        FillRules {
            order: mappings.order(),
            mappings: Some(mappings),
        }
    }

    /// The fields of a page whose lists continue on further pages of its mapping.
    pub(super) fn continued_fields(&self, mapping: Option<&str>) -> Vec<&str> {
        match (&self.mappings, mapping) {
            (Some(mappings), Some(mapping)) => mappings.continued_fields(mapping),
            _ => Vec::new(),
        }
    }

    /// The links of a page that matter for filling records.
    pub(crate) fn find_leads(&self, url: &str, mapping: Option<&str>, links: &[String]) -> Leads {
        Leads {
            forks: self.find_forks(links),
            further: self.further_pages(url, mapping, links),
            lists_rows: mapping.is_some_and(|mapping| self.lists_rows(mapping))
                || links.iter().any(|link| self.page_lists_rows(link)),
        }
    }

    fn lists_rows(&self, mapping: &str) -> bool {
        let mappings = self.mappings.as_ref();
        mappings.is_some_and(|mappings| mappings.lists_rows(mapping))
    }

    /// Whether the page with this URL lists rows, as far as its mapping shows.
    pub(super) fn page_lists_rows(&self, url: &str) -> bool {
        let mapping = self.mappings.as_ref().and_then(|all| all.mapping_of(url));
        mapping.is_some_and(|mapping| self.lists_rows(mapping))
    }

    fn further_pages(&self, url: &str, mapping: Option<&str>, links: &[String]) -> Vec<String> {
        let mut further: Vec<String> = Vec::new();
        let Some(mappings) = &self.mappings else {
            return further;
        };
        if self.continued_fields(mapping).is_empty() {
            return further;
        }
        for link in links {
            let is_further = link != url && mappings.mapping_of(link) == mapping;
            // One page more than the maximum is kept, which shows that the list is incomplete.
            if is_further && further.len() <= MAX_PARTS && !further.contains(link) {
                further.push(link.clone());
            }
        }
        further
    }

    fn find_forks(&self, links: &[String]) -> Vec<String> {
        let Some(mappings) = self.mappings.as_ref().filter(|_| links.len() > 1) else {
            return Vec::new();
        };
        let mut led_to: HashMap<&str, &str> = HashMap::new();
        let mut forks: Vec<String> = Vec::new();
        for link in links {
            let Some(mapping) = mappings.mapping_of(link) else {
                continue;
            };
            let first = *led_to.entry(mapping).or_insert(link);
            if first != link && !forks.iter().any(|known| known == mapping) {
                forks.push(mapping.to_owned());
            }
        }
        forks
    }
}

/// Links of a page that matter for filling records.
#[derive(Debug, Clone, Default)]
pub(crate) struct Leads {
    /// The mappings with several pages that the page links to.
    pub(crate) forks: Vec<String>,
    /// The pages where the page's lists continue. They have the same mapping.
    pub(crate) further: Vec<String>,
    /// Whether the page lists rows, or links to a page that does.
    pub(crate) lists_rows: bool,
}

/// The [`Leads`] of a page without links.
#[cfg(test)]
pub(crate) static NOWHERE: Leads = Leads {
    forks: Vec::new(),
    further: Vec::new(),
    lists_rows: false,
};

/// The values of a page, and the facts about the page that become the source of a record's value.
pub(crate) struct PageValues<'a> {
    pub(crate) fields: &'a Map<String, Value>,
    pub(crate) url: &'a str,
    pub(crate) mapping: Option<&'a str>,
    pub(crate) started_at_ms: i64,
    pub(crate) ended_at_ms: i64,
    /// How many links lead from a seed to the page; `None` if unknown.
    pub(crate) depth: Option<u16>,
    pub(crate) leads: &'a Leads,
    /// Whether the page was fetched for several records and belongs to another one of them.
    pub(crate) is_of_other: bool,
    /// Whether a stored page was read again instead of being fetched.
    pub(crate) is_reread: bool,
}

impl<'a> PageValues<'a> {
    pub(super) fn to_source(&self, evidence: Option<u32>) -> Value {
        let mut source = json!({
            "url": self.url,
            "mapping": self.mapping,
            "at": iso_time(self.started_at_ms),
        });
        if let Some(evidence) = evidence {
            source[EVIDENCE] = evidence.into();
        }
        source
    }
}
