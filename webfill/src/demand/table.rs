//! Formats answers as tables for people.

use serde_json::Value;

/// A table with aligned columns; numbers are aligned to the right.
pub fn table(heads: &[&str], rows: &[Vec<String>]) -> String {
    let heads: Vec<String> = heads.iter().map(|head| (*head).to_owned()).collect();
    let lines = || std::iter::once(&heads).chain(rows);
    let width = |column: usize| {
        let widths = lines().map(|line| line[column].chars().count());
        widths.max().unwrap_or_default()
    };
    let is_number = |column: usize| {
        let number = |cell: &str| cell == NOTHING || cell.parse::<f64>().is_ok();
        rows.iter().all(|row| number(&row[column]))
    };
    let columns: Vec<(usize, bool)> = (0..heads.len())
        .map(|column| (width(column), is_number(column)))
        .collect();
    let rendered = lines().map(|line| {
        let cells = line
            .iter()
            .zip(&columns)
            .map(|(cell, (width, number))| match number {
                true => format!("{cell:>width$}"),
                false => format!("{cell:<width$}"),
            });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    });
    rendered.collect::<Vec<_>>().join("\n")
}

/// Formats each pair as a line `name  value`.
pub(super) fn format_pairs(pairs: &[(&str, String)]) -> String {
    let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let rendered = pairs
        .iter()
        .map(|(name, value)| format!("{name:<width$}  {value}"));
    rendered.collect::<Vec<_>>().join("\n")
}

/// A count with its noun, such as `1 crawl` and `2 crawls`.
pub(super) fn count_with_noun(count: &Value, one: &str, many: &str) -> String {
    let noun = if *count == 1 { one } else { many };
    format!("{} {noun}", format_cell(count))
}

const NOTHING: &str = "-";

/// Formats a JSON value for a table cell, without control characters.
pub fn format_cell(value: &Value) -> String {
    match value {
        Value::Null => NOTHING.into(),
        Value::Bool(true) => "yes".into(),
        Value::Bool(false) => "no".into(),
        Value::String(text) => without_control_characters(text),
        // Print whole numbers without `.0`, as the `Display` of `f64` does.
        Value::Number(number) if number.is_f64() => number.as_f64().unwrap_or_default().to_string(),
        other => without_control_characters(&other.to_string()),
    }
}

/// Replaces control characters, because applications may put any characters into their ids.
pub fn without_control_characters(text: &str) -> String {
    let replaced = |c: char| if c.is_control() { '\u{FFFD}' } else { c };
    text.chars().map(replaced).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_with_numbers_on_the_right() {
        let rows = [
            vec!["a".to_owned(), "7".to_owned(), "-".to_owned()],
            vec!["longer".to_owned(), "1234".to_owned(), "5".to_owned()],
        ];
        let rendered = table(&["crawl", "pending", "low"], &rows);
        assert_eq!(
            rendered,
            "crawl   pending  low\na             7    -\nlonger     1234    5"
        );
    }

    #[test]
    fn control_characters_in_ids_are_replaced() {
        assert_eq!(
            format_cell(&serde_json::json!("a\u{1b}[2J")),
            "a\u{FFFD}[2J"
        );
        assert_eq!(format_cell(&Value::Null), "-");
        assert_eq!(format_cell(&serde_json::json!(2e9)), "2000000000");
    }
}
