//! Writes the table with new values in some cells.

use std::collections::HashMap;
use std::path::Path;

use webfill_service::Fault;
use webfill_table::{Cell, Format, TableError};

use super::field::Field;
use super::{MOST_FAULTS_SHOWN, Table};

/// New values for a cell.
#[derive(Debug, Clone)]
pub struct Change {
    pub values: Vec<String>,
    /// The values that the cell must have before the change; empty for a gap.
    pub old: Vec<String>,
    /// Whether a person has accepted the values. Then they are refused only if the column cannot hold them.
    pub is_accepted: bool,
}

/// Why values were not written, by the number of the row and the column.
pub type Refused = HashMap<(u64, usize), String>;

impl Table {
    /// Writes the table with new values in some cells. Values that do not fit their column are not written; they are
    /// reported and returned.
    pub fn write_filled(
        &self,
        output: &Path,
        changes: &HashMap<(u64, usize), Change>,
    ) -> Result<Refused, Fault> {
        self.require_unchanged()?;
        let fields: HashMap<usize, &Field> = self
            .fields
            .iter()
            .map(|field| (field.column, field))
            .collect();
        let is_delimited = matches!(self.understanding.format, Format::Delimited(..));
        let (mut refused, mut reported) = (Refused::new(), Vec::new());
        let mut change = |row: u64, column: usize, cell: &Cell, is_gap: bool| {
            let change = changes.get(&(row, column))?;
            let field = fields.get(&column)?;
            let stands = if is_gap {
                Vec::new()
            } else {
                field.values(cell)
            };
            if stands != change.old {
                return None;
            }
            let fitted = field.fit_values(&change.values, change.is_accepted);
            let fitted = fitted.and_then(|values| match is_delimited {
                true => field.refuse_formulas(values),
                false => Ok(values),
            });
            let refusal = match fitted {
                Ok(values) => return Some(field.format_cell(&values)),
                Err(reason) => reason,
            };
            reported.push((
                row,
                column,
                field.join_values(&change.values),
                refusal.clone(),
            ));
            refused.insert((row, column), refusal);
            None
        };
        let written = webfill_table::write_changed_table(
            &self.path,
            output,
            &self.understanding,
            &mut change,
        );
        let written = written.map_err(|error| match &error {
            TableError::Write { path, source } => Fault::unwritable(path, source),
            _ => Fault::error(error),
        })?;
        if let Err(fault) = self.require_unchanged() {
            // The output is removed, because it may have values in the wrong rows.
            let _ = std::fs::remove_file(output);
            return Err(fault);
        }
        reported.extend(written.refusals.into_iter().map(|refusal| {
            let place = (refusal.row, refusal.column);
            refused.insert(place, refusal.reason.clone());
            (refusal.row, refusal.column, refusal.value, refusal.reason)
        }));
        for place in written.refused_cells {
            let reason = || String::from("it does not fit its column");
            refused.entry(place).or_insert_with(reason);
        }
        for (row, column, value, reason) in reported.iter().take(MOST_FAULTS_SHOWN) {
            let name = &self.understanding.columns[*column].name;
            webfill_service::say!(
                "webfill: line {row}, {name}: `{value}` is not written: {reason}"
            );
        }
        let more = refused.len().saturating_sub(MOST_FAULTS_SHOWN);
        if more > 0 {
            webfill_service::say!("webfill: {more} more values are not written");
        }
        Ok(refused)
    }
}
