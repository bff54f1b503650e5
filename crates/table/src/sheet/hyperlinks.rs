//! The hyperlinks of a sheet's cells. A person sees only the text of such a cell, so the links become a column of their
//! own, behind those of the table.

use std::collections::HashMap;
use std::io::BufReader;

use quick_xml::Reader;
use quick_xml::escape::unescape;
use quick_xml::events::Event;

use super::package::{Package, attribute_value, for_each_element};
use super::rewrite::{Place, column_of_reference};
use crate::cell::begins_as_link;

/// The most links that are held in memory.
const MOST_LINKS: usize = 1 << 20;

/// The links by column, then by row, both counted from 0.
pub(super) type Hyperlinks = HashMap<u32, HashMap<u32, String>>;

/// Reads the links of a sheet: those that stand beside its cells, and those of formulas.
pub(super) fn read_hyperlinks(package: &mut Package, part: &str) -> Hyperlinks {
    let targets = read_targets(package, part);
    let Ok(sheet) = package.archive.by_name(part) else {
        return Hyperlinks::new();
    };
    let mut reader = Reader::from_reader(BufReader::new(sheet));
    let (mut buffer, mut place, mut links) = (Vec::new(), Place::default(), Hyperlinks::new());
    let (mut column, mut formula, mut count) = (0, None, 0);
    while count < MOST_LINKS {
        buffer.clear();
        let found = match reader.read_event_into(&mut buffer) {
            Ok(Event::Start(element) | Event::Empty(element)) => {
                match element.local_name().as_ref() {
                    "row" => place.enter_row(&element),
                    "c" => column = place.enter_cell(&element),
                    "f" => formula = Some(String::new()),
                    "hyperlink" => {
                        let id = attribute_value(&element, "id");
                        let target = id.and_then(|id| targets.get(&id));
                        let cell = attribute_value(&element, "ref");
                        if let (Some(target), Some(cell)) = (target, cell) {
                            count += add_to_cells(&mut links, &cell, target);
                        }
                    }
                    _ => {}
                }
                None
            }
            Ok(Event::Text(text)) => {
                if let Some(formula) = formula.as_mut() {
                    formula.push_str(&text);
                }
                None
            }
            Ok(Event::GeneralRef(entity)) => {
                if let Some(formula) = formula.as_mut() {
                    let name: &str = &entity;
                    formula.push_str(&unescape(&format!("&{name};")).unwrap_or_default());
                }
                None
            }
            Ok(Event::End(element)) if element.local_name().as_ref() == "f" => {
                formula.take().and_then(|formula| link_of_formula(&formula))
            }
            Ok(Event::Eof) | Err(_) => break,
            Ok(_) => None,
        };
        if let Some(link) = found {
            links.entry(column).or_default().insert(place.row, link);
            count += 1;
        }
    }
    links
}

/// The addresses outside the workbook that the sheet names, by their ids.
fn read_targets(package: &mut Package, part: &str) -> HashMap<String, String> {
    let mut targets = HashMap::new();
    let (folder, file) = part.rsplit_once('/').unwrap_or(("", part));
    let Ok(relations) = package.read_small_part(&format!("{folder}/_rels/{file}.rels")) else {
        return targets;
    };
    for_each_element(&relations, |element| {
        if let (Some(id), Some(target)) = (
            attribute_value(element, "Id"),
            attribute_value(element, "Target"),
        ) && begins_as_link(&target)
        {
            targets.insert(id, target);
        }
    });
    targets
}

/// Adds a link to the cells of a reference such as `B2` or `B2:B9`. Returns their number.
fn add_to_cells(links: &mut Hyperlinks, reference: &str, target: &str) -> usize {
    /// The most cells of one link. A link for whole columns belongs to no row.
    const MOST_CELLS: u32 = 64;
    let (first, last) = reference.split_once(':').unwrap_or((reference, reference));
    let row_of = |cell: &str| {
        let digits = cell.trim_start_matches(|c: char| !c.is_ascii_digit());
        digits.parse::<u32>().ok()?.checked_sub(1)
    };
    let cells = || {
        let columns = (column_of_reference(first)?, column_of_reference(last)?);
        Some((columns, (row_of(first)?, row_of(last)?)))
    };
    let Some((columns, rows)) = cells() else {
        return 0;
    };
    let size = |(first, last): (u32, u32)| last.saturating_sub(first).saturating_add(1);
    if size(columns).saturating_mul(size(rows)) > MOST_CELLS {
        return 0;
    }
    let mut count = 0;
    for column in columns.0..=columns.1 {
        let of_column = links.entry(column).or_default();
        for row in rows.0..=rows.1 {
            of_column.insert(row, target.to_owned());
            count += 1;
        }
    }
    count
}

/// The address of a formula such as `HYPERLINK("https://a.example/1","Emma")`. One that is computed is not read.
fn link_of_formula(formula: &str) -> Option<String> {
    let function = formula.trim_start().trim_start_matches('=').trim_start();
    let name = function.get(.."HYPERLINK".len())?;
    let inner = function["HYPERLINK".len()..].trim_start();
    let inner = inner.strip_prefix('(')?.trim_start().strip_prefix('"')?;
    let (link, rest) = inner.split_once('"')?;
    let is_whole = rest.trim_start().starts_with([',', ';', ')']);
    let is_hyperlink = name.eq_ignore_ascii_case("HYPERLINK");
    (is_hyperlink && is_whole && begins_as_link(link)).then(|| link.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_with_a_whole_address_are_links() {
        let table = [
            (
                r#"HYPERLINK("http://a.example/1","Emma")"#,
                Some("http://a.example/1"),
            ),
            (
                r#" =hyperlink( "https://a.example/?q=1" )"#,
                Some("https://a.example/?q=1"),
            ),
            (
                r#"HYPERLINK("http://a.example/";B2)"#,
                Some("http://a.example/"),
            ),
            (r#"HYPERLINK("http://a.example/"&A2,"Emma")"#, None),
            ("HYPERLINK(B2)", None),
            (r#"HYPERLINK("mailto:a@a.example")"#, None),
            (r##"HYPERLINK("#Other!A1","there")"##, None),
            (r#"IF(A1,"http://a.example/1","")"#, None),
            ("é", None),
        ];
        for (formula, link) in table {
            assert_eq!(link_of_formula(formula).as_deref(), link, "{formula}");
        }
    }

    #[test]
    fn a_link_may_belong_to_several_cells() {
        let mut links = Hyperlinks::new();
        assert_eq!(add_to_cells(&mut links, "B2", "x"), 1);
        assert_eq!(add_to_cells(&mut links, "C2:D3", "y"), 4);
        for reference in ["A1:A1000", "A:A", "2", "", "A1:XFD1048576"] {
            assert_eq!(add_to_cells(&mut links, reference, "z"), 0, "{reference}");
        }
        assert_eq!(links[&1][&1], "x");
        assert_eq!(links[&3][&2], "y");
        assert_eq!(links.len(), 3);
    }
}
