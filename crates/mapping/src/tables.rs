//! The tables of a page as people see them: which column each cell is in, and which header it is below.
//!
//! Follows the HTML Standard, 4.9.12 ("Processing model" of tables): a cell that spans rows and columns is in each of
//! them.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use webfill_document::NodeRef;

/// The most columns of a table, which HTML also sets as the limit of `colspan`, and the most cells of all rows
/// together.
const MOST_COLUMNS: usize = 1_000;
const MOST_CELLS: usize = 2_000_000;
/// The most rows that a cell may span (`rowspan`).
const MOST_ROWS_SPANNED: usize = 65_534;

/// A table's cells by row and column.
pub(crate) struct Table<'p> {
    /// For each row, by its position in the document: its cells by column.
    rows: HashMap<usize, Vec<Option<NodeRef<'p>>>>,
    /// The header texts above each column, from top to bottom, in folded form (lower case, without extra white space).
    headers: Vec<Vec<String>>,
    /// The positions in the document of the rows that contain the headers.
    head: HashSet<usize>,
}

/// The HTML tables of a page that have been parsed so far.
#[derive(Default)]
pub(crate) struct Tables<'p> {
    known: HashMap<(usize, usize), Rc<Table<'p>>>,
}

impl<'p> Tables<'p> {
    /// The table that contains a row (`tr`).
    pub(crate) fn table_of_row(&mut self, row: NodeRef<'p>) -> Option<Rc<Table<'p>>> {
        let table = enclosing_table(row)?;
        let place = (
            std::ptr::from_ref(table.document()).addr(),
            table.position(),
        );
        let known = self.known.entry(place);
        Some(Rc::clone(
            known.or_insert_with(|| Rc::new(Table::read(table))),
        ))
    }
}

impl<'p> Table<'p> {
    fn read(table: NodeRef<'p>) -> Table<'p> {
        let mut read = Table {
            rows: HashMap::new(),
            headers: Vec::new(),
            head: HashSet::new(),
        };
        let mut cells_left = MOST_CELLS;
        let mut is_head = true;
        for group in row_groups(table) {
            let mut spans: Vec<Option<(NodeRef<'p>, usize)>> = Vec::new();
            for &row in &group.rows {
                let cells = cells_by_column(row, &mut spans);
                cells_left = cells_left.saturating_sub(cells.len().max(1));
                if cells_left == 0 {
                    return read;
                }
                is_head = is_head && (group.is_head || are_all_headers(&cells));
                if is_head {
                    read.add_headers(&cells);
                    read.head.insert(row.position());
                }
                read.rows.insert(row.position(), cells);
            }
        }
        read
    }

    fn add_headers(&mut self, cells: &[Option<NodeRef<'p>>]) {
        if self.headers.len() < cells.len() {
            self.headers.resize(cells.len(), Vec::new());
        }
        for (texts, cell) in self.headers.iter_mut().zip(cells) {
            let text = cell.map(|cell| webfill_values::folded_form(cell.text()));
            // A header cell that spans several rows counts once in its column.
            texts.extend(text.filter(|text| !text.is_empty() && texts.last() != Some(text)));
        }
    }

    /// The cells of a row in the columns below a header. `header` is in folded form (lower case, without extra white
    /// space).
    pub(crate) fn cells_below(&self, row: NodeRef<'p>, header: &str) -> Vec<NodeRef<'p>> {
        let columns = self.headers.iter().enumerate();
        let named = columns.filter(|(_, texts)| is_named(texts, header));
        let mut cells: Vec<NodeRef<'p>> = Vec::new();
        for (column, _) in named {
            let cell = self.cell(row, column);
            cells.extend(cell.filter(|cell| cells.last() != Some(cell)));
        }
        cells
    }

    /// The cell of a row in a column, counted from 0.
    pub(crate) fn cell(&self, row: NodeRef<'p>, column: usize) -> Option<NodeRef<'p>> {
        *self.rows.get(&row.position())?.get(column)?
    }

    /// Whether any column is below this header.
    pub(crate) fn has_header(&self, header: &str) -> bool {
        self.headers.iter().any(|texts| is_named(texts, header))
    }

    /// Whether the row is a header row of the table, and so has no values.
    pub(crate) fn is_header(&self, row: NodeRef<'p>) -> bool {
        self.head.contains(&row.position())
    }

    /// The names of the columns, for messages.
    pub(crate) fn column_names(&self) -> Vec<String> {
        let named = self.headers.iter().filter(|texts| !texts.is_empty());
        named.map(|texts| texts.join(" ")).collect()
    }
}

/// Whether a header names a column with these texts above it: it must equal one of the texts, or all of them joined.
fn is_named(texts: &[String], header: &str) -> bool {
    texts.iter().any(|text| text == header) || texts.len() > 1 && texts.join(" ") == header
}

/// A column of one table row, as the processor `cell` finds it.
#[derive(Debug, Clone)]
pub struct ColumnOfRow<'p> {
    /// The header texts above the column, in folded form (lower case, without extra white space).
    pub headers: Vec<String>,
    /// The cell of the row in this column. A cell that spans columns or rows may begin elsewhere.
    pub cell: Option<NodeRef<'p>>,
}

/// The columns of a table row (`tr`), in order. A header row has none, because the processor `cell` reads nothing in
/// it.
pub fn columns_of_row(row: NodeRef<'_>) -> Vec<ColumnOfRow<'_>> {
    let Some(table) = enclosing_table(row).map(Table::read) else {
        return Vec::new();
    };
    let cells = match table.is_header(row) {
        true => None,
        false => table.rows.get(&row.position()),
    };
    let columns = cells.into_iter().flatten().enumerate();
    let column = |(column, cell): (usize, &Option<_>)| ColumnOfRow {
        headers: table.headers.get(column).cloned().unwrap_or_default(),
        cell: *cell,
    };
    columns.map(column).collect()
}

fn enclosing_table(row: NodeRef<'_>) -> Option<NodeRef<'_>> {
    if row.tag() != Some("tr") {
        return None;
    }
    let parent = row.parent()?;
    match parent.tag() {
        Some("table") => Some(parent),
        Some("thead" | "tbody" | "tfoot") => {
            parent.parent().filter(|table| table.tag() == Some("table"))
        }
        _ => None,
    }
}

/// A group of rows that no cell reaches beyond: a `thead`, `tbody` or `tfoot`, or the rows between them.
struct Group<'p> {
    is_head: bool,
    rows: Vec<NodeRef<'p>>,
}

fn row_groups(table: NodeRef<'_>) -> Vec<Group<'_>> {
    let rows_in = |node: NodeRef<'_>| node.tag() == Some("tr");
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut is_open = false;
    for child in table.children() {
        match child.tag() {
            Some("tr") if is_open => {
                if let Some(group) = groups.last_mut() {
                    group.rows.push(child);
                }
            }
            Some("tr") => {
                groups.push(Group {
                    is_head: false,
                    rows: vec![child],
                });
                is_open = true;
            }
            Some(tag @ ("thead" | "tbody" | "tfoot")) => {
                groups.push(Group {
                    is_head: tag == "thead",
                    rows: child.children().filter(|node| rows_in(*node)).collect(),
                });
                is_open = false;
            }
            _ => {}
        }
    }
    groups
}

fn are_all_headers(cells: &[Option<NodeRef<'_>>]) -> bool {
    let mut cells = cells.iter().flatten().peekable();
    cells.peek().is_some() && cells.all(|cell| cell.tag() == Some("th"))
}

/// The cells of a row by column. `spans` has the cells of earlier rows that extend into this one, and how many rows
/// they still span.
fn cells_by_column<'p>(
    row: NodeRef<'p>,
    spans: &mut Vec<Option<(NodeRef<'p>, usize)>>,
) -> Vec<Option<NodeRef<'p>>> {
    let mut cells: Vec<Option<NodeRef<'p>>> = Vec::new();
    let mut own = row
        .children()
        .filter(|node| matches!(node.tag(), Some("td" | "th")));
    let mut column = 0;
    loop {
        // A cell of an earlier row that extends into this row occupies the column.
        while let Some(Some((cell, left))) = spans.get_mut(column) {
            put_cell(&mut cells, column, *cell);
            *left -= 1;
            if *left == 0 {
                spans[column] = None;
            }
            column += 1;
        }
        let Some(cell) = own.next() else {
            break;
        };
        let width = parse_number_attribute(cell, "colspan").clamp(1, MOST_COLUMNS);
        let height = match parse_number_attribute(cell, "rowspan") {
            // `rowspan="0"` means that the cell spans all further rows of its group.
            0 if cell.attribute("rowspan").is_some() => MOST_ROWS_SPANNED,
            height => height.clamp(1, MOST_ROWS_SPANNED),
        };
        for _ in 0..width {
            if column >= MOST_COLUMNS {
                return cells;
            }
            put_cell(&mut cells, column, cell);
            if spans.len() <= column {
                spans.resize(column + 1, None);
            }
            spans[column] = (height > 1).then_some((cell, height - 1));
            column += 1;
        }
    }

    for (column, span) in spans.iter_mut().enumerate().skip(column) {
        if let Some((cell, left)) = span {
            put_cell(&mut cells, column, *cell);
            *left -= 1;
            if *left == 0 {
                *span = None;
            }
        }
    }
    cells
}

fn put_cell<'p>(cells: &mut Vec<Option<NodeRef<'p>>>, column: usize, cell: NodeRef<'p>) {
    if cells.len() <= column {
        cells.resize(column + 1, None);
    }
    cells[column] = Some(cell);
}

/// The number at the start of an attribute, by the rules of HTML; 0 if there is none.
fn parse_number_attribute(cell: NodeRef<'_>, attribute: &str) -> usize {
    let text = cell.attribute(attribute).unwrap_or_default().trim_start();
    let text = text.strip_prefix('+').unwrap_or(text);
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    match digits {
        0 => 0,
        _ => text[..digits].parse().unwrap_or(usize::MAX),
    }
}
