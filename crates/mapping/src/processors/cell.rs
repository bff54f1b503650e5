//! `cell`: the cell of a table's row below a header, or in a column.

use webfill_document::NodeRef;

use crate::entry::{Entry, Example, Family, Input, Kind, Parameter, Presence, refusal};
use crate::fault::quote;
use crate::item::Item;
use crate::run::{OutOfTime, Processor, Run};

use super::select::search_root;

pub(crate) const CELL: Entry = Entry {
    name: "cell",
    family: Family::Find,
    summary: "Yields the cell below a header, or in a column: of the table rows (`tr`) of the previous processor, of all rows within its elements, or of the page. Cells may span rows and columns. Case and white space of headers do not matter; with headers in several rows, one of them or all of them name the column.",
    parameters: &[
        Parameter {
            name: "header",
            kind: Kind::Text,
            presence: Presence::Optional,
            meaning: "the text of the header",
        },
        Parameter {
            name: "column",
            kind: Kind::Integer(1, 1_000),
            presence: Presence::Optional,
            meaning: "the number of the column, from 1, instead of a header",
        },
    ],
    examples: &[
        Example {
            parameters: r#"{"header": "score"}"#,
            input: Input::Page(
                "<table><tr><th>Title<th>Score<tr><td>Emma<td>4<tr><td>Persuasion<td>5</table>",
            ),
            output: &["4", "5"],
        },
        Example {
            parameters: r#"{"column": 2}"#,
            input: Input::Page("<table><tr><td rowspan=2>Emma<td>4<tr><td>5</table>"),
            output: &["4", "5"],
        },
    ],
    build: |parameters, _| {
        let header = parameters
            .optional_text("header")
            .map(webfill_values::folded_form);
        let column = parameters.size("column");
        match (header, column) {
            (Some(header), None) if !header.is_empty() => Ok(Box::new(Cell::Below(header))),
            (None, Some(column)) => Ok(Box::new(Cell::InColumn(column - 1))),
            _ => Err(refusal(
                "",
                "name the column by `header` or by `column`, its number",
            )),
        }
    },
};

enum Cell {
    /// The text of the column's header, in folded form (lower case, without extra white space).
    Below(String),
    InColumn(usize),
}

impl Processor for Cell {
    fn apply<'p>(&self, items: Vec<Item<'p>>, run: &Run<'p>) -> Result<Vec<Item<'p>>, OutOfTime> {
        let mut output = run.new_output();
        for item in items {
            run.check_time()?;
            let mut cells = search_root(&item, run)
                .into_iter()
                .flat_map(rows_in)
                .flat_map(|row| self.find_cells(row, run));
            if !cells.all(|cell| output.push(Item::Node(cell))) {
                break;
            }
        }
        output.finish()
    }

    fn sees_markup(&self) -> bool {
        true
    }
}

impl Cell {
    fn find_cells<'p>(&self, row: NodeRef<'p>, run: &Run<'p>) -> Vec<NodeRef<'p>> {
        let Some(table) = run.table_of(row) else {
            run.warn("cell: a `tr` is not in a table");
            return Vec::new();
        };
        if table.is_header(row) {
            return Vec::new();
        }
        match self {
            Cell::InColumn(column) => table.cell(row, *column).into_iter().collect(),
            Cell::Below(header) => {
                if !table.has_header(header) {
                    run.warn(no_header_message(header, &table.column_names()));
                }
                table.cells_below(row, header)
            }
        }
    }
}

fn rows_in(place: NodeRef<'_>) -> Vec<NodeRef<'_>> {
    match is_row(&place) {
        true => vec![place],
        false => place.descendants().filter(is_row).collect(),
    }
}

fn is_row(node: &NodeRef<'_>) -> bool {
    node.tag() == Some("tr")
}

fn no_header_message(header: &str, names: &[String]) -> String {
    const SHOWN: usize = 12;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| quote(name)).collect();
    match shown.is_empty() {
        true => format!(
            "cell: the table has no headers, not even {}: name the column by its number",
            quote(header)
        ),
        false => format!(
            "cell: no header is {}; there are {}",
            quote(header),
            shown.join(", ")
        ),
    }
}
