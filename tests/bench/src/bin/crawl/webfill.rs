//! One run of `webfill crawl` under measurement.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rusqlite::Connection;
use serde_json::Value;
use webfill_bench::program::binary;

use crate::failure::Failure;
use crate::processes::{Cost, Roles, measure};

/// For each page, the values of its fields.
pub type Fields = BTreeMap<String, BTreeMap<String, Value>>;

/// A `webfill crawl` to run.
pub struct Crawl {
    /// The seeds, one line each.
    pub seeds: Vec<String>,
    /// The path of a mapping file.
    pub mapping: PathBuf,
    /// Further flags. If none of them names a store, the store is a file.
    pub flags: Vec<String>,
}

/// The results of a `webfill crawl`.
pub struct CrawlResult {
    pub cost: Cost,
    pub summary: Value,
    folder: tempfile::TempDir,
}

impl Crawl {
    /// Runs the crawl in a new folder. `watch` is called with each sample of the processes' memory.
    pub fn run(&self, watch: impl FnMut(&Roles)) -> Result<CrawlResult, Failure> {
        self.run_with(|_| {}, watch)
    }

    /// Like `run`, but `change` may first change the command.
    pub fn run_with(
        &self,
        change: impl FnOnce(&mut Command),
        watch: impl FnMut(&Roles),
    ) -> Result<CrawlResult, Failure> {
        let folder = tempfile::tempdir()?;
        let mappings = folder.path().join("mappings");
        std::fs::create_dir(&mappings)?;
        std::fs::copy(&self.mapping, mappings.join("mapping.json"))?;
        std::fs::write(folder.path().join("seeds.txt"), self.seeds.join("\n"))?;
        let summary_file = std::fs::File::create(folder.path().join("summary.json"))?;
        let mut command = Command::new(binary()?);
        command
            .args(["crawl", "--seeds", "seeds.txt", "--mappings", "mappings"])
            .args(["--fail-on", "never"])
            .args(["--state", "state"])
            .args([
                "--summary",
                "json",
                "--progress",
                "none",
                "--allow-private-networks",
            ])
            .args(&self.flags)
            .current_dir(folder.path())
            .stdout(Stdio::from(summary_file));
        if !self.flags.iter().any(|flag| flag == "--store") {
            command.args(["--store", "sqlite:webfill.db"]);
        }
        change(&mut command);
        let cost = measure(command, watch)?;
        let text = std::fs::read_to_string(folder.path().join("summary.json"))?;
        let summary = serde_json::from_str(&text)
            .map_err(|_| format!("webfill ended with {:?} and no summary", cost.exit_code))?;
        Ok(CrawlResult {
            cost,
            summary,
            folder,
        })
    }
}

impl CrawlResult {
    pub fn pages(&self) -> u64 {
        self.summary["pages"].as_u64().unwrap_or(0)
    }

    /// The stored fields of each page that a mapping has read.
    pub fn fields(&self) -> Result<Fields, Failure> {
        let store = Connection::open(self.folder.path().join("webfill.db"))?;
        let mut statement =
            store.prepare("SELECT url, fields FROM pages WHERE mapping IS NOT NULL")?;
        let mut rows = statement.query([])?;
        let mut stored = Fields::new();
        while let Some(row) = rows.next()? {
            let fields: String = row.get(1)?;
            stored.insert(row.get(0)?, serde_json::from_str(&fields)?);
        }
        Ok(stored)
    }
}

/// The path of a file in the folder of the benchmarks.
pub fn bench_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("crawl")
        .join(name)
}
