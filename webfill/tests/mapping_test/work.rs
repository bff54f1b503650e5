//! A folder with mappings and pages to run the binary in.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

/// The result of running the binary.
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("not JSON ({error}): {}\n{}", self.stdout, self.stderr))
    }
}

pub struct Work(TempDir);

impl Work {
    /// Creates a folder `mappings` with the mappings `people` and `places`.
    pub fn new() -> Work {
        let work = Work(tempfile::tempdir().unwrap());
        let people = [
            ("name", xpath("//h1/text()")),
            ("born", xpath("//table/tr/td/text()")),
        ];
        work.write(
            "mappings/people.json",
            &mapping("people", "people.example", &people),
        );
        let places = [("title", xpath("//h1/text()"))];
        work.write(
            "mappings/places.json",
            &mapping("places", "places.example", &places),
        );
        work
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn write(&self, name: &str, content: &str) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Runs `webfill mapping test` with these arguments, separated by spaces.
    pub fn test(&self, arguments: &str) -> Ran {
        self.run(&format!("mapping test {arguments}"))
    }

    /// Runs the binary with these arguments, separated by spaces.
    pub fn run(&self, arguments: &str) -> Ran {
        let mut command = Command::new(env!("CARGO_BIN_EXE_webfill"));
        command.args(arguments.split_whitespace());
        let ran = command.current_dir(self.path()).output().unwrap();
        Ran {
            code: ran.status.code().unwrap(),
            stdout: String::from_utf8(ran.stdout).unwrap(),
            stderr: String::from_utf8(ran.stderr).unwrap(),
        }
    }
}

pub fn xpath(expression: &str) -> Value {
    json!([{"type": "xpath", "parameters": {"expression": expression}}])
}

/// The JSON of a mapping for the pages of a host: its fields, each with its processors.
pub fn mapping(name: &str, host: &str, fields: &[(&str, Value)]) -> String {
    let field =
        |(name, processors): &(&str, Value)| json!({"name": name, "processors": processors});
    let fields: Vec<Value> = fields.iter().map(field).collect();
    let pattern = json!([{"type": "host", "pattern": host}]);
    json!({"name": name, "url_patterns": pattern, "fields": fields}).to_string()
}

pub const ADA: &str = "<h1>Ada</h1><table><tr><td>1815</table><a href='/b'>b</a>";
