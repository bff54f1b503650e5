//! Generates `settings.md` and the example file `webfill.toml` from the table of settings.

use std::fmt::Write;

use toml::{Table, Value};

use crate::settings::{SECTIONS, SETTINGS, Section, Setting, Settings};

const PAGE_HEAD: &str = "\
# Settings

A setting is a key of `webfill.toml`, the file that `--config` names, and an environment variable. You write the key
`politeness.delay` as `delay = 2` under `[politeness]`; its variable is `WEBFILL_POLITENESS_DELAY`. Flags override
variables, variables override the file, and the file overrides the defaults. Unknown keys and variables are refused.

Times are in seconds. Lists in variables are separated by commas, those of `fetch.headers` by line breaks.
[deploy/webfill.toml](../../deploy/webfill.toml) is an example file with every key. Both are written by `make reference`
from the table in `webfill/src/settings/table.rs`.
";

const FILE_HEAD: &str = "\
# Example settings of webfill: every key, commented out at its default.
#
#     webfill crawl --config webfill.toml ...
#     webfill dispatcher --config webfill.toml
#     webfill supervisor --config webfill.toml
#
# To change a setting, remove the `#` directly before its key. Lines that begin with `# ` are explanations. Each key is
# also an environment variable: `politeness.delay` is WEBFILL_POLITENESS_DELAY. Flags override variables, variables
# override this file, and this file overrides the defaults. Unknown keys are refused. Times are in seconds.
#
# \"No default\" means that the setting is unset; the value shown is then an example.
";

/// The longest line of an explanation in the example file, in characters.
const LINE_CHARS: usize = 118;

/// Generates `settings.md`, with the defaults of the program.
pub fn generate_page(defaults: &Table) -> String {
    let mut page = PAGE_HEAD.to_owned();
    for section in SECTIONS {
        let _ = write!(page, "\n## {}\n\n", section.title);
        if !section.note.is_empty() {
            let _ = write!(page, "{}\n\n", section.note);
        }
        page.push_str("| key | meaning | default |\n|---|---|---|\n");
        for setting in settings_of(section) {
            let default = match (default_of(setting, defaults), setting.unset) {
                (Some(Value::String(text)), _) => format!("`{text}`"),
                (Some(value), _) => format!("`{value}`"),
                (None, Some((_, without))) => format!("none: {without}"),
                (None, None) => String::new(),
            };
            let meaning = setting.meaning.replace('|', "\\|");
            let _ = writeln!(page, "| `{}` | {meaning} | {default} |", setting.key);
        }
    }
    page
}

/// Generates `webfill.toml`, with every key commented out.
pub fn generate_example_file(defaults: &Table) -> String {
    let mut file = FILE_HEAD.to_owned();
    for section in SECTIONS {
        let title = format!("# --- {} ", section.title);
        let _ = write!(file, "\n{title:-<118}\n");
        write_comment(section.note, &mut file);
        match section.name {
            "" => {}
            "applications" => file.push_str("\n#[applications.prices]"),
            name => {
                let _ = write!(file, "\n[{name}]");
            }
        }
        for setting in settings_of(section) {
            file.push('\n');
            let (value, without) = match (default_of(setting, defaults), setting.unset) {
                (Some(value), _) => (value.to_string(), String::new()),
                (None, Some((example, without))) => {
                    (example.to_owned(), format!(" No default: {without}."))
                }
                (None, None) => continue,
            };
            write_comment(&format!("{}{without}", setting.meaning), &mut file);
            let _ = writeln!(file, "#{} = {value}", last_part(setting.key));
        }
    }
    file
}

fn settings_of(section: &Section) -> impl Iterator<Item = &'static Setting> {
    let name = section.name;
    SETTINGS.iter().filter(move |setting| {
        let section = setting
            .key
            .split_once('.')
            .map_or("", |(section, _)| section);
        section == name
    })
}

fn last_part(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

fn default_of<'t>(setting: &Setting, defaults: &'t Table) -> Option<&'t Value> {
    match setting.key.split_once('.') {
        Some((section, key)) => defaults.get(section)?.get(key),
        None => defaults.get(setting.key),
    }
}

/// Writes a text as comment lines. Links become the names of files.
fn write_comment(markdown: &str, file: &mut String) {
    let text = without_links(markdown);
    let mut line = String::from("#");
    for word in text.split_whitespace() {
        if line.len() + 1 + word.len() > LINE_CHARS {
            let _ = writeln!(file, "{line}");
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    if line.len() > 1 {
        let _ = writeln!(file, "{line}");
    }
}

/// Replaces Markdown links by the names of their files: `[text](page.md#part)` becomes `text (docs/reference/page.md)`.
fn without_links(markdown: &str) -> String {
    let mut plain = String::new();
    let mut rest = markdown;
    while let Some((before, text, target, after)) = find_first_link(rest) {
        plain.push_str(before);
        let page = target.split('#').next().unwrap_or(target);
        let file = match page.strip_prefix("../../") {
            Some(file) => file.to_owned(),
            None => match page.strip_prefix("../") {
                Some(page) => format!("docs/{page}"),
                None => format!("docs/reference/{page}"),
            },
        };
        match file.ends_with(text) {
            true => plain.push_str(&file),
            false => {
                let _ = write!(plain, "{text} ({file})");
            }
        }
        rest = after;
    }
    plain.push_str(rest);
    plain
}

/// Finds the first link of a text: returns the part before it, its text, its target, and the part after it.
fn find_first_link(text: &str) -> Option<(&str, &str, &str, &str)> {
    let middle = text.find("](")?;
    let start = text[..middle].rfind('[')?;
    let end = middle + text[middle..].find(')')?;
    let label = &text[start + 1..middle];
    Some((
        &text[..start],
        label,
        &text[middle + 2..end],
        &text[end + 1..],
    ))
}

/// The defaults of all settings, as in a crawl without flags.
pub fn default_settings() -> Table {
    Table::try_from(Settings::default()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_become_names_of_files() {
        assert_eq!(without_links("none"), "none");
        assert_eq!(
            without_links("more ([a.md](../how-to/a.md#b))."),
            "more (docs/how-to/a.md)."
        );
        assert_eq!(
            without_links("only [with keys](a.md), see [x/y](../../x/y)"),
            "only with keys (docs/reference/a.md), see x/y"
        );
    }
}
