//! A folder for one test: its seeds, mappings and store, and the state of its crawls.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::run::Run;
use crate::site::Web;
use crate::stored::Stored;

/// A folder that is removed when this value is dropped, unless the test has failed.
pub struct Workplace {
    folder: TempDir,
}

impl Default for Workplace {
    fn default() -> Workplace {
        Workplace::new()
    }
}

impl Workplace {
    /// A workplace with one mapping, [`profile_mapping`], which is named `profile`.
    pub fn new() -> Workplace {
        Workplace::in_folder(&std::env::temp_dir())
    }

    /// A workplace in a new folder below `parent`, for tests that depend on the disk.
    pub fn in_folder(parent: &Path) -> Workplace {
        let folder = tempfile::Builder::new()
            .prefix("webfill-")
            .tempdir_in(parent);
        let workplace = Workplace {
            folder: folder.expect("a temporary folder"),
        };
        workplace.write_json("mappings/profile.json", &profile_mapping());
        workplace
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a file has a folder")).expect("our own folder");
        fs::write(&path, content).expect("our own folder");
        path
    }

    pub fn write_json(&self, name: &str, value: &Value) -> PathBuf {
        self.write(name, value.to_string())
    }

    /// Writes a file with a JSON value on each line. Returns its path.
    pub fn write_lines(&self, name: &str, values: &[Value]) -> PathBuf {
        let lines: Vec<String> = values.iter().map(Value::to_string).collect();
        self.write(name, lines.join("\n") + "\n")
    }

    /// Prepares `webfill crawl` on a test web, with the crawl id `test` and a delay of only 0.2 seconds between
    /// requests.
    pub fn crawl(&self, web: &Web) -> Run {
        self.crawl_without_delay(web).args(["--delay", "0.2"])
    }

    /// Prepares `webfill crawl` on a test web. The delay is not set.
    pub fn crawl_without_delay(&self, web: &Web) -> Run {
        self.plain_crawl()
            .arg("--allow-private-networks")
            .args(web.resolve_args())
    }

    /// Prepares `webfill crawl` without a test web, so it may fetch only from public addresses. By default, no site
    /// backs off and nothing is retried, so each failure is final. A crawl that fetches nothing exits with 0.
    pub fn plain_crawl(&self) -> Run {
        let store = format!("sqlite:{}", self.path("store.db").display());
        Run::new(["crawl", "--store", &store, "--crawl", "test"])
            .arg("--state")
            .arg(self.path("state"))
            .arg("--mappings")
            .arg(self.path("mappings"))
            .args(["--workers", "2", "--summary", "json", "--progress", "none"])
            .args(["--fail-on", "never"])
            .in_folder(self.folder.path())
            .env("WEBFILL_BACKOFF_ROBOTS", "")
            .env("WEBFILL_BACKOFF_UNREACHABLE", "")
            .env("WEBFILL_BACKOFF_DNS", "")
            .env("WEBFILL_BACKOFF_BUSY", "")
            .env("WEBFILL_BACKOFF_BLOCKED", "")
            .env("WEBFILL_RETRIES_TIMEOUT", "")
            .env("WEBFILL_RETRIES_NETWORK_ERROR", "")
            .env("WEBFILL_RETRIES_DNS_ERROR", "")
            .env("WEBFILL_RETRIES_HTTP_429", "")
            .env("WEBFILL_RETRIES_HTTP_502", "")
            .env("WEBFILL_RETRIES_HTTP_503", "")
            .env("WEBFILL_RETRIES_HTTP_504", "")
    }

    /// Writes a settings file with short timeouts, so that requests to silent or slow servers fail soon. Returns its
    /// path.
    pub fn write_short_timeouts(&self) -> PathBuf {
        let settings = "[fetch]\nconnect_timeout = 2.0\nhead_timeout = 2.0\nbody_timeout = 2.0\ntotal_timeout = 4.0\n";
        self.write("webfill.toml", settings)
    }

    pub fn stored(&self) -> Stored {
        Stored::open(&self.path("store.db"))
    }

    /// The parsed lines of all log files, by the name of the file. Panics if a line is not JSON.
    pub fn logs(&self) -> BTreeMap<String, Vec<Value>> {
        let mut logs = BTreeMap::new();
        for path in files_under(&self.path("state")) {
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            // Links are skipped. A link such as worker-1.log points to the newest of the dated files in the same
            // folder.
            if name.ends_with(".log") && !path.is_symlink() {
                logs.insert(name.to_string(), read_log(&path));
            }
        }
        logs
    }

    /// Whether an event is in any log so far. Processes may still be writing their logs.
    pub fn has_logged(&self, event: &str) -> bool {
        let line = format!("\"event\":\"{event}\"");
        let logs = files_under(&self.path("state/logs"));
        logs.iter()
            .filter_map(|path| fs::read_to_string(path).ok())
            .any(|text| text.contains(&line))
    }
}

/// If the test has failed, keeps the folder, so that people can inspect logs and store, and prints the warnings in the
/// logs.
impl Drop for Workplace {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        self.folder.disable_cleanup(true);
        eprintln!("kept for inspection: {}", self.folder.path().display());
        for path in files_under(&self.path("state/logs")) {
            let text = fs::read_to_string(&path).unwrap_or_default();
            let warning = |line: &&str| line.contains("\"WARN\"") || line.contains("\"ERROR\"");
            if !path.is_symlink() {
                text.lines()
                    .filter(warning)
                    .take(8)
                    .for_each(|line| eprintln!("{line}"));
            }
        }
    }
}

/// The files in a folder and in its subfolders. The list is empty if the folder does not exist.
pub fn files_under(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            files.extend(files_under(&entry.path()));
        } else {
            files.push(entry.path());
        }
    }
    files.sort();
    files
}

/// The files in a folder and in its subfolders that other users can access, each with its mode.
pub fn files_open_to_others(folder: &Path) -> Vec<String> {
    let files = files_under(folder).into_iter().filter_map(|path| {
        let found = path.symlink_metadata().expect("a file is there");
        let mode = found.permissions().mode() & 0o777;
        let is_open = found.is_file() && mode & 0o077 != 0;
        is_open.then(|| format!("{mode:o} {}", path.display()))
    });
    files.collect()
}

fn read_log(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("a log file is UTF-8");
    let parse = |line| {
        serde_json::from_str(line)
            .unwrap_or_else(|error| panic!("{}: {error}: {line}", path.display()))
    };
    text.lines().map(parse).collect()
}

/// The mapping of the tests. Every page of an `.example` host is a profile with the fields `title`, `name`, `location`
/// and `email`. It links to further pages of the same person with `rel="me"`.
pub fn profile_mapping() -> Value {
    let xpath = |expression: &str| {
        json!([
            {"type": "xpath", "parameters": {"expression": expression}},
            {"type": "trim", "parameters": {}},
        ])
    };
    let field =
        |name: &str, expression: &str| json!({"name": name, "processors": xpath(expression)});
    json!({
        "name": "profile",
        "url_patterns": [{"type": "regex", "pattern": "^https?://[^/]+\\.example/"}],
        "url_parsers": [{"description": "Links to the same person", "processors": xpath("//a[@rel='me']/@href")}],
        "fields": [
            field("title", "//h1/text()"),
            field("name", "//p[@class='name']/text()"),
            field("location", "//p[@class='location']/text()"),
            field("email", "//p[@class='email']/text()"),
        ],
    })
}

/// The mapping of the tests with only the fields `title` and `name`. If the first processors for `name` find nothing,
/// an alternative reads it from a `dd` element.
pub fn profile_mapping_with_alternative() -> Value {
    let xpath =
        |expression: &str| json!([{"type": "xpath", "parameters": {"expression": expression}}]);
    let mut mapping = profile_mapping();
    mapping["fields"] = json!([
        {"name": "title", "processors": xpath("//h1/text()")},
        {"name": "name", "alternatives": [xpath("//p[@class='name']/text()"), xpath("//dd[1]/text()")]},
    ]);
    mapping
}
