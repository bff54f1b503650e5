//! Formats the inferred structure of a table for users, in five lines.

use std::fmt::{self, Display, Formatter};

use super::Understanding;

/// How many columns are named in one of the lines.
const NAMED: usize = 12;

impl Display for Understanding {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let rows = format_count(self.row_count, "row");
        write!(f, "{}: {}, {rows}", self.name, self.format)?;
        match self.fault_count {
            0 => writeln!(f)?,
            faults => writeln!(f, ", {} that cannot be used", format_count(faults, "row"))?,
        }
        writeln!(f, "id:     {}", self.id_line())?;
        writeln!(f, "links:  {}", self.links_line())?;
        writeln!(f, "fields: {}", self.fields_line())?;
        write!(f, "kept:   {}", self.kept_line())
    }
}

impl Understanding {
    fn name_of(&self, column: usize) -> String {
        let name = webfill_values::collapse_white_space(&self.columns[column].name);
        match name.is_empty() {
            true => format!("column {}", column + 1),
            false => name.chars().take(40).collect(),
        }
    }

    fn id_line(&self) -> String {
        let reason = match self.reasons.id.as_str() {
            "" => String::new(),
            reason => format!(" ({reason})"),
        };
        match self.id {
            Some(column) => format!("{}{reason}", self.name_of(column)),
            None => format!("the number of the row{reason}"),
        }
    }

    fn links_line(&self) -> String {
        let url = |url: &super::UrlColumn| {
            let name = self.name_of(url.column);
            match url.separator.as_deref() {
                None => name,
                Some(" ") => format!("{name} (several in a cell, with blanks between)"),
                Some(sign) => format!("{name} (several in a cell, with `{sign}` between)"),
            }
        };
        format_list(
            self.urls.iter().map(url),
            "none found: name their column with --url",
        )
    }

    fn fields_line(&self) -> String {
        let field = |field: &super::Field| {
            let shape = &self.shapes[field.column];
            let markers: Vec<String> = shape
                .gap_markers
                .marker_texts()
                .map(|word| format!("`{word}`"))
                .collect();
            let counting = match markers.as_slice() {
                [] => String::new(),
                markers => format!(", counting {}", markers.join(" ")),
            };
            let kind = match (field.is_list, &field.separator) {
                (true, _) => format!("list of {}", field.kind),
                (_, Some(sign)) => format!("list with `{}`", sign.escape_debug()),
                _ => field.kind.to_string(),
            };
            let gaps = format_count(field.gap_count, "gap");
            format!("{} ({kind}, {gaps}{counting})", self.name_of(field.column))
        };
        format_list(self.fields.iter().map(field), "none: no column has gaps")
    }

    fn kept_line(&self) -> String {
        let kept = self.reasons.kept.iter().map(|(column, reason)| {
            let name = self.name_of(*column);
            match reason.as_str() {
                "no gaps" | "not wished" | "as wished" => name,
                reason => format!("{name} ({reason})"),
            }
        });
        format_list(kept, "none")
    }
}

fn format_list(items: impl ExactSizeIterator<Item = String>, none: &str) -> String {
    let count = items.len();
    let named: Vec<String> = items.take(NAMED).collect();
    match count {
        0 => none.to_owned(),
        count if count > NAMED => format!(
            "{} and {} more",
            named.join(", "),
            group_digits((count - NAMED) as u64)
        ),
        _ => named.join(", "),
    }
}

fn format_count(count: u64, unit: &str) -> String {
    match count {
        1 => format!("1 {unit}"),
        count => format!("{} {unit}s", group_digits(count)),
    }
}

/// A number with commas between thousands.
fn group_digits(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
