//! Formats a trace for people: for each field its steps, with their input and output. Results of `writeln!` are
//! ignored, because writing to a string cannot fail.

use std::fmt::Write;

use serde_json::Value;
use webfill_mapping::{
    Extraction, FieldTrace, RowsTrace, StepTrace, Trace, UrlParserTrace, Values,
};

use super::row_table;
use crate::demand::table::without_control_characters;

/// The most values shown for a step, and the most characters of each.
const VALUES_SHOWN: usize = 3;
const CHARS_SHOWN: usize = 80;

pub fn format_trace(trace: &Trace, page: &str) -> String {
    let mut text = format!(
        "mapping {} on {}\n",
        trace.mapping,
        without_control_characters(page)
    );
    for field in &trace.fields {
        render_field(&mut text, field);
    }
    trace
        .rows
        .iter()
        .for_each(|rows| render_rows(&mut text, rows));
    for (number, parser) in trace.url_parsers.iter().enumerate() {
        render_parser(&mut text, number, parser);
    }
    render_notes(&mut text, &trace.truncated, &trace.warnings);
    text.trim_end().to_owned()
}

/// Formats the result of a mapping, without its steps.
pub fn format_result(extraction: &Extraction, page: &str) -> String {
    let mapping = extraction.mapping.as_deref().unwrap_or("none");
    let mut text = format!(
        "mapping {mapping} on {}\n\n",
        without_control_characters(page)
    );
    for (name, value) in &extraction.fields {
        let _ = writeln!(text, "field {name}: {}", shorten(&value.to_string()));
    }
    for listing in &extraction.listings {
        let _ = writeln!(text, "{}\n", row_table::format_rows(listing));
    }
    for link in &extraction.links {
        let _ = writeln!(text, "link {}", without_control_characters(link));
    }
    render_notes(&mut text, &extraction.truncated, &extraction.warnings);
    text.trim_end().to_owned()
}

fn render_notes(text: &mut String, truncated: &Option<String>, warnings: &[String]) {
    for (index, note) in truncated.iter().chain(warnings).enumerate() {
        let line_break = if index == 0 { "\n" } else { "" };
        let _ = writeln!(text, "{line_break}note: {}", shorten(note));
    }
}

fn render_field(text: &mut String, field: &FieldTrace) {
    let value = match &field.value {
        Value::Null => "empty".to_owned(),
        value => shorten(&value.to_string()),
    };
    let _ = writeln!(text, "\nfield {}: {value}", field.name);
    for (index, steps) in field.alternatives.iter().enumerate() {
        if field.alternatives.len() > 1 {
            let _ = writeln!(text, "  alternative {}", index + 1);
        }
        render_steps(text, steps);
        if let Some(reason) = field.empty_because.get(index) {
            let _ = writeln!(text, "  empty because {reason}");
        }
    }
}

fn render_rows(text: &mut String, rows: &RowsTrace) {
    let _ = writeln!(
        text,
        "\nrows of {}: {} selected",
        without_control_characters(&rows.dataset),
        rows.count
    );
    render_steps(text, &rows.select);
    if let Some(reason) = &rows.empty_because {
        let _ = writeln!(text, "  empty because {reason}");
    }
    for row in &rows.rows {
        let _ = writeln!(text, "\nrow {}", row.position);
        row.fields
            .iter()
            .for_each(|field| render_field(text, field));
    }
}

fn render_parser(text: &mut String, number: usize, parser: &UrlParserTrace) {
    let links = parser.links.iter().map(|link| Value::from(link.as_str()));
    let links: Vec<Value> = links.collect();
    let given = match links.len() {
        0 => "empty".to_owned(),
        1 => shorten(&links[0].to_string()),
        count => format!("{count} links"),
    };
    let _ = writeln!(text, "\nurl_parsers[{number}]: {given}");
    render_steps(text, &parser.steps);
    if let Some(reason) = &parser.empty_because {
        let _ = writeln!(text, "  empty because {reason}");
    }
}

fn render_steps(text: &mut String, steps: &[StepTrace]) {
    for (index, step) in steps.iter().enumerate() {
        let parameters = format_parameters(step);
        let head = format!("{} {parameters}", step.processor);
        let _ = writeln!(text, "  {} {}", index + 1, head.trim_end());
        let _ = writeln!(text, "      reads {}", format_values(&step.input));
        for node in &step.reading.nodes {
            let path = without_control_characters(&node.path);
            let _ = writeln!(text, "      finds {path}  {}", quote(&node.text));
        }
        for found in &step.reading.matches {
            let place = format!("in value {} at {}", found.value, found.at);
            let _ = writeln!(text, "      finds {}  {place}", quote(&found.text));
        }
        let _ = writeln!(text, "      gives {}", format_values(&step.output));
        if let Some(hint) = &step.reading.hint {
            let _ = writeln!(text, "      {}", without_control_characters(hint));
        }
    }
}

/// Formats the parameters of a step. A single one is shown without its name.
fn format_parameters(step: &StepTrace) -> String {
    let mut parameters = step.parameters.iter();
    match (parameters.next(), parameters.next()) {
        (None, _) => String::new(),
        (Some((_, Value::String(only))), None) => without_control_characters(only),
        _ => without_control_characters(&Value::Object(step.parameters.clone()).to_string()),
    }
}

/// Formats values: `nothing`, or `2 values: "a", "b"`.
fn format_values(values: &Values) -> String {
    if let [only] = values.shown.as_slice()
        && only.starts_with("(the page, ")
    {
        return without_control_characters(only.trim_matches(['(', ')']));
    }
    let shown = values.shown.iter().take(VALUES_SHOWN);
    let shown: Vec<String> = shown.map(|value| quote(value)).collect();
    let more = if values.count > shown.len() {
        ", …"
    } else {
        ""
    };
    match values.count {
        0 => "nothing".to_owned(),
        1 => shown.join(""),
        count => format!("{count} values: {}{more}", shown.join(", ")),
    }
}

fn quote(text: &str) -> String {
    let (shown, is_cut) = match text.char_indices().nth(CHARS_SHOWN) {
        Some((end, _)) => (&text[..end], true),
        None => (text, false),
    };
    let quoted = without_control_characters(&Value::from(shown).to_string());
    if is_cut {
        format!("{quoted}…")
    } else {
        quoted
    }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(2 * CHARS_SHOWN) {
        Some((end, _)) => format!("{}…", without_control_characters(&text[..end])),
        None => without_control_characters(text),
    }
}
