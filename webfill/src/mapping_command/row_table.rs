//! Formats the rows of a page as a table for people. The table fits on a screen, and names what was left out.

use std::fmt::Write;

use serde_json::{Map, Value};
use webfill_mapping::Listing;

use crate::demand::table::{format_cell, table, without_control_characters};

const ROWS_SHOWN: usize = 20;
const CELL_CHARS: usize = 40;
const TABLE_CHARS: usize = 120;
/// The heading of the column with the row numbers. `#` is used if the rows have a field named `row`, because no field
/// is named `#`.
const POSITION: &str = "row";
const OTHER_POSITION: &str = "#";
/// The width of the gap between two columns.
const GAP: usize = 2;

/// Formats the rows of one rule as a table. Results of `write!` are ignored, because writing to a string cannot fail.
pub fn format_rows(listing: &Listing) -> String {
    let dataset = without_control_characters(&listing.dataset);
    let count = match listing.rows.len() {
        0 => return format!("rows of {dataset}: none"),
        1 => "1 row".to_owned(),
        count => format!("{count} rows"),
    };
    let cut = match listing.cut {
        true => ", more were left out",
        false => "",
    };
    let mut output = format!("rows of {dataset}: {count}{cut}\n");
    let names: Vec<&str> = listing.rows[0].fields.keys().map(String::as_str).collect();
    let (heads, left_out) = choose_columns(listing, &names);
    let shown = listing.rows.iter().take(ROWS_SHOWN);
    let rows = shown.map(|row| {
        let cells = heads.iter().map(|name| row_cell(&row.fields, name));
        std::iter::once(row.position.to_string())
            .chain(cells)
            .collect()
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let position = match names.contains(&POSITION) {
        true => OTHER_POSITION,
        false => POSITION,
    };
    let heads: Vec<&str> = std::iter::once(position).chain(heads).collect();
    output.push_str(&table(&heads, &rows));
    let more = listing.rows.len().saturating_sub(ROWS_SHOWN);
    if more > 0 {
        let _ = write!(output, "\nand {more} more; --format json has all");
    }
    if !left_out.is_empty() {
        let _ = write!(
            output,
            "\nnot shown for lack of width: {}; --format json has all",
            left_out.join(", ")
        );
    }
    for (name, field) in &listing.from_record {
        let field = without_control_characters(field.as_str().unwrap_or_default());
        let _ = write!(
            output,
            "\n{name}: `{field}` of the record for which a crawl fetches the page"
        );
    }
    output.push_str(&describe_links(listing));
    output
}

/// Describes the links of the rows, and the fields that are wanted from the linked pages.
fn describe_links(listing: &Listing) -> String {
    if listing.want.is_empty() {
        return String::new();
    }
    let want = listing.want.join(", ");
    let mut leading = listing.rows.iter().filter(|row| !row.links.is_empty());
    let Some(first) = leading.next() else {
        return format!("\nno row leads to a page that could fill {want}");
    };
    let rows = 1 + leading.count();
    let url = without_control_characters(&first.links[0]);
    format!(
        "\n{rows} of the rows lead to pages that may fill {want}: row {} to {url}",
        first.position
    )
}

/// Chooses the columns that fit on a screen. Returns these, and those that do not fit.
fn choose_columns<'n>(listing: &Listing, names: &[&'n str]) -> (Vec<&'n str>, Vec<&'n str>) {
    let shown = || listing.rows.iter().take(ROWS_SHOWN);
    let mut room = TABLE_CHARS - POSITION.len();
    let (mut heads, mut left_out) = (Vec::new(), Vec::new());
    for name in names {
        let cells = shown().map(|row| row_cell(&row.fields, name).chars().count());
        let width = cells.max().unwrap_or(0).max(name.len()) + GAP;
        match room.checked_sub(width) {
            Some(left) => {
                room = left;
                heads.push(*name);
            }
            None => left_out.push(*name),
        }
    }
    (heads, left_out)
}

fn row_cell(fields: &Map<String, Value>, name: &str) -> String {
    let text = format_cell(fields.get(name).unwrap_or(&Value::Null));
    match text.char_indices().nth(CELL_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use webfill_mapping::Row;

    use super::*;

    fn listing(rows: Vec<Value>) -> Listing {
        let rows = rows.into_iter().enumerate();
        let row = |(position, fields): (usize, Value)| Row {
            position,
            links: Vec::new(),
            fields: fields.as_object().unwrap().clone(),
            undecided: Vec::new(),
        };
        Listing {
            dataset: "ratings".to_owned(),
            rows: rows.map(row).collect(),
            ..Listing::default()
        }
    }

    #[test]
    fn rows_are_aligned_and_missing_values_are_visible() {
        let output = format_rows(&listing(vec![
            json!({"item": "a", "stars": 4}),
            json!({"item": "b", "stars": null}),
        ]));
        assert_eq!(
            output,
            "rows of ratings: 2 rows\nrow  item  stars\n  0  a         4\n  1  b         -"
        );
        assert_eq!(format_rows(&listing(Vec::new())), "rows of ratings: none");
    }

    #[test]
    fn the_position_column_has_another_name_if_a_field_is_called_row() {
        let output = format_rows(&listing(vec![json!({"row": "x", "position": 7})]));
        assert_eq!(
            output,
            "rows of ratings: 1 row\n#  row  position\n0  x           7"
        );
    }

    #[test]
    fn the_links_of_rows_are_described() {
        let mut found = listing(vec![json!({"item": "a"}), json!({"item": "b"})]);
        found.want = vec!["publisher".to_owned()];
        assert!(
            format_rows(&found).ends_with("\nno row leads to a page that could fill publisher")
        );
        found.rows[1].links = vec!["https://a.example/b".to_owned()];
        let expected =
            "\n1 of the rows lead to pages that may fill publisher: row 1 to https://a.example/b";
        assert!(
            format_rows(&found).ends_with(expected),
            "{}",
            format_rows(&found)
        );
    }

    #[test]
    fn truncation_is_reported() {
        let long = "x".repeat(50);
        let row = |_| json!({"a": long, "b": long, "c": long, "d": "\u{1b}[2J"});
        let output = format_rows(&listing((0..23).map(row).collect()));
        assert!(
            output
                .lines()
                .all(|line| line.chars().count() <= TABLE_CHARS)
        );
        let end = "and 3 more; --format json has all\nnot shown for lack of width: c; --format json has all";
        assert!(output.ends_with(end), "{output}");
        assert!(
            output.contains("x…") && output.contains("\u{fffd}[2J"),
            "{output}"
        );
    }
}
