//! The counters of a crawl, such as its queued tasks and fetched pages.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use webfill_wire::{Outcome, Reason};

/// The counters of a crawl. At every moment
/// `discovered == queued + leased + done + the sum of skipped`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CrawlStatus {
    /// How many lines of the seed input are committed; see [`set_fed_lines`](super::Crawls::set_fed_lines).
    pub fed_lines: u64,
    /// Whether the seeds have ended: no further ones will come.
    pub seeds_ended: bool,
    /// URLs judged: seeds, links and redirects.
    pub discovered: u64,
    pub queued: u64,
    pub leased: u64,
    pub done: u64,
    /// Tasks by outcome; together they are `done`.
    pub outcomes: BTreeMap<Outcome, u64>,
    /// URLs that were judged but did not become tasks, by reason.
    pub skipped: BTreeMap<Reason, u64>,
    /// Outcomes that have an HTTP status.
    pub pages: u64,
    /// Pages that were read but have no mapping.
    pub unmatched: u64,
    /// The number of field values stored.
    pub fields: u64,
    /// The number of rows in lists on pages, and of those whose values are stored.
    pub rows: u64,
    pub rows_stored: u64,
    /// The number of links found on pages.
    pub links: u64,
    /// The size of decoded bodies, in bytes.
    pub bytes: u64,
    /// Sites with at least one task.
    pub sites: u64,
}

impl CrawlStatus {
    /// The counters for the store, the records of runs and `webfill crawl`, by their JSON names.
    pub fn counts(&self) -> Map<String, Value> {
        let counts = [
            ("pages", json!(self.pages)),
            ("outcomes", json!(self.outcomes)),
            ("skipped", json!(self.skipped)),
            ("unmatched", json!(self.unmatched)),
            ("fields", json!(self.fields)),
            ("rows", json!(self.rows)),
            ("rows_stored", json!(self.rows_stored)),
            ("links", json!(self.links)),
            ("bytes", json!(self.bytes)),
            ("queued", json!(self.queued)),
            ("sites", json!(self.sites)),
        ];
        let named = counts.map(|(name, count)| (name.to_owned(), count));
        named.into_iter().collect()
    }

    /// Adds the counters of another crawl.
    pub fn add(&mut self, other: &CrawlStatus) {
        self.fed_lines += other.fed_lines;
        self.discovered += other.discovered;
        self.queued += other.queued;
        self.leased += other.leased;
        self.done += other.done;
        self.pages += other.pages;
        self.unmatched += other.unmatched;
        self.fields += other.fields;
        self.rows += other.rows;
        self.rows_stored += other.rows_stored;
        self.links += other.links;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.sites += other.sites;
        for (outcome, n) in &other.outcomes {
            *self.outcomes.entry(*outcome).or_default() += n;
        }
        for (reason, n) in &other.skipped {
            *self.skipped.entry(*reason).or_default() += n;
        }
    }
}
