//! Finds columns by their names as users type them.

use std::collections::HashMap;

use crate::cell::Column;
use crate::error::TableError;

/// The columns of a table, by name.
pub(super) struct Names<'a> {
    columns: &'a [Column],
    /// Indexes of columns by name, in lower case without blanks around it.
    by_name: HashMap<String, Vec<usize>>,
}

fn name_key(name: &str) -> String {
    webfill_values::trim(name).to_lowercase()
}

impl<'a> Names<'a> {
    pub(super) fn new(columns: &'a [Column]) -> Names<'a> {
        let mut by_name: HashMap<String, Vec<usize>> = HashMap::new();
        for (number, column) in columns.iter().enumerate() {
            by_name
                .entry(name_key(&column.name))
                .or_default()
                .push(number);
        }
        Names { columns, by_name }
    }

    pub(super) fn has_blank_name(&self, column: usize) -> bool {
        webfill_values::is_blank(&self.columns[column].name)
    }

    /// Whether another column has the same name.
    pub(super) fn is_ambiguous(&self, column: usize) -> bool {
        let name = &self.columns[column].name;
        let others = self.by_name[&name_key(name)].iter();
        others
            .filter(|other| self.columns[**other].name == *name)
            .count()
            > 1
    }

    /// Finds the column that the user means by `wish`. Letter case and blanks are ignored, unless two columns differ
    /// only in them.
    pub(super) fn find(&self, wish: &str) -> Result<usize, TableError> {
        let found = self
            .by_name
            .get(&name_key(wish))
            .map_or(&[][..], Vec::as_slice);
        let is_exact = |column: &&usize| self.columns[**column].name == wish;
        let exact: Vec<&usize> = found.iter().filter(is_exact).collect();
        match (exact.as_slice(), found) {
            ([column], _) => Ok(**column),
            ([], [column]) => Ok(*column),
            ([], []) => Err(TableError::Wish(self.unknown_column_message(wish))),
            _ => Err(TableError::Wish(format!(
                "several columns are named `{wish:.40}`: rename them"
            ))),
        }
    }

    /// Finds the columns of a list of names that are separated by commas. If a column's own name contains commas, that
    /// column comes first.
    pub(super) fn find_all(&self, wish: &str) -> Result<Vec<usize>, TableError> {
        let parts: Vec<&str> = wish.split(',').collect();
        let mut found = Vec::new();
        let mut first = 0;
        while first < parts.len() {
            let is_known = |end: &usize| {
                self.by_name
                    .contains_key(&name_key(&parts[first..*end].join(",")))
            };
            let several = (first + 2..=parts.len()).rev().find(is_known);
            let end = several.unwrap_or(first + 1);
            found.push(self.find(&parts[first..end].join(","))?);
            first = end;
        }
        Ok(found)
    }

    fn unknown_column_message(&self, wish: &str) -> String {
        const COMPARED: usize = 10_000;
        let distance = |name: &str| strsim::damerau_levenshtein(&name_key(name), &name_key(wish));
        let names = self.columns.iter().map(|column| column.name.as_str());
        let compared = names.clone().take(COMPARED).filter(|name| name.len() < 200);
        let nearest = compared.min_by_key(|name| distance(name));
        let shown: String = wish.chars().take(40).collect();
        match nearest {
            Some(near) if distance(near) <= wish.chars().count().div_ceil(3).max(1) => {
                format!("no column is named `{shown}`: did you mean `{near}`?")
            }
            _ => {
                const SHOWN: usize = 20;
                let known: Vec<String> = names
                    .take(SHOWN)
                    .map(|name| format!("`{name:.40}`"))
                    .collect();
                let dots = if self.columns.len() > SHOWN {
                    ", ..."
                } else {
                    ""
                };
                let known = known.join(", ");
                format!("no column is named `{shown}`: the table has {known}{dots}")
            }
        }
    }
}
