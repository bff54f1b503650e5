//! The origin of a learned mapping: what it was learned from. It is stored in a file of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use webfill_learn::FieldReport;

use crate::fill::project::Project;
use crate::fill::reading::FieldReading;

/// How a mapping was learned.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Origin {
    /// The site of the pages that the mapping is for.
    pub site: String,
    /// The version of the mapping when it was written. If the file now has another version, a person has edited it.
    pub version: String,
    /// URLs of the pages that it was learned from.
    pub pages: Vec<String>,
    pub fields: BTreeMap<String, FieldOrigin>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct FieldOrigin {
    /// The kind of anchor the first chain finds its values by.
    pub anchor: String,
    pub confidence: f64,
    pub why: String,
    /// The number of pages whose known value the first chain reads, and of those whose known value it does not read.
    #[serde(default)]
    pub reads: u32,
    #[serde(default)]
    pub misses: u32,
    /// The share of pages where another chain, with another kind of anchor, reads the same value.
    #[serde(default)]
    pub agreement: f64,
    /// If the site has no known value of the field, the probability that the chain reads this field at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposed: Option<f64>,
    /// For each page with a known value, by URL: whether a chain that was learned without this page reads the value.
    pub without_page: BTreeMap<String, bool>,
    /// URLs of pages where something contradicts the reading of the first chain.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub disputed: BTreeSet<String>,
    /// The number of values that the first chain reads on each page used to choose it; `None` if this number varies.
    #[serde(default)]
    pub expected: Option<usize>,
    /// The least number of values that the chain reads on a page, if it takes the first of several different ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<usize>,
}

impl FieldOrigin {
    /// Whether something on the page contradicts this reading. For an alternative chain, several different values are
    /// enough, because alternatives are chosen only if they read one value everywhere.
    pub fn is_disputed(&self, url: &str, read: &FieldReading) -> bool {
        let is_first_of_several = read.values.len() == 1 && read.different > 1;
        // A list may have the same value twice.
        let most = read.different.max(read.values.len());
        match (read.chain, self.expected) {
            (_, Some(count)) if most < count => true,
            (0, None) if self.least.is_some_and(|least| read.count < least) => true,
            (0, expected) => {
                self.disputed.contains(url) || expected == Some(1) && is_first_of_several
            }
            _ => is_first_of_several,
        }
    }

    /// The origin of a field that was learned from proposed values. Such values do not show how well the chain reads.
    /// The confidence in the field is lower the less certain the chain is.
    pub(super) fn from_proposal(field: &FieldReport, confidence: f64) -> FieldOrigin {
        FieldOrigin {
            anchor: field.anchor.clone().unwrap_or_default(),
            confidence: field.confidence,
            why: format!(
                "No value is known on this site. By what other sites teach, the field stands here with a probability of \
                 {confidence:.2}."
            ),
            proposed: Some(confidence * field.confidence.clamp(0.0, 1.0)),
            disputed: field.disputed.iter().cloned().collect(),
            expected: field.reads,
            least: field.least,
            ..FieldOrigin::default()
        }
    }
}

pub(super) fn origin_file(project: &Project, name: &str) -> PathBuf {
    project.learned_folder().join(format!("{name}.json"))
}

/// Reads the origin of a mapping. If it is missing or unreadable, the mapping counts as a person's.
pub(super) fn read_origin(project: &Project, name: &str) -> Option<Origin> {
    let text = std::fs::read_to_string(origin_file(project, name)).ok()?;
    serde_json::from_str(&text).ok()
}
