//! Finds integers in an XLSX that a double cannot represent. Some exporters write them into the XML with all digits,
//! but the library that reads the cells rounds them. So their texts are taken from the XML of the sheet, which is read
//! once more only if it has such a number.

use std::collections::HashMap;
use std::io::BufRead;

use super::package::Package;
use super::xml::{Attributes, Token, for_each_token};
use crate::formats::Trouble;

/// A number with this many digits or more is long. A double represents every integer with fewer digits.
const LONG: usize = 16;

/// How many long numbers of a sheet are kept. The limit on the text of a document is reached far earlier.
const MAX_CELLS: usize = 1 << 20;

/// The long numbers of a sheet, by row and column, both counted from 0.
pub(super) type SheetNumbers = HashMap<(u32, u32), String>;

/// The sheets of a workbook: for each name, the part of the package that contains the sheet.
pub(super) struct Sheets {
    parts: HashMap<String, String>,
}

impl Sheets {
    pub(super) fn from_package(package: &mut Package<'_>) -> Result<Sheets, Trouble> {
        let relations = package.read_small_part("xl/_rels/workbook.xml.rels")?;
        let mut targets = HashMap::new();
        for_each_element(&relations, "Relationship", |attributes| {
            if let (Some(id), Some(target)) = (attributes.get("Id"), attributes.get("Target")) {
                let part = match target.strip_prefix('/') {
                    Some(absolute) => absolute.to_owned(),
                    None => format!("xl/{target}"),
                };
                targets.insert(id, part);
            }
        });
        let workbook = package.read_small_part("xl/workbook.xml")?;
        let mut parts = HashMap::new();
        for_each_element(&workbook, "sheet", |attributes| {
            let target = attributes.get("id").and_then(|id| targets.remove(&id));
            if let (Some(name), Some(target)) = (attributes.get("name"), target) {
                parts.insert(name, target);
            }
        });
        Ok(Sheets { parts })
    }

    /// Returns the long numbers of a sheet. If its part is too large or broken, the result is incomplete; the caller
    /// notices the fault when it reads the cells.
    pub(super) fn long_numbers(&self, package: &mut Package<'_>, sheet: &str) -> SheetNumbers {
        let mut found = SheetNumbers::new();
        let Some(part) = self.parts.get(sheet) else {
            return found;
        };
        let has_some = package
            .open_part(part)
            .is_ok_and(|part| part.is_some_and(has_long_number));
        let again = has_some
            .then(|| package.open_part(part).ok().flatten())
            .flatten();
        let mut place = Place::default();
        // If the XML has a fault, the numbers before the fault are kept.
        let _ = again.map(|part| {
            for_each_token(part, |token| {
                place.handle_token(token, &mut found);
                Ok(())
            })
        });
        found
    }
}

/// Passes the attributes of each element with this name to `each`. If the XML has a fault, only the elements before the
/// fault are passed.
fn for_each_element(xml: &str, element: &str, mut each: impl FnMut(&Attributes<'_>)) {
    let _ = for_each_token(xml.as_bytes(), |token| {
        match token {
            Token::Begin(name, attributes) if name == element => each(&attributes),
            _ => {}
        }
        Ok(())
    });
}

/// Whether the text of any element begins with as many digits as a long number has.
fn has_long_number(mut part: impl BufRead) -> bool {
    let mut digits = None;
    loop {
        let Ok(bytes) = part.fill_buf() else {
            return false;
        };
        if bytes.is_empty() {
            return false;
        }
        for byte in bytes {
            digits = match (byte, digits) {
                (b'>', _) | (b'-', Some(0)) => Some(0),
                (b'0'..=b'9', Some(count)) if count + 1 == LONG => return true,
                (b'0'..=b'9', Some(count)) => Some(count + 1),
                _ => None,
            };
        }
        let read = bytes.len();
        part.consume(read);
    }
}

/// The current cell while the XML of a sheet is read.
#[derive(Default)]
struct Place {
    row: u32,
    column: u32,
    /// The text of the cell's value while it is read.
    value: Option<String>,
}

impl Place {
    fn handle_token(&mut self, token: Token<'_>, found: &mut SheetNumbers) {
        match token {
            // Rows and cells without a position follow the previous one. Both numbers count from 1 here.
            Token::Begin("row", attributes) => {
                let row = attributes.get("r").and_then(|row| row.parse().ok());
                self.row = row.unwrap_or(self.row.saturating_add(1));
                self.column = 0;
            }
            Token::Begin("c", attributes) => {
                let reference = attributes.get("r");
                let column = reference.and_then(|reference| column_number(&reference));
                self.column = column.unwrap_or(self.column.saturating_add(1));
            }
            Token::Begin("v", _) => self.value = Some(String::new()),
            Token::Text(text) => {
                if let Some(value) = &mut self.value
                    && value.len() < 400
                {
                    value.push_str(text);
                }
            }
            Token::End("v") => {
                let value = self.value.take().filter(|value| is_rounded(value.trim()));
                if let Some(value) = value
                    && found.len() < MAX_CELLS
                {
                    let at = (self.row.saturating_sub(1), self.column.saturating_sub(1));
                    found.insert(at, value.trim().to_owned());
                }
            }
            _ => {}
        }
    }
}

/// The number of the column in a reference such as `AB12`, counted from 1.
fn column_number(reference: &str) -> Option<u32> {
    let letters = reference.bytes().take_while(u8::is_ascii_alphabetic);
    letters.take(4).try_fold(0_u32, |column, letter| {
        let value = u32::from(letter.to_ascii_uppercase() - b'A') + 1;
        column.checked_mul(26)?.checked_add(value)
    })
}

/// Whether a double would change the digits of a number, which has a long integer part and maybe a fraction.
fn is_rounded(value: &str) -> bool {
    let digits = value.strip_prefix('-').unwrap_or(value);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    whole.len() >= LONG
        && are_digits(whole)
        && are_digits(fraction)
        && value
            .parse::<f64>()
            .is_ok_and(|double| double.to_string() != value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_that_doubles_round_are_found_with_their_places() {
        let sheet = "<worksheet><sheetData><row r='2'><c r='B2' s='1'><v>9007199254740993</v></c>\
            <c><v>0.10000000000000001</v></c><c r='AA2'><v>-12345678901234567890</v></c></row>\
            <row><c><v>12345678901234567.89</v></c><c t='s'><v>5</v></c><c><v>9007199254740992</v></c></row>\
            </sheetData></worksheet>";
        assert!(has_long_number(sheet.as_bytes()));
        let mut found = SheetNumbers::new();
        let mut place = Place::default();
        for_each_token(sheet.as_bytes(), |token| {
            place.handle_token(token, &mut found);
            Ok(())
        })
        .unwrap();
        let expected = [
            ((1, 1), "9007199254740993"),
            ((1, 26), "-12345678901234567890"),
            ((2, 0), "12345678901234567.89"),
        ];
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (at, number) in expected {
            assert_eq!(found[&at], number);
        }
        assert!(!has_long_number(
            &b"<v>0.10000000000000001</v><v>123456789012345</v>"[..]
        ));
    }
}
