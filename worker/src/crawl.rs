//! A crawl as its workers know it: the settings that all versions of messages have, and what else it
//! asks of them.

use std::ops::Deref;

use webfill_wire::{CrawlSettings, Feature};

/// A crawl's settings, with its features.
#[derive(Debug, Clone)]
pub struct Crawl {
    settings: CrawlSettings,
    features: Vec<Feature>,
}

impl Crawl {
    pub fn new(settings: CrawlSettings, features: Vec<Feature>) -> Crawl {
        Crawl { settings, features }
    }

    /// Whether the crawl asks this of its workers.
    pub fn has(&self, feature: Feature) -> bool {
        self.features.contains(&feature)
    }
}

impl Deref for Crawl {
    type Target = CrawlSettings;

    fn deref(&self) -> &CrawlSettings {
        &self.settings
    }
}
