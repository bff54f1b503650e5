//! Measures a run of Scrapy on the same web, with the same XPath expressions.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::failure::Failure;
use crate::processes::{Cost, measure};
use crate::webfill::{Fields, bench_file};

/// A crawl to run.
pub struct Spider {
    pub seeds: Vec<String>,
    /// The mapping file that has the XPath expressions.
    pub mapping: PathBuf,
    /// The link depth up to which every link is followed.
    pub depth: u32,
    /// Settings in addition to those of `spider.py`.
    pub settings: Value,
    /// Host names that resolve to 127.0.0.1.
    pub hosts: Vec<String>,
}

/// The results of the run.
pub struct SpiderResult {
    pub cost: Cost,
    pub pages: u64,
    folder: tempfile::TempDir,
}

impl Spider {
    pub fn run(&self) -> Result<SpiderResult, Failure> {
        let folder = tempfile::tempdir()?;
        let task = json!({
            "seeds": self.seeds,
            "mapping": self.mapping,
            "depth": self.depth,
            "settings": self.settings,
            "hosts": self.hosts,
        });
        std::fs::write(folder.path().join("task.json"), task.to_string())?;
        let mut command = Command::new(python_path()?);
        command
            .arg(bench_file("spider.py"))
            .current_dir(folder.path());
        let cost = measure(command, |_| {})?;
        let stats: Value =
            serde_json::from_slice(&std::fs::read(folder.path().join("stats.json"))?)?;
        Ok(SpiderResult {
            cost,
            pages: stats["response_received_count"].as_u64().unwrap_or(0),
            folder,
        })
    }
}

impl SpiderResult {
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

/// The Python interpreter that has Scrapy: the one installed by `tests/bench/run.sh`, or the one in SCRAPY_PYTHON.
pub fn python_path() -> Result<PathBuf, Failure> {
    let path = match std::env::var_os("SCRAPY_PYTHON") {
        Some(path) => PathBuf::from(path),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../.cache/scrapy/bin/python"),
    };
    if !path.exists() {
        return Err(format!("{} is missing: tests/bench/run.sh makes it", path.display()).into());
    }
    Ok(path)
}

/// Scrapy's version.
pub fn version() -> Result<String, Failure> {
    let output = Command::new(python_path()?)
        .args([
            "-c",
            "import scrapy, sys; print(scrapy.__version__, 'on Python', sys.version.split()[0])",
        ])
        .output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
