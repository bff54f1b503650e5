//! Generates the reference of processors from the [catalogue](crate::catalogue).

use crate::catalogue;
use crate::entry::{Entry, Example, Family, Input, Parameter, Presence};
use crate::parameters::describe_kind;

/// Every processor with its parameters and examples, as Markdown.
pub fn processors_manual() -> String {
    let mut manual = String::new();
    for (family, title) in Family::ALL {
        manual += &format!("## {title}\n\n");
        for entry in catalogue::ALL
            .iter()
            .filter(|entry| entry.family == *family)
        {
            write_entry(entry, &mut manual);
        }
    }
    manual
}

fn write_entry(entry: &Entry, manual: &mut String) {
    *manual += &format!("### `{}`\n\n{}\n\n", entry.name, entry.summary);
    if !entry.parameters.is_empty() {
        *manual += "| parameter | value | default | meaning |\n|---|---|---|---|\n";
        entry
            .parameters
            .iter()
            .for_each(|parameter| *manual += &parameter_row(parameter));
        *manual += "\n";
    }
    *manual += "| parameters | in | out |\n|---|---|---|\n";
    entry
        .examples
        .iter()
        .for_each(|example| *manual += &example_row(example));
    *manual += "\n";
}

fn parameter_row(parameter: &Parameter) -> String {
    let default = match parameter.presence {
        Presence::Required => "required".to_owned(),
        Presence::Optional => String::new(),
        Presence::Text(text) => format_code(&format!("{text:?}")),
        Presence::Boolean(value) => format_code(&value.to_string()),
    };
    let kind = describe_kind(parameter.kind);
    format!(
        "| `{}` | {kind} | {default} | {} |\n",
        parameter.name,
        escape_cell(parameter.meaning)
    )
}

fn example_row(example: &Example) -> String {
    let input = match example.input {
        Input::Page(html) => format!("a page with {}", format_code(html)),
        Input::Values(texts) => format_values(texts),
    };
    let output = format_values(example.output);
    format!(
        "| {} | {input} | {output} |\n",
        format_code(example.parameters)
    )
}

fn format_values(texts: &[&str]) -> String {
    match texts.is_empty() {
        true => "nothing".to_owned(),
        false => texts
            .iter()
            .map(|text| format_code(text))
            .collect::<Vec<_>>()
            .join(", "),
    }
}

/// Formats `text` as code in a table: on one line, with white space at its ends visible.
fn format_code(text: &str) -> String {
    let mut line = text.replace('\n', "⏎").replace('\u{a0}', "⍽");
    if line.starts_with(' ') || line.ends_with(' ') {
        line = format!("{line:?}");
    }
    let ticks = if line.contains('`') { "``" } else { "`" };
    format!("{ticks}{}{ticks}", escape_cell(&line))
}

fn escape_cell(text: &str) -> String {
    text.replace('|', "\\|")
}
