//! Lists in a cell of a table: entries with a separator between them (`--list-separator`).
//!
//! Within an entry, a separator after a backslash is a part of the entry, and `\\` is one backslash. A cell is a list
//! if mappings yield several values for its field. All other cells are texts, whatever characters they contain.

use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use serde_json::Value;

use super::exported_cell;

const MAX_BYTES: usize = 8;

/// The separator between two entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListSeparator {
    written: String,
    /// The separator without blanks around it.
    mark: String,
}

impl FromStr for ListSeparator {
    type Err = String;

    fn from_str(text: &str) -> Result<ListSeparator, String> {
        let mark = text.trim();
        let is_unfit = |c: char| c.is_alphanumeric() || "\"'\\[]{}-+.".contains(c);
        let has_unfit = mark.chars().any(is_unfit) || text.chars().any(char::is_control);
        if mark.is_empty() || text.len() > MAX_BYTES || has_unfit {
            return Err(format!(
                "`{}` cannot separate list values: use a character such as `;` or `|`, with or without a space",
                text.escape_debug()
            ));
        }
        Ok(ListSeparator {
            written: text.to_owned(),
            mark: mark.to_owned(),
        })
    }
}

impl Display for ListSeparator {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

impl ListSeparator {
    /// Splits a cell into entries. Blanks around entries are removed, and empty entries are dropped.
    fn split(&self, cell: &str) -> Vec<String> {
        let mut entries = vec![String::new()];
        let mut rest = cell;
        while let Some(c) = rest.chars().next() {
            if let Some(behind) = rest.strip_prefix(&self.mark) {
                entries.push(String::new());
                rest = behind;
                continue;
            }
            let escaped = rest.strip_prefix('\\').unwrap_or_default();
            let literal = match escaped.strip_prefix(&self.mark) {
                Some(_) => &self.mark,
                None if escaped.starts_with('\\') => "\\",
                None => "",
            };
            if let Some(entry) = entries.last_mut() {
                match literal {
                    "" => entry.push(c),
                    literal => entry.push_str(literal),
                }
            }
            rest = match literal {
                "" => &rest[c.len_utf8()..],
                literal => &escaped[literal.len()..],
            };
        }
        let entries = entries.into_iter();
        let trimmed = entries.map(|entry| entry.trim().to_owned());
        trimmed.filter(|entry| !entry.is_empty()).collect()
    }

    /// Joins a list of texts to a cell. `None` if the cell would not be read as the same list again.
    pub fn join(&self, list: &Value) -> Option<String> {
        let texts: Vec<&str> = list
            .as_array()?
            .iter()
            .map(Value::as_str)
            .collect::<Option<_>>()?;
        let escaped = |text: &&str| {
            let text = text.replace('\\', "\\\\");
            text.replace(&self.mark, &format!("\\{}", self.mark))
        };
        let cell = texts.iter().map(escaped).collect::<Vec<_>>();
        let cell = cell.join(&self.written);
        let lists = ListCells {
            separator: self.clone(),
            fields: BTreeSet::from([String::new()]),
        };
        (!texts.is_empty() && lists.parse_cell("", cell.clone()) == *list).then_some(cell)
    }
}

/// Which cells of a table are lists, and how lists are written.
#[derive(Debug, Clone)]
pub struct ListCells {
    pub separator: ListSeparator,
    pub fields: BTreeSet<String>,
}

impl ListCells {
    pub fn has_field(&self, field: &str) -> bool {
        self.fields.contains(field)
    }

    /// Converts a cell that is not blank to a value. In a field of lists, a JSON list is recognised, too.
    pub fn parse_cell(&self, field: &str, cell: String) -> Value {
        if !self.has_field(field) {
            return Value::String(cell);
        }
        match exported_cell::parse_exported_cell(cell.clone()) {
            Value::String(text) if text == cell => Value::from(self.separator.split(&cell)),
            value => value,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn list_cells(separator: &str) -> ListCells {
        ListCells {
            separator: separator.parse().unwrap(),
            fields: BTreeSet::from([String::from("tags")]),
        }
    }

    #[test]
    fn only_cells_of_list_fields_are_read_as_lists() {
        let table = [
            ("tags", "a;b", json!(["a", "b"])),
            ("tags", " a ; b c ;", json!(["a", "b c"])),
            ("tags", "a", json!(["a"])),
            ("tags", "a;;b", json!(["a", "b"])),
            ("tags", r"a\;b;c", json!(["a;b", "c"])),
            ("tags", r"a\\;b", json!([r"a\", "b"])),
            ("tags", r"C:\dir;b", json!([r"C:\dir", "b"])),
            ("tags", r#"["a;b"]"#, json!(["a;b"])),
            ("tags", "[draft];b", json!(["[draft]", "b"])),
            ("tags", "null", json!(["null"])),
            ("note", "a;b", json!("a;b")),
            ("note", r#"["a"]"#, json!(r#"["a"]"#)),
        ];
        for (field, cell, value) in table {
            assert_eq!(
                list_cells(";").parse_cell(field, cell.to_owned()),
                value,
                "{cell}"
            );
        }
    }

    #[test]
    fn a_written_list_is_read_back_unchanged() {
        let pieces = [
            "a", "", " ", ";", "; ", "|", "\\", "\\;", "\"", "[", "]", "{", ",", "\n", "ü", "null",
        ];
        // Try every list of one or two entries, each made of one or two pieces.
        let mut entries: Vec<String> = Vec::new();
        for one in pieces {
            entries.extend(pieces.iter().map(|other| format!("{one}{other}")));
        }
        let mut joined = 0;
        for separator in [";", "; ", "|", " / ", "||"] {
            let cells = list_cells(separator);
            for first in &entries {
                for list in entries
                    .iter()
                    .map(|second| json!([first, second]))
                    .chain([json!([first])])
                {
                    if let Some(cell) = cells.separator.join(&list) {
                        joined += 1;
                        assert_eq!(cells.parse_cell("tags", cell.clone()), list, "{cell:?}");
                    }
                }
            }
        }
        assert!(joined > 50_000, "{joined}");
    }

    #[test]
    fn a_list_separator_consists_of_punctuation() {
        for fit in [";", "|", "; ", ", ", " / ", "·", "||"] {
            assert!(fit.parse::<ListSeparator>().is_ok(), "{fit:?}");
        }
        for unfit in [
            "",
            " ",
            "a",
            "1",
            "\"",
            "\\",
            "\n",
            ";\n",
            "[",
            "-",
            ";;;;;;;;;",
            " and ",
        ] {
            let refusal = unfit.parse::<ListSeparator>().unwrap_err();
            assert!(refusal.contains("use a character"), "{unfit:?}");
        }
    }
}
