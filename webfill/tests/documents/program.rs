//! The binary, and what it says of itself: flags, keys, defaults.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output};

use toml::{Table, Value};

pub const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// A key that no section has, and that resembles none, so that all known ones are listed.
const UNKNOWN_KEY: &str = "zzzzzzzzzzzzzzzzzzzzzzzz = 1\n";

pub fn webfill(folder: &Path, arguments: &[&str]) -> Output {
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

/// Flags and their defaults, as `--help` shows them.
pub fn flags_of(command: &[&str]) -> BTreeMap<String, String> {
    let help = webfill(Path::new(ROOT), &[command, &["--help"]].concat());
    let mut flags = BTreeMap::new();
    let mut current = None;
    for line in text(&help.stdout).lines() {
        if let Some(flag) = flag_in(line) {
            flags.insert(flag.clone(), String::new());
            current = Some(flag);
        }
        if let (Some(flag), Some(default)) = (&current, default_in(line)) {
            flags.insert(flag.clone(), default);
        }
    }
    flags.remove("--help");
    flags.remove("--version");
    flags
}

/// The long flag that a line of help, or a cell of a table, begins with.
pub fn flag_in(line: &str) -> Option<String> {
    let line = line.trim_start();
    let names = line.starts_with('-').then(|| line.split([' ', ',']));
    let long = names?.find(|word| word.len() > 2 && word.starts_with("--"))?;
    Some(long.trim_end_matches("...").to_owned())
}

fn default_in(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("[default: ")?;
    Some(rest.split(']').next()?.to_owned())
}

/// The commands that `webfill --help` lists.
pub fn commands() -> BTreeSet<String> {
    let help = text(&webfill(Path::new(ROOT), &["--help"]).stdout);
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = commands.take_while(|line| !line.is_empty());
    let first_words = commands.filter_map(|line| line.split_whitespace().next());
    let mut commands: BTreeSet<String> = first_words.map(str::to_owned).collect();
    commands.remove("help");
    commands
}

/// Every key of `webfill.toml`, as the message about a wrong one lists them.
pub fn keys_known() -> BTreeSet<String> {
    let top = keys_expected("");
    let mut keys = BTreeSet::new();
    for key in top {
        match keys_expected(&format!("[{key}]\n")) {
            inner if inner.is_empty() => {
                keys.insert(key);
            }
            inner => keys.extend(inner.iter().map(|inner| format!("{key}.{inner}"))),
        }
    }
    keys
}

/// The keys that are listed when a settings file has an unknown one below this beginning.
pub fn keys_expected(beginning: &str) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let wrong = folder.path().join("wrong.toml");
    std::fs::write(wrong, format!("{beginning}{UNKNOWN_KEY}")).expect("it is writable");
    let refused = webfill(
        folder.path(),
        &["crawl", "http://127.0.0.1/", "--config", "wrong.toml"],
    );
    assert_eq!(refused.status.code(), Some(2));
    let message = text(&refused.stderr);
    let known = message.split("unknown field").nth(1);
    let known = known.and_then(|rest| rest.split(", expected ").nth(1));
    let known = known.and_then(|names| names.split(" in `").next());
    let names = known.unwrap_or_default().split('`').skip(1).step_by(2);
    names.map(str::to_owned).collect()
}

/// The settings that a crawl without flags gives its processes.
pub fn defaults() -> Table {
    let folder = tempfile::tempdir().expect("a temporary folder");
    settings_of_a_crawl(folder.path(), &[])
}

/// The settings that a crawl gives its processes. The contact, which a crawl needs, and the
/// absolute path of the state folder are left out.
pub fn settings_of_a_crawl(folder: &Path, flags: &[&str]) -> Table {
    let contact = ["--contact", "https://example.org/crawler"];
    // A loopback address is refused without a request, so this crawl touches nothing.
    let crawl = [
        "crawl",
        "http://127.0.0.1/",
        "--progress",
        "none",
        "--fail-on",
        "never",
    ];
    let ran = webfill(folder, &[&crawl[..], &contact[..], flags].concat());
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

/// The value of a key such as `fetch.proxy`.
pub fn value_of<'t>(settings: &'t Table, key: &str) -> Option<&'t Value> {
    match key.split_once('.') {
        Some((section, key)) => settings.get(section)?.get(key),
        None => settings.get(key),
    }
}
