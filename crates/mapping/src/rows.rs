//! Rows: the records that a mapping makes of a page with many entries, such as a table, search results, reviews, or
//! the response of an API.

use crate::fault::quote;
use crate::keys::{FIELD_NAME, optional_key, required_key};
use crate::mapping::{
    Chain, Field, Step, is_field_name, read_chain, read_chains, read_name, read_url_parser,
};
use crate::reader::{Key, Object, Reader, ValueAtPath};
use crate::selectors::Selectors;

/// A rule of a mapping that selects the rows of a page and reads their fields.
pub(crate) struct RowRule {
    /// The dataset that the rows belong to as records.
    pub(crate) dataset: String,
    /// The chain that yields one element, text or JSON object for each row.
    pub(crate) select: Chain,
    pub(crate) fields: Vec<RowField>,
    /// The fields that identify a row, whatever page lists it.
    pub(crate) key: Vec<String>,
    /// The chains that read links in a row, to pages that may fill its record.
    pub(crate) links: Vec<Chain>,
    /// The fields that the pages linked from a row should fill.
    pub(crate) want: Vec<String>,
    /// Whether rows that the list no longer has count as gone, once it was read to its end.
    pub(crate) complete: bool,
}

/// A field of a row, and where its value comes from.
pub(crate) struct RowField {
    pub(crate) origin: Origin,
    pub(crate) field: Field,
}

/// Where the value of a row's field comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    Row,
    Page,
    /// The page's URL.
    Url,
    /// The record that the page was fetched for: its field with this name, or [its id](RECORD_ID).
    Record(String),
}

/// The name that stands for the id of the record that the page was fetched for.
pub const RECORD_ID: &str = "_id";

/// The names of [`Origin`]s in mapping files, and what each means.
pub(crate) const ORIGINS: [(&str, &str); 4] = [
    ("row", "the row"),
    ("page", "the whole page"),
    ("url", "the page's URL"),
    ("record", "the record that the page was fetched for"),
];

pub(crate) const ROW_KEYS: &[Key] = &[
    optional_key("description"),
    required_key("dataset"),
    required_key("select"),
    required_key("fields"),
    required_key("key"),
    optional_key("links"),
    optional_key("want"),
    optional_key("complete"),
];
pub(crate) const ROW_FIELD_KEYS: &[Key] = &[
    required_key("name"),
    optional_key("description"),
    optional_key("from"),
    optional_key("record_field"),
    optional_key("multiple"),
    optional_key("processors"),
    optional_key("alternatives"),
];

/// Reads `rows` of a mapping: a list of row rules, or a single one.
pub(crate) fn read_rows(
    object: &Object<'_>,
    reader: &mut Reader<'_>,
    selectors: &mut Selectors,
) -> Vec<RowRule> {
    let Some(at) = object.get("rows") else {
        return Vec::new();
    };
    let entries = match at.value.is_object() {
        true => vec![at],
        false => reader.read_list(&at),
    };
    entries
        .iter()
        .filter_map(|entry| read_rule(entry, reader, selectors))
        .collect()
}

fn read_rule(
    at: &ValueAtPath<'_>,
    reader: &mut Reader<'_>,
    selectors: &mut Selectors,
) -> Option<RowRule> {
    let object = reader.read_object(at, ROW_KEYS)?;
    reader.read_text_of(&object, "description");
    let dataset = read_dataset(&object, reader);
    let select = object
        .get("select")
        .map(|chain| read_chain(&chain, reader, selectors));
    let mut fields: Vec<RowField> = Vec::new();
    for at in reader.read_list_of(&object, "fields") {
        let Some(field) = read_row_field(&at, reader, selectors) else {
            continue;
        };
        if let Some(select) = select.as_ref().filter(|_| field.origin == Origin::Row) {
            let cure = "begin with `.//`, or set `from` to `page`";
            reject_root_xpath(&field.field.alternatives, cure, select, &at.path, reader);
        }
        if fields
            .iter()
            .any(|known| known.field.name == field.field.name)
        {
            let message = format!("duplicate field {}", quote(&field.field.name));
            reader.add_fault(&format!("{}.name", at.path), message);
        }
        fields.push(field);
    }
    let key = read_key(&object, &fields, reader);
    let mut links = Vec::new();
    for at in reader.read_list_of(&object, "links") {
        let Some(chain) = read_url_parser(&at, reader, selectors) else {
            continue;
        };
        if let Some(select) = &select {
            let chain = std::slice::from_ref(&chain);
            reject_root_xpath(chain, "begin with `.//`", select, &at.path, reader);
        }
        links.push(chain);
    }
    let want = read_want(&object, &fields, reader);
    let complete = reader.read_boolean_of(&object, "complete").unwrap_or(false);
    Some(RowRule {
        dataset: dataset?,
        select: select?,
        fields,
        key,
        links,
        want,
        complete,
    })
}

/// Rejects an XPath that starts at the root of the page, if rows are elements: it would find the value of the first row
/// for every row.
fn reject_root_xpath(
    chains: &[Chain],
    cure: &str,
    select: &Chain,
    path: &str,
    reader: &mut Reader<'_>,
) {
    let leaves_elements = |step: &&Step| step.processor.sees_markup();
    if !select.steps.iter().all(|step| leaves_elements(&step)) {
        return;
    }
    for (number, chain) in chains.iter().enumerate() {
        let chain_path = match chains.len() {
            1 => format!("{path}.processors"),
            _ => format!("{path}.alternatives[{number}]"),
        };
        for (number, step) in chain.steps.iter().take_while(leaves_elements).enumerate() {
            if let Some(expression) = step.root_xpath() {
                let why = format!(
                    "{} searches the whole page, so every row would get the same value: {cure}",
                    quote(expression)
                );
                let place = format!("{chain_path}[{number}].parameters.expression");
                reader.add_fault(&place, why);
            }
        }
    }
}

/// Reads `want`: the fields that the pages linked from a row should fill.
fn read_want(object: &Object<'_>, fields: &[RowField], reader: &mut Reader<'_>) -> Vec<String> {
    let mut want: Vec<String> = Vec::new();
    for at in reader.read_list_of(object, "want") {
        let Some(name) = reader.read_text(&at) else {
            continue;
        };
        let is_of_record =
            |one: &RowField| one.field.name == name && matches!(one.origin, Origin::Record(_));
        if !is_field_name(name) {
            let message = format!("bad name {}: it must match {FIELD_NAME}", quote(name));
            reader.add_fault(&at.path, message);
        } else if fields.iter().any(is_of_record) {
            let why = "its value comes from the record that the page was fetched for: no other page fills it";
            reader.add_fault(&at.path, why);
        } else if !want.iter().any(|known| known == name) {
            want.push(name.to_owned());
        }
    }
    match (object.get("links"), object.get("want")) {
        (Some(links), None) => {
            let why = "their pages have no fields to fill: name the fields in `want`";
            reader.add_fault(&links.path, why);
        }
        (None, Some(want)) => {
            let why = "no page fills these fields: add `links` from a row to its pages";
            reader.add_fault(&want.path, why);
        }
        _ => {}
    }
    want
}

fn read_dataset(object: &Object<'_>, reader: &mut Reader<'_>) -> Option<String> {
    let at = object.get("dataset")?;
    let name = reader.read_text(&at)?;
    let is_right = (1..=MAX_DATASET_BYTES).contains(&name.len())
        && !name.contains(|c: char| c == '/' || c.is_control());
    if !is_right {
        let message = format!(
            "bad dataset {}: it has 1 to {MAX_DATASET_BYTES} bytes, no `/` and no control characters",
            quote(name)
        );
        reader.add_fault(&at.path, message);
    }
    Some(name.to_owned())
}

/// The longest name of a dataset in bytes. The store has the same limit.
const MAX_DATASET_BYTES: usize = 200;

fn read_key(object: &Object<'_>, fields: &[RowField], reader: &mut Reader<'_>) -> Vec<String> {
    let mut key: Vec<String> = Vec::new();
    let Some(at) = object.get("key") else {
        return key;
    };
    let names = reader.read_list(&at);
    if at.value.as_array().is_some_and(Vec::is_empty) {
        let why = "a key is required: name the fields that identify a row";
        reader.add_fault(&at.path, why);
    }
    for at in names {
        let Some(name) = reader.read_text(&at) else {
            continue;
        };
        match fields.iter().find(|one| one.field.name == name) {
            Some(one) if one.field.multiple => {
                reader.add_fault(&at.path, "a list cannot be part of a key");
            }
            Some(_) => key.push(name.to_owned()),
            None => {
                let why = format!("unknown field {} of the rows", quote(name));
                reader.add_fault(&at.path, why);
            }
        }
    }
    key
}

fn read_row_field(
    at: &ValueAtPath<'_>,
    reader: &mut Reader<'_>,
    selectors: &mut Selectors,
) -> Option<RowField> {
    let object = reader.read_object(at, ROW_FIELD_KEYS)?;
    let name = read_name(&object, is_field_name, FIELD_NAME, reader);
    reader.read_text_of(&object, "description");
    let from = read_origin(&object, reader);
    let multiple = reader.read_boolean_of(&object, "multiple").unwrap_or(false);
    let of_record = reader
        .read_text_of(&object, "record_field")
        .map(str::to_owned);
    if of_record.is_some() && from != "record" {
        let why = "only with `from` set to `record`";
        reader.add_fault(&format!("{}.record_field", at.path), why);
    }
    let has_chains = object.get("processors").is_some() || object.get("alternatives").is_some();
    let alternatives = match from {
        "record" if has_chains => {
            reader.add_fault(
                &at.path,
                "the record's value is not processed: remove the processors",
            );
            Vec::new()
        }
        "record" => Vec::new(),
        _ => read_chains(at, &object, reader, selectors),
    };
    let name = name?;
    let origin = match from {
        "page" => Origin::Page,
        "url" => Origin::Url,
        "record" => Origin::Record(of_record.unwrap_or_else(|| name.clone())),
        _ => Origin::Row,
    };
    let field = Field {
        name,
        multiple,
        continues: false,
        keep_empty: false,
        alternatives,
    };
    Some(RowField { origin, field })
}

fn read_origin<'v>(object: &Object<'v>, reader: &mut Reader<'_>) -> &'v str {
    let Some(at) = object.get("from") else {
        return "row";
    };
    let Some(name) = reader.read_text(&at) else {
        return "row";
    };
    if !ORIGINS.iter().any(|(known, _)| *known == name) {
        let names: Vec<String> = ORIGINS.iter().map(|(name, _)| quote(name)).collect();
        let message = format!("{} is none of {}", quote(name), names.join(", "));
        reader.add_fault(&at.path, message);
    }
    name
}
