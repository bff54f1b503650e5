//! Reads the parts (files inside the archive) of a workbook, and finds the part of each sheet.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use quick_xml::Reader;
use quick_xml::escape::unescape;
use quick_xml::events::{BytesStart, Event};
use zip::ZipArchive;

use crate::error::TableError;

/// The largest unpacked sizes in bytes: of a part, and of the shared texts, which are held in memory and so have a
/// lower limit.
const MAX_PART_BYTES: u64 = 2 << 30;
const MAX_TEXTS_BYTES: u64 = 512 << 20;

const WORKBOOK: &str = "xl/workbook.xml";

pub(super) struct Package {
    pub(super) archive: ZipArchive<BufReader<File>>,
    /// The name and the part (file in the archive) of each sheet that has cells, in order.
    pub(super) sheets: Vec<(String, String)>,
    /// Whether days are counted from 1904, not from 1900.
    pub(super) is_from_1904: bool,
}

impl Package {
    pub(super) fn open(path: &Path) -> Result<Package, TableError> {
        let file = File::open(path).map_err(|error| TableError::read_error(path, error))?;
        let unreadable = |reason: String| TableError::unreadable_file(path, reason);
        let archive = ZipArchive::new(BufReader::new(file))
            .map_err(|error| unreadable(format!("broken XLSX: {error}")))?;
        let mut package = Package {
            archive,
            sheets: Vec::new(),
            is_from_1904: false,
        };
        package.find_sheets().map_err(unreadable)?;
        Ok(package)
    }

    fn find_sheets(&mut self) -> Result<(), String> {
        let mut targets = HashMap::new();
        let relations = self.read_small_part("xl/_rels/workbook.xml.rels")?;
        for_each_element(&relations, |element| {
            if let (Some(id), Some(target)) = (
                attribute_value(element, "Id"),
                attribute_value(element, "Target"),
            ) {
                let part = match target.strip_prefix('/') {
                    Some(absolute) => absolute.to_owned(),
                    None => format!("xl/{target}"),
                };
                targets.insert(id, part);
            }
        });
        let workbook = self.read_small_part(WORKBOOK)?;
        // People do not see hidden sheets, so these come last.
        let (mut sheets, mut hidden, mut is_from_1904) = (Vec::new(), Vec::new(), false);
        for_each_element(&workbook, |element| match element.local_name().as_ref() {
            "sheet" => {
                let part = attribute_value(element, "id").and_then(|id| targets.remove(&id));
                let state = attribute_value(element, "state").unwrap_or_default();
                if let (Some(name), Some(part)) = (attribute_value(element, "name"), part) {
                    let is_visible = !matches!(state.as_str(), "hidden" | "veryHidden");
                    let list = if is_visible { &mut sheets } else { &mut hidden };
                    list.push((name, part));
                }
            }
            "workbookPr" => {
                let date = attribute_value(element, "date1904");
                is_from_1904 = matches!(date.as_deref(), Some("1" | "true"));
            }
            _ => {}
        });
        sheets.append(&mut hidden);
        sheets.retain(|(_, part)| part.contains("worksheets/"));
        (self.sheets, self.is_from_1904) = (sheets, is_from_1904);
        let texts = self.archive.by_name("xl/sharedStrings.xml");
        let is_too_large = texts.is_ok_and(|texts| texts.size() > MAX_TEXTS_BYTES);
        match is_too_large {
            true => Err(String::from(
                "its texts take more than 512 MiB: save it as CSV",
            )),
            false => Ok(()),
        }
    }

    /// Names the other sheets, for an error about this one. Empty if there are none.
    pub(super) fn advise_other_sheets(&self, name: &str) -> String {
        let others = self.sheets.iter().filter(|(other, _)| other != name);
        let others: Vec<String> = others.map(|(name, _)| format!("`{name}`")).collect();
        match others.is_empty() {
            true => String::new(),
            false => format!("; name another one with --sheet: {}", others.join(", ")),
        }
    }

    /// The name and the part (file in the archive) of the requested sheet, or of the first one that is not hidden.
    pub(super) fn find_sheet(&mut self, wished: Option<&str>) -> Result<(String, String), String> {
        let sheets = &self.sheets;
        let found = match wished {
            Some(wished) => sheets.iter().find(|(name, _)| name == wished),
            None => sheets.first(),
        };
        let Some((name, part)) = found.cloned() else {
            let names: Vec<String> = sheets.iter().map(|(name, _)| format!("`{name}`")).collect();
            return Err(match wished {
                Some(wished) => {
                    format!("it has no sheet `{wished:.40}`, only {}", names.join(", "))
                }
                None => String::from("it has no sheet with cells"),
            });
        };
        let size = self.archive.by_name(&part).map(|part| part.size());
        match size {
            Ok(size) if size <= MAX_PART_BYTES => Ok((name, part)),
            Ok(_) => Err(format!(
                "the sheet `{name:.40}` is larger than 2 GiB: save it as CSV"
            )),
            Err(error) => Err(format!("broken XLSX: {part}: {error}")),
        }
    }

    pub(super) fn read_small_part(&mut self, name: &str) -> Result<String, String> {
        const MAX_BYTES: u64 = 16 << 20;
        let broken = |error: &dyn std::fmt::Display| match name {
            WORKBOOK => format!("it is a zip file, but no XLSX: {error}"),
            _ => format!("it is a zip file, but no XLSX: {name}: {error}"),
        };
        let part = self.archive.by_name(name).map_err(|error| broken(&error))?;
        let mut text = String::new();
        let read = part.take(MAX_BYTES).read_to_string(&mut text);
        read.map_err(|error| broken(&error))?;
        Ok(text)
    }
}

/// The value of the attribute with this name, whatever its namespace prefix.
pub(super) fn attribute_value(element: &BytesStart<'_>, name: &str) -> Option<String> {
    let mut attributes = element.attributes();
    let mut readable = attributes.with_checks(false).flatten();
    let found = readable.find(|attribute| attribute.key.local_name().as_ref() == name)?;
    let value = unescape(&found.value).ok()?;
    Some(value.into_owned())
}

/// Calls `each` for each XML element. If the XML is broken, it stops there.
pub(super) fn for_each_element(xml: &str, mut each: impl FnMut(&BytesStart<'_>)) {
    let mut reader = Reader::from_str(xml);
    loop {
        match reader.read_event() {
            Ok(Event::Start(element) | Event::Empty(element)) => each(&element),
            Ok(Event::Eof) | Err(_) => return,
            Ok(_) => {}
        }
    }
}
