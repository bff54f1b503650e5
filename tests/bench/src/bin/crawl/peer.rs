//! Measures another crawler (a peer) on the same web, with the same XPath expressions.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::failure::Failure;
use crate::processes::{Cost, measure};
use crate::webfill::Fields;

/// A crawl that another crawler performs.
pub struct PeerCrawl {
    pub seeds: Vec<String>,
    /// The mapping file that has the XPath expressions.
    pub mapping: PathBuf,
    /// Every link is followed up to this link depth.
    pub depth: u32,
    /// Settings of Scrapy in addition to those of `spider.py`.
    pub settings: Value,
    /// Host names that resolve to 127.0.0.1, for Scrapy.
    pub hosts: Vec<String>,
}

/// The results of another crawler's run.
pub struct PeerResult {
    pub cost: Cost,
    pub pages: u64,
    folder: tempfile::TempDir,
}

impl PeerCrawl {
    /// Runs a program that reads `task.json` in its folder, and writes `items.jsonl` and `stats.json` there.
    pub fn run(&self, mut program: Command) -> Result<PeerResult, Failure> {
        let folder = tempfile::tempdir()?;
        let task = json!({
            "seeds": self.seeds,
            "mapping": self.mapping,
            "depth": self.depth,
            "settings": self.settings,
            "hosts": self.hosts,
        });
        std::fs::write(folder.path().join("task.json"), task.to_string())?;
        program.current_dir(folder.path());
        let cost = measure(program, |_| {})?;
        let stats: Value =
            serde_json::from_slice(&std::fs::read(folder.path().join("stats.json"))?)?;
        Ok(PeerResult {
            cost,
            pages: stats["response_received_count"].as_u64().unwrap_or(0),
            folder,
        })
    }
}

impl PeerResult {
    pub fn fields(&self) -> Result<Fields, Failure> {
        let lines = std::fs::read_to_string(self.folder.path().join("items.jsonl"))?;
        let mut scraped = Fields::new();
        for line in lines.lines() {
            let mut item: Value = serde_json::from_str(line)?;
            let url = item["url"].as_str().unwrap_or_default().to_owned();
            scraped.insert(url, serde_json::from_value(item["fields"].take())?);
        }
        Ok(scraped)
    }
}
