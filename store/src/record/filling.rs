//! What fills a record: the values of a page, and what mappings say about records.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::identity::EVIDENCE;
use crate::page::Page;
use crate::timestamp::iso_time;

/// The names of mappings, in the order of their priority. A mapping that is not listed comes last.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MappingOrder(pub Vec<String>);

impl MappingOrder {
    pub(super) fn rank(&self, mapping: Option<&str>) -> usize {
        let same = |name: &String| Some(name.as_str()) == mapping;
        self.0.iter().position(same).unwrap_or(self.0.len())
    }
}

/// What mappings say of records.
pub trait MappingRules: Send + Sync {
    /// The mapping that reads the page of a URL.
    fn mapping_of(&self, url: &str) -> Option<&str>;

    /// The fields by which a mapping recognises the record that its page is about; none if it names none.
    fn match_fields(&self, mapping: &str) -> &[String];

    /// Whether the list of a field goes on over further pages of the mapping.
    fn continues(&self, mapping: &str, field: &str) -> bool;
}

/// By what pages fill records.
#[derive(Clone, Default)]
pub(crate) struct FillRules {
    pub(crate) order: MappingOrder,
    pub(crate) mappings: Option<Arc<dyn MappingRules>>,
}

impl FillRules {
    /// The entries of a list that goes on over further pages of a mapping.
    pub(super) fn continued<'v>(
        &self,
        mapping: Option<&str>,
        field: &str,
        value: &'v Value,
    ) -> Option<&'v [Value]> {
        let mappings = self.mappings.as_ref()?;
        let items = value.as_array()?;
        mappings.continues(mapping?, field).then_some(items)
    }

    /// The mappings to several pages of which these links lead.
    pub(crate) fn forks(&self, links: &[String]) -> Vec<String> {
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

/// The values of a page, with what a record's source says of them.
pub(crate) struct PageValues<'a> {
    pub(crate) fields: &'a Map<String, Value>,
    pub(crate) url: &'a str,
    pub(crate) mapping: Option<&'a str>,
    pub(crate) started_at_ms: i64,
    pub(crate) ended_at_ms: i64,
    /// How many links have led to it; `None` if that is not known.
    pub(crate) depth: Option<u16>,
    /// The mappings to several pages of which it leads.
    pub(crate) forks: &'a [String],
    /// It is a page of another record that it was fetched for.
    pub(crate) is_of_other: bool,
}

impl<'a> PageValues<'a> {
    pub(crate) fn of(page: &'a Page, forks: &'a [String]) -> PageValues<'a> {
        PageValues {
            depth: Some(page.depth),
            forks,
            is_of_other: false,
            fields: &page.fields,
            url: &page.url,
            mapping: page.mapping.as_deref(),
            started_at_ms: page.started_at_ms,
            ended_at_ms: page.ended_at_ms(),
        }
    }

    pub(super) fn source(&self, evidence: Option<u32>) -> Value {
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
