//! A column that is to be filled or compared.

use std::collections::BTreeSet;

use webfill_table::Cell;

use super::style::Style;

/// A column that is to be filled or compared.
#[derive(Debug, Clone)]
pub struct Field {
    pub column: usize,
    /// The name of the column in the table.
    pub title: String,
    /// The name of the field in the mappings.
    pub name: String,
    /// The separator between the values of a cell, if it is a list.
    pub separator: Option<String>,
    /// Whether cells are lists without a separator, as in JSON.
    pub(super) is_list: bool,
    /// Whether the column has gaps to fill. A column without gaps is only compared.
    pub has_gaps: bool,
    /// Whether any known list has a value twice.
    pub(super) has_repetitions: bool,
    pub(super) style: Style,
}

impl Field {
    /// The values as the text of one cell.
    pub fn join_values(&self, values: &[String]) -> String {
        values.join(self.separator.as_deref().unwrap_or("; "))
    }

    /// Removes repeated values from a list, because pages often show a value twice. If known lists have repetitions,
    /// they stay.
    pub fn distinct(&self, values: &[String]) -> Vec<String> {
        let mut distinct: Vec<String> = Vec::new();
        for value in values {
            let is_same = |other: &String| webfill_learn::is_same_value(other, value);
            if self.has_repetitions || !self.has_several() || !distinct.iter().any(is_same) {
                distinct.push(value.clone());
            }
        }
        distinct
    }

    /// Whether cells hold several values.
    pub fn has_several(&self) -> bool {
        self.is_list || self.separator.is_some()
    }

    /// Joins values to the text of a cell, in the form that `webfill_table` expects.
    pub(super) fn format_cell(&self, values: &[String]) -> String {
        match self.has_several() {
            true => serde_json::json!(values).to_string(),
            false => self.join_values(values),
        }
    }

    /// Splits the text of a cell into its values.
    pub fn split_cell(&self, cell: &str) -> Vec<String> {
        let parts: Vec<&str> = match &self.separator {
            Some(separator) => cell.split(separator.as_str()).collect(),
            None => vec![cell],
        };
        let parts = parts.into_iter().map(webfill_values::trim);
        parts
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect()
    }

    /// Converts the values of a change to the form of the column. The error is the reason why that is impossible.
    pub(super) fn fit_values(
        &self,
        values: &[String],
        is_accepted: bool,
    ) -> Result<Vec<String>, String> {
        let fitted = values
            .iter()
            .map(|value| self.style.fit_value(value, is_accepted));
        fitted.collect()
    }

    /// Refuses values that a spreadsheet would run as formulas, because pages are foreign. They are allowed if known
    /// values look like formulas, too.
    pub(super) fn refuse_formulas(&self, values: Vec<String>) -> Result<Vec<String>, String> {
        match self.style.is_foreign_formula(&self.join_values(&values)) {
            true => Err(String::from(
                "a spreadsheet would run it as a formula, and no known value of the column begins so",
            )),
            false => Ok(values),
        }
    }

    /// Whether no known value is incomplete.
    pub fn lacks_cut_off(&self) -> bool {
        self.style.lacks_cut_off()
    }

    /// Whether a text would mean a gap if it were a value of this column.
    pub fn means_gap(&self, text: &str) -> bool {
        self.style.means_gap(text)
    }

    /// The values of a cell that is not a gap.
    pub(super) fn values(&self, cell: &Cell) -> Vec<String> {
        match cell {
            Cell::List(cells) => cells
                .iter()
                .filter_map(Cell::text)
                .map(str::to_owned)
                .collect(),
            cell => cell
                .text()
                .map_or_else(Vec::new, |text| self.split_cell(text)),
        }
    }
}

/// A field name that mappings allow: `ISBN-13` becomes `isbn_13`.
pub(super) fn name_of_field(title: &str, taken: &mut BTreeSet<String>) -> String {
    let lower = title.to_lowercase();
    let plain: String = lower
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    let plain = plain.trim_matches('_');
    let mut name = match plain.starts_with(|c: char| c.is_ascii_lowercase()) {
        true => plain.to_owned(),
        false => format!("f_{plain}"),
    };
    let first = name.clone();
    let mut number = 1;
    while !taken.insert(name.clone()) {
        number += 1;
        name = format!("{first}_{number}");
    }
    name
}
