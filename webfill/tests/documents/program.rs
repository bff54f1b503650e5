//! Runs the binary, to find out its commands, keys and defaults.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

use toml::{Table, Value};

pub const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

pub fn run_webfill(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_webfill"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("WEBFILL_") {
            command.env_remove(name);
        }
    }
    let command = command.args(arguments).current_dir(folder);
    command.output().expect("the binary starts")
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("webfill prints UTF-8")
}

/// The commands that `webfill --help` lists.
pub fn commands() -> BTreeSet<String> {
    let help = text(&run_webfill(Path::new(ROOT), &["--help"]).stdout);
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = commands.take_while(|line| !line.is_empty());
    let first_words = commands.filter_map(|line| line.split_whitespace().next());
    let mut commands: BTreeSet<String> = first_words.map(str::to_owned).collect();
    commands.remove("help");
    commands
}

/// The settings that a crawl without flags gives its processes.
pub fn defaults() -> Table {
    let folder = tempfile::tempdir().expect("a temporary folder");
    settings_of_a_crawl(folder.path(), &[])
}

/// The settings that a crawl gives its processes. The contact is left out because every crawl needs one, and the state
/// folder because its path is absolute.
pub fn settings_of_a_crawl(folder: &Path, flags: &[&str]) -> Table {
    let contact = ["--contact", "https://example.org/crawler"];
    // This crawl contacts nothing, because requests to loopback addresses are refused.
    let crawl = [
        "crawl",
        "http://127.0.0.1/",
        "--progress",
        "none",
        "--fail-on",
        "never",
    ];
    let ran = run_webfill(folder, &[&crawl[..], &contact[..], flags].concat());
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let written = std::fs::read_to_string(folder.join(".webfill/webfill.toml"));
    let mut table: Table = written
        .expect("a crawl writes its settings")
        .parse()
        .expect("as TOML");
    table.insert("state".into(), Value::String(".webfill".into()));
    if let Some(Value::Table(politeness)) = table.get_mut("politeness") {
        politeness.remove("contact");
    }
    table
}
