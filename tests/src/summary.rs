//! The summary that a crawl prints with `--summary json`, with its documented keys.

use std::collections::BTreeMap;

use serde_json::Value;

/// The summary of a crawl.
#[derive(Debug, Clone)]
pub struct Summary {
    pub json: Value,
}

impl Summary {
    /// Parses a summary. Panics if the text is not one JSON object, or if a documented key is missing.
    pub fn parse(text: &str) -> Summary {
        let json: Value = serde_json::from_str(text.trim())
            .unwrap_or_else(|error| panic!("not a JSON summary ({error}):\n{text}"));
        let keys = [
            "crawl_id",
            "pages",
            "outcomes",
            "skipped",
            "records",
            "fields",
            "links",
            "bytes",
            "elapsed_s",
        ];
        for key in keys {
            assert!(
                json.get(key).is_some(),
                "the summary has no `{key}`: {json}"
            );
        }
        Summary { json }
    }

    fn number(&self, key: &str) -> u64 {
        self.json[key]
            .as_u64()
            .unwrap_or_else(|| panic!("`{key}` is not a count: {}", self.json))
    }

    fn counts(&self, key: &str) -> BTreeMap<String, u64> {
        let object = self.json[key]
            .as_object()
            .unwrap_or_else(|| panic!("`{key}` is no object"));
        let counts = object
            .iter()
            .map(|(name, count)| (name.clone(), count.as_u64().expect("a count")));
        counts.filter(|(_, count)| *count > 0).collect()
    }

    pub fn crawl_id(&self) -> &str {
        self.json["crawl_id"].as_str().expect("`crawl_id` is text")
    }

    /// The number of page requests that got a response.
    pub fn pages(&self) -> u64 {
        self.number("pages")
    }

    /// The number of stored values of fields.
    pub fn fields(&self) -> u64 {
        self.number("fields")
    }

    pub fn links(&self) -> u64 {
        self.number("links")
    }

    pub fn bytes(&self) -> u64 {
        self.number("bytes")
    }

    /// The number of tasks for each outcome, without outcomes that have no tasks.
    pub fn outcomes(&self) -> BTreeMap<String, u64> {
        self.counts("outcomes")
    }

    pub fn outcome_count(&self, code: &str) -> u64 {
        self.outcomes().get(code).copied().unwrap_or(0)
    }

    /// The number of refused links for each reason, without reasons that have no links.
    pub fn skipped(&self) -> BTreeMap<String, u64> {
        self.counts("skipped")
    }

    pub fn skipped_count(&self, reason: &str) -> u64 {
        self.skipped().get(reason).copied().unwrap_or(0)
    }

    /// The number of records, and the number of complete records.
    pub fn records(&self) -> (u64, u64) {
        let count = |key: &str| {
            self.json["records"][key]
                .as_u64()
                .expect("a count of records")
        };
        (count("total"), count("resolved"))
    }

    /// The number of tasks that have an outcome.
    pub fn tasks(&self) -> u64 {
        self.outcomes().values().sum()
    }
}
