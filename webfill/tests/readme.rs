//! `README.md` says what is so: its tables are compared with the command's own help, settings and
//! lists, its mapping and its SQL are run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output};

use toml::{Table, Value};
use webfill_startup::ExitStatus;
use webfill_wire::{Outcome, Reason};

const README: &str = include_str!("../../README.md");
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// The part of the README below a heading, up to the next one.
fn section(heading: &str) -> &'static str {
    let start = README
        .find(&format!("{heading}\n"))
        .unwrap_or_else(|| panic!("README.md has no heading `{heading}`"));
    let body = &README[start + heading.len()..];
    &body[..body.find("\n#").unwrap_or(body.len())]
}

/// The rows of the tables of a section, without their heads: cells without back-ticks.
fn rows(heading: &str) -> Vec<Vec<String>> {
    let lines = section(heading)
        .lines()
        .filter(|line| line.starts_with('|'));
    let cells = |line: &str| -> Vec<String> {
        let line = line.trim_matches('|').replace("\\|", "\u{1}");
        let cells = line.split('|');
        cells
            .map(|cell| cell.trim().replace('\u{1}', "|").replace('`', ""))
            .collect()
    };
    let mut rows: Vec<Vec<String>> = lines.map(cells).collect();
    rows.retain(|row| !row[0].starts_with("---"));
    rows.remove(0);
    rows
}

/// The code blocks of a language.
fn blocks(language: &str) -> Vec<&'static str> {
    let opening = format!("```{language}\n");
    let begun = README.split(opening.as_str()).skip(1);
    begun
        .map(|rest| rest.split("\n```").next().unwrap_or(rest))
        .collect()
}

fn webfill(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_webfill"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("WEBFILL_") {
            command.env_remove(name);
        }
    }
    let command = command.args(arguments).current_dir(folder);
    command.output().expect("the binary starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("webfill prints UTF-8")
}

/// Flags and their defaults, as `--help` tells them.
fn flags_of(command: &[&str]) -> BTreeMap<String, String> {
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

fn flag_in(line: &str) -> Option<String> {
    let line = line.trim_start();
    let names = line.starts_with('-').then(|| line.split([' ', ',']));
    let long = names?.find(|word| word.len() > 2 && word.starts_with("--"))?;
    Some(long.trim_end_matches("...").to_owned())
}

fn default_in(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("[default: ")?;
    Some(rest.split(']').next()?.to_owned())
}

#[test]
fn every_flag_is_told_with_its_default() {
    for command in [
        "crawl",
        "demo",
        "export",
        "dump",
        "feed",
        "info",
        "site",
        "mapping test",
        "keys new",
        "dispatcher",
        "supervisor",
    ] {
        let told: BTreeMap<String, String> = rows(&format!("### `webfill {command}`"))
            .into_iter()
            .filter_map(|row| Some((flag_in(&row[0])?, row.get(2).cloned().unwrap_or_default())))
            .collect();
        let words: Vec<&str> = command.split(' ').collect();
        assert_eq!(
            told,
            flags_of(&words),
            "webfill {command}: README.md left, --help right"
        );
    }
}

#[test]
fn the_actions_on_a_crawl_take_the_flags_of_info() {
    for command in ["stop", "pause", "resume", "status"] {
        assert_eq!(
            flags_of(&[command]),
            flags_of(&["info"]),
            "webfill {command}"
        );
    }
}

#[test]
fn every_command_is_told() {
    let help = text(&webfill(Path::new(ROOT), &["--help"]).stdout);
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = commands.take_while(|line| !line.is_empty());
    let first_word = |line: &str| {
        line.split_whitespace()
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    let mut real: BTreeSet<String> = commands.map(first_word).collect();
    real.remove("help");
    let told = rows("## Commands").into_iter().map(|row| {
        let name = row[0].trim_start_matches("webfill ").to_owned();
        name.split_whitespace()
            .next()
            .unwrap_or_default()
            .to_owned()
    });
    assert_eq!(told.collect::<BTreeSet<String>>(), real);
}

/// Every key of `webfill.toml`, as the message about a wrong one lists them.
fn keys_known() -> BTreeSet<String> {
    let top = keys_expected("wrong = 1\n");
    let mut keys = BTreeSet::new();
    for key in top {
        match keys_expected(&format!("[{key}]\nwrong = 1\n")) {
            inner if inner.is_empty() => {
                keys.insert(key);
            }
            inner => keys.extend(inner.iter().map(|inner| format!("{key}.{inner}"))),
        }
    }
    keys
}

fn keys_expected(config: &str) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("wrong.toml"), config).expect("it is writable");
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
fn defaults() -> Table {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let contact = ["--contact", "https://example.org/crawler"];
    // A loopback address is refused without being asked, so this crawl touches nothing.
    let crawl = ["crawl", "http://127.0.0.1/", "--progress", "none"];
    let ran = webfill(folder.path(), &[&crawl[..], &contact[..]].concat());
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let written = std::fs::read_to_string(folder.path().join(".webfill/webfill.toml"));
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

#[test]
fn every_setting_is_told_with_its_default() {
    let defaults = defaults();
    let default_of = |key: &str| {
        let value = match key.split_once('.') {
            Some((section, key)) => defaults.get(section).and_then(|section| section.get(key)),
            None => defaults.get(key),
        };
        match value {
            None => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        }
    };
    let told: BTreeMap<String, String> = rows("## Settings")
        .into_iter()
        .map(|row| (row[0].clone(), row[2].clone()))
        .collect();
    let real: BTreeMap<String, String> = keys_known()
        .into_iter()
        .map(|key| (key.clone(), default_of(&key)))
        .collect();
    assert_eq!(told, real, "README.md left, webfill right");
}

#[test]
fn outcomes_and_reasons_are_the_closed_lists() {
    let first_cells = |heading| -> Vec<String> {
        rows(heading)
            .into_iter()
            .map(|row| row[0].clone())
            .collect()
    };
    let outcomes: Vec<&str> = Outcome::ALL
        .iter()
        .map(|outcome| outcome.as_str())
        .collect();
    assert_eq!(first_cells("### Outcomes"), outcomes);
    let reasons: Vec<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    assert_eq!(first_cells("### Reasons"), reasons);
}

#[test]
fn exit_codes_are_those_of_the_code() {
    let told: Vec<String> = rows("### Exit codes")
        .into_iter()
        .map(|row| row[0].clone())
        .collect();
    let real = [
        ExitStatus::Done,
        ExitStatus::Error,
        ExitStatus::Usage,
        ExitStatus::Interrupted,
        ExitStatus::Limit,
        ExitStatus::Fatal,
    ];
    assert_eq!(told, real.map(|status| status.code().to_string()));
}

#[test]
fn the_demo_prints_the_records_that_are_shown_and_the_sql_finds_them() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let ran = webfill(folder.path(), &["demo", "--store", "sqlite:webfill.db"]);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let printed = text(&ran.stdout);
    let shown: Vec<&str> = README
        .lines()
        .filter(|line| line.starts_with("\"guild-"))
        .collect();
    assert!(!shown.is_empty(), "README.md shows no record of the demo");
    for line in shown {
        assert!(
            printed.lines().any(|printed| printed == line),
            "{line}\nis not in\n{printed}"
        );
    }
    let db =
        rusqlite::Connection::open(folder.path().join("webfill.db")).expect("it is a database");
    let queries = blocks("sql");
    assert!(!queries.is_empty(), "README.md shows no SQL");
    for query in queries {
        let mut statement = db
            .prepare(query)
            .unwrap_or_else(|error| panic!("{query}: {error}"));
        let mut found = statement.query([]).expect("it takes no parameters");
        assert!(
            found.next().expect("it runs").is_some(),
            "{query}: finds nothing"
        );
    }
}

#[test]
fn the_mapping_that_is_shown_works_as_shown() {
    let mapping = blocks("json")
        .into_iter()
        .find(|block| block.contains("url_patterns"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mine = folder.path().join("mine");
    std::fs::create_dir(&mine).expect("it is writable");
    std::fs::write(
        mine.join("stdlib.json"),
        mapping.expect("README.md shows a mapping"),
    )
    .expect("it is writable");
    // The commands are shown as typed at the top of the repository.
    let golden = Path::new(ROOT).join("etl-mappings");
    std::os::unix::fs::symlink(golden, folder.path().join("etl-mappings")).expect("it is writable");
    let mut shown = 0;
    for session in blocks("console") {
        for (command, output) in commands_in(session) {
            if let Some(arguments) = command.strip_prefix("webfill mapping test ") {
                let arguments: Vec<&str> = ["mapping", "test"]
                    .into_iter()
                    .chain(arguments.split_whitespace())
                    .collect();
                let ran = webfill(folder.path(), &arguments);
                let said = text(&ran.stdout);
                for line in output.lines().filter(|line| line.trim() != "...") {
                    assert!(
                        said.lines().any(|said| said == line),
                        "{line}\nis not in\n{said}"
                    );
                }
                shown += 1;
            }
        }
    }
    assert!(shown > 0, "README.md shows no `webfill mapping test`");
}

/// The commands of a session, each with what it printed.
fn commands_in(session: &str) -> Vec<(&str, &str)> {
    let commands = session.split("$ ").skip(1);
    commands
        .map(|part| part.split_once('\n').unwrap_or((part, "")))
        .collect()
}
