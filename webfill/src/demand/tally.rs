//! Counts the results of feeding requests.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Counts the results of feeding crawl requests.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Tally {
    pub accepted: u64,
    /// URLs of accepted requests that are not queued, by reason, such as duplicates.
    pub skipped: BTreeMap<String, u64>,
    pub refused: u64,
}

impl Tally {
    /// Adds an answer of the dispatcher.
    pub(super) fn add(&mut self, answer: &Value) {
        self.accepted += answer["accepted"].as_u64().unwrap_or_default();
        for (reason, count) in answer["skipped"].as_object().into_iter().flatten() {
            *self.skipped.entry(reason.clone()).or_default() += count.as_u64().unwrap_or_default();
        }
    }

    /// The counts as JSON, for programs.
    pub fn counts(&self) -> Value {
        json!({
            "kind": "feed",
            "accepted": self.accepted,
            "skipped": self.skipped,
            "refused": self.refused,
        })
    }

    /// The counts as a sentence: `3 accepted (2 duplicate), 1 refused`.
    pub fn sentence(&self) -> String {
        let mut sentence = format!("{} accepted", self.accepted);
        let skipped = self.skipped.iter();
        let skipped: Vec<String> = skipped
            .map(|(reason, count)| format!("{count} {reason}"))
            .collect();
        if !skipped.is_empty() {
            sentence += &format!(" ({})", skipped.join(", "));
        }
        if self.refused > 0 {
            sentence += &format!(", {} refused", self.refused);
        }
        sentence
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn accepted_urls_that_are_not_crawled_are_counted_by_reason() {
        let mut tally = Tally::default();
        tally.add(&json!({"accepted": 2}));
        assert_eq!(tally.sentence(), "2 accepted");
        tally.add(&json!({"accepted": 3, "skipped": {"duplicate": 2, "out_of_domain": 1}}));
        tally.refused = 1;
        assert_eq!(
            tally.sentence(),
            "5 accepted (2 duplicate, 1 out_of_domain), 1 refused"
        );
    }
}
