//! Puts new cells into the XML of a sheet. All other XML events are written as they were read.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, Write};

use quick_xml::escape::escape;
use quick_xml::events::{BytesStart, BytesText, Event};
use quick_xml::{Reader, Writer};

use super::cell::NewCell;
use super::package::attribute_value;

/// The new cells by row, then by column, both counted from 0.
pub(super) type NewCells = HashMap<u32, BTreeMap<u32, NewCell>>;

/// For each column, the style number that most of its cells have.
pub(super) type Styles = HashMap<u32, String>;

type Fault = Box<dyn std::error::Error>;

/// The row and column of the XML event that is being read.
#[derive(Default)]
pub(super) struct Place {
    pub(super) row: u32,
    /// The column of the next cell. It applies if the cell has no reference such as `B2`.
    column: u32,
    next_row: u32,
}

impl Place {
    pub(super) fn enter_row(&mut self, row: &BytesStart<'_>) {
        let said = attribute_value(row, "r").and_then(|number| number.parse::<u32>().ok());
        self.row = said.map_or(self.next_row, |number| number.saturating_sub(1));
        self.next_row = self.row + 1;
        self.column = 0;
    }

    /// Moves to a cell that is read, and returns its column.
    pub(super) fn enter_cell(&mut self, cell: &BytesStart<'_>) -> u32 {
        let said = attribute_value(cell, "r").and_then(|reference| column_of_reference(&reference));
        let column = said.unwrap_or(self.column);
        self.column = column + 1;
        column
    }
}

pub(super) fn column_of_reference(reference: &str) -> Option<u32> {
    let letters = reference.bytes().take_while(u8::is_ascii_alphabetic);
    let number = letters.fold(0_u32, |number, letter| {
        let digit = u32::from(letter.to_ascii_uppercase() - b'A') + 1;
        number.saturating_mul(26).saturating_add(digit)
    });
    number.checked_sub(1)
}

fn column_letters(column: u32) -> String {
    let mut letters = Vec::new();
    let mut rest = column + 1;
    while rest > 0 {
        rest -= 1;
        letters.push(b'A' + (rest % 26) as u8);
        rest /= 26;
    }
    letters
        .iter()
        .rev()
        .map(|letter| char::from(*letter))
        .collect()
}

/// For each of these columns, the style number that most of its cells with a value have. The first row does not count.
pub(super) fn collect_styles(sheet: impl BufRead, columns: &[u32]) -> Result<Styles, Fault> {
    let mut counts: HashMap<u32, HashMap<String, u64>> = HashMap::new();
    let mut reader = Reader::from_reader(sheet);
    let mut buffer = Vec::new();
    let mut place = Place::default();
    let mut first_row = None;
    loop {
        buffer.clear();
        match reader.read_event_into(&mut buffer)? {
            Event::Start(element) if element.local_name().as_ref() == "row" => {
                place.enter_row(&element);
                first_row.get_or_insert(place.row);
            }
            Event::Start(element) if element.local_name().as_ref() == "c" => {
                let column = place.enter_cell(&element);
                if first_row != Some(place.row) && columns.contains(&column) {
                    let style = attribute_value(&element, "s").unwrap_or_default();
                    *counts.entry(column).or_default().entry(style).or_default() += 1;
                }
            }
            Event::Empty(element) if element.local_name().as_ref() == "c" => {
                place.enter_cell(&element);
            }
            Event::Eof => break,
            _ => {}
        }
    }
    let most = |(column, counts): (u32, HashMap<String, u64>)| {
        let most = counts
            .into_iter()
            .max_by_key(|(style, count)| (*count, style.clone()));
        most.map(|(style, _)| (column, style))
    };
    Ok(counts.into_iter().filter_map(most).collect())
}

/// Writes the sheet with the new cells, which are taken out of `cells`. A cell that is left there was not written,
/// because its place holds a formula or was not found.
pub(super) fn rewrite_sheet(
    sheet: impl BufRead,
    out: impl Write,
    cells: &mut NewCells,
    styles: &Styles,
) -> Result<(), Fault> {
    let mut reader = Reader::from_reader(sheet);
    let mut writer = Writer::new(out);
    let mut buffer = Vec::new();
    let mut place = Place::default();
    let mut name = String::from("c");
    loop {
        buffer.clear();
        match reader.read_event_into(&mut buffer)? {
            Event::Eof => return Ok(()),
            Event::Start(element) if element.local_name().as_ref() == "row" => {
                place.enter_row(&element);
                // New cells get the same XML namespace prefix as the row, if it has one.
                let row_name = element.name();
                let prefix = row_name
                    .prefix()
                    .map(|prefix| format!("{}:", prefix.as_ref()));
                name = format!("{}c", prefix.unwrap_or_default());
                writer.write_event(Event::Start(element))?;
            }
            Event::End(element) if element.local_name().as_ref() == "row" => {
                write_cells_before(u32::MAX, &place, &name, cells, styles, &mut writer)?;
                writer.write_event(Event::End(element))?;
            }
            Event::Empty(element) if element.local_name().as_ref() == "c" => {
                let column = place.enter_cell(&element);
                write_cells_before(column, &place, &name, cells, styles, &mut writer)?;
                match take_cell(cells, place.row, column) {
                    Some(cell) => {
                        let style = choose_style(
                            &cell,
                            attribute_value(&element, "s"),
                            styles.get(&column),
                        );
                        write_cell(&name, place.row, column, style, &cell, &mut writer)?;
                    }
                    None => writer.write_event(Event::Empty(element))?,
                }
            }
            Event::Start(element) if element.local_name().as_ref() == "c" => {
                let column = place.enter_cell(&element);
                write_cells_before(column, &place, &name, cells, styles, &mut writer)?;
                let Some(cell) = take_cell(cells, place.row, column) else {
                    writer.write_event(Event::Start(element))?;
                    continue;
                };
                let start = element.into_owned();
                let (inner, has_formula) = read_inner_of_cell(&mut reader)?;
                if has_formula {
                    writer.write_event(Event::Start(start))?;
                    for event in inner {
                        writer.write_event(event)?;
                    }
                    set_aside(cells, place.row, column, cell);
                    continue;
                }
                let style = choose_style(&cell, attribute_value(&start, "s"), styles.get(&column));
                write_cell(&name, place.row, column, style, &cell, &mut writer)?;
            }
            event => writer.write_event(event)?,
        }
    }
}

/// Sets aside a new cell whose place holds a formula, so that it is not written before the next cell. It stays in
/// `cells`, but under a row number with the bit [`FORMULAS`].
fn set_aside(cells: &mut NewCells, row: u32, column: u32, cell: NewCell) {
    let mut held = cells.remove(&row).unwrap_or_default();
    held.insert(column, cell);
    let (formulas, rest): (BTreeMap<_, _>, BTreeMap<_, _>) =
        held.into_iter().partition(|(of, _)| *of <= column);
    cells.insert(row, rest);
    cells.entry(FORMULAS | row).or_default().extend(formulas);
}

/// The bit that marks the row numbers of cells that were set aside because of a formula. No sheet has so many rows.
pub(super) const FORMULAS: u32 = 1 << 31;

fn take_cell(cells: &mut NewCells, row: u32, column: u32) -> Option<NewCell> {
    let of_row = cells.get_mut(&row)?;
    let cell = of_row.remove(&column);
    if of_row.is_empty() {
        cells.remove(&row);
    }
    cell
}

/// Reads the XML events up to the end of a cell, and finds out whether the cell holds a formula.
fn read_inner_of_cell(
    reader: &mut Reader<impl BufRead>,
) -> Result<(Vec<Event<'static>>, bool), Fault> {
    let mut events = Vec::new();
    let mut has_formula = false;
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        let event = reader.read_event_into(&mut buffer)?.into_owned();
        let is_end = match &event {
            Event::Start(element) | Event::Empty(element) => {
                has_formula |= element.local_name().as_ref() == "f";
                false
            }
            Event::End(element) => element.local_name().as_ref() == "c",
            Event::Eof => return Err("the sheet ends within a cell".into()),
            _ => false,
        };
        events.push(event);
        if is_end {
            return Ok((events, has_formula));
        }
    }
}

/// Writes the new cells of the row that come before `column` and have no cell in the sheet yet.
fn write_cells_before(
    column: u32,
    place: &Place,
    name: &str,
    cells: &mut NewCells,
    styles: &Styles,
    writer: &mut Writer<impl Write>,
) -> Result<(), Fault> {
    loop {
        let first = cells.get(&place.row).and_then(|cells| cells.keys().next());
        let Some(first) = first.copied().filter(|first| *first < column) else {
            return Ok(());
        };
        if let Some(cell) = take_cell(cells, place.row, first) {
            let style = choose_style(&cell, None, styles.get(&first));
            write_cell(name, place.row, first, style, &cell, writer)?;
        }
    }
}

/// The style of a new cell: that of the cell before, or else that of its column. For a day, the column's style comes
/// first, because only a date format shows it as a day.
fn choose_style(cell: &NewCell, own: Option<String>, of_column: Option<&String>) -> Option<String> {
    let of_column = of_column.cloned().filter(|style| !style.is_empty());
    match cell {
        NewCell::Days(_) => of_column.or(own),
        _ => own.or(of_column),
    }
}

fn write_cell(
    name: &str,
    row: u32,
    column: u32,
    style: Option<String>,
    cell: &NewCell,
    writer: &mut Writer<impl Write>,
) -> Result<(), Fault> {
    let prefix = name.strip_suffix('c').unwrap_or_default();
    let mut start = BytesStart::new(name);
    start.push_attribute((
        "r",
        format!("{}{}", column_letters(column), row + 1).as_str(),
    ));
    if let Some(style) = &style {
        start.push_attribute(("s", style.as_str()));
    }
    let (kind, inner) = match cell {
        NewCell::Text(text) => {
            let text = escape(text.as_str()).replace('\r', "&#13;");
            let texts = format!(
                "<{prefix}is><{prefix}t xml:space=\"preserve\">{text}</{prefix}t></{prefix}is>"
            );
            (Some("inlineStr"), texts)
        }
        NewCell::Number(value) | NewCell::Days(value) => {
            (None, format!("<{prefix}v>{value}</{prefix}v>"))
        }
        NewCell::Bool(value) => {
            let value = u8::from(*value);
            (Some("b"), format!("<{prefix}v>{value}</{prefix}v>"))
        }
    };
    if let Some(kind) = kind {
        start.push_attribute(("t", kind));
    }
    let end = start.to_end().into_owned();
    writer.write_event(Event::Start(start))?;
    writer.write_event(Event::Text(BytesText::from_escaped(inner)))?;
    writer.write_event(Event::End(end))?;
    Ok(())
}
