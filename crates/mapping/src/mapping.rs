//! A checked mapping, and how it is read from JSON.

use serde_json::{Map, Value};
use webfill_document::ignores_context;

use crate::catalogue;
use crate::fault::quote;
use crate::keys::{
    FIELD_KEYS, FIELD_NAME, MAPPING_KEYS, MAPPING_NAME, STEP_KEYS, URL_PARSER_KEYS,
    URL_PATTERN_KEYS,
};
use crate::parameters::Parameters;
use crate::processors::select::XPATH;
use crate::reader::{Object, Reader, ValueAtPath};
use crate::request_headers::{REQUEST_HEADERS, normalize_request_header};
use crate::rows::{RowRule, read_rows};
use crate::run::Processor;
use crate::selectors::Selectors;
use crate::url_pattern::UrlPattern;

/// A mapping: which links to follow, and which fields to extract.
pub(crate) struct Mapping {
    pub(crate) name: String,
    /// See [`crate::Extraction::mapping_version`].
    pub(crate) version: String,
    pub(crate) description: Option<String>,
    pub(crate) lane: Option<PageLane>,
    /// Headers that are sent with requests for the mapping's pages. Their names are in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// The fields that a page's record is recognised by.
    pub(crate) match_fields: Vec<String>,
    pub(crate) url_parsers: Vec<Chain>,
    pub(crate) fields: Vec<Field>,
    pub(crate) rows: Vec<RowRule>,
}

/// How the pages of a mapping are to be read, whatever the setting of the crawl.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageLane {
    /// The pages are read as the server sends them, without a browser.
    Http,
    /// The pages are read in a browser, after their scripts have run.
    Browser,
}

impl PageLane {
    /// The names of the lanes in mapping files.
    pub(crate) const NAMES: [(&'static str, PageLane); 2] =
        [("http", PageLane::Http), ("browser", PageLane::Browser)];
}

/// A field of a mapping. Its value comes from the first alternative chain that yields one.
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) multiple: bool,
    /// Whether the field's list continues on further pages of the mapping.
    pub(crate) continues: bool,
    /// Whether empty values keep their positions in the list.
    pub(crate) keep_empty: bool,
    pub(crate) alternatives: Vec<Chain>,
}

/// A chain of processors: each gets the values of the previous one.
pub(crate) struct Chain {
    pub(crate) description: Option<String>,
    pub(crate) steps: Vec<Step>,
}

/// A processor with its parameters.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) parameters: Map<String, Value>,
    pub(crate) processor: Box<dyn Processor>,
}

const MAX_NAME_BYTES: usize = 100;

/// Reads one mapping with its URL patterns. Errors are reported to `reader`. Returns `None` if the value is not an
/// object or has no name.
pub(crate) fn read_mapping(
    at: &ValueAtPath<'_>,
    reader: &mut Reader<'_>,
    selectors: &mut Selectors,
) -> Option<(Mapping, Vec<UrlPattern>)> {
    let object = reader.read_object(at, MAPPING_KEYS)?;
    let name = read_name(&object, is_mapping_name, MAPPING_NAME, reader);
    reader.read_text_of(&object, "$schema");
    let description = reader
        .read_text_of(&object, "description")
        .map(str::to_owned);
    let lane = read_lane(&object, reader);
    let url_patterns = read_url_patterns(&object, reader);
    let headers = read_headers(&object, reader);
    let url_parsers = reader
        .read_list_of(&object, "url_parsers")
        .iter()
        .filter_map(|parser| read_url_parser(parser, reader, selectors))
        .collect();
    let fields = read_fields(&object, reader, selectors);
    let rows = read_rows(&object, reader, selectors);
    let match_fields = read_match(&object, &fields, reader);
    let mapping = Mapping {
        name: name?,
        version: reader.version(),
        description,
        lane,
        headers,
        match_fields,
        url_parsers,
        fields,
        rows,
    };
    Some((mapping, url_patterns))
}

fn read_lane(object: &Object<'_>, reader: &mut Reader<'_>) -> Option<PageLane> {
    let text = reader.read_text_of(object, "lane")?;
    let named = PageLane::NAMES.iter().find(|(name, _)| *name == text);
    if named.is_none() {
        let path = object.get("lane").map_or_else(String::new, |at| at.path);
        let message = format!("unknown lane {}: expected `http` or `browser`", quote(text));
        reader.add_fault(&path, message);
    }
    named.map(|(_, lane)| *lane)
}

/// Reads `match`: the fields that a page's record is recognised by.
fn read_match(object: &Object<'_>, fields: &[Field], reader: &mut Reader<'_>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for at in reader.read_list_of(object, "match") {
        let Some(name) = reader.read_text(&at) else {
            continue;
        };
        match fields.iter().any(|field| field.name == name) {
            true => names.push(name.to_owned()),
            false => {
                let why = format!("the mapping has no field {}", quote(name));
                reader.add_fault(&at.path, why);
            }
        }
    }
    names
}

pub(crate) fn read_name(
    object: &Object<'_>,
    is_right: fn(&str) -> bool,
    form: &str,
    reader: &mut Reader<'_>,
) -> Option<String> {
    let at = object.get("name")?;
    let name = reader.read_text(&at)?;
    if name.len() > MAX_NAME_BYTES {
        reader.add_fault(
            &at.path,
            format!("a name has at most {MAX_NAME_BYTES} bytes"),
        );
    } else if !is_right(name) {
        reader.add_fault(
            &at.path,
            format!("bad name {}: it must match {form}", quote(name)),
        );
    }
    Some(name.to_owned())
}

pub(crate) fn is_field_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

fn is_mapping_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

fn read_url_patterns(object: &Object<'_>, reader: &mut Reader<'_>) -> Vec<UrlPattern> {
    let Some(at) = object.get("url_patterns") else {
        return Vec::new();
    };
    let entries = reader.read_list(&at);
    if at.value.as_array().is_some_and(Vec::is_empty) {
        reader.add_fault(&at.path, "a mapping without patterns never matches");
    }
    entries
        .iter()
        .filter_map(|entry| read_url_pattern(entry, reader))
        .collect()
}

fn read_headers(object: &Object<'_>, reader: &mut Reader<'_>) -> Vec<(String, String)> {
    let Some(at) = object.get("headers") else {
        return Vec::new();
    };
    let Some(object) = reader.read_object(&at, REQUEST_HEADERS) else {
        return Vec::new();
    };
    let mut headers = Vec::new();
    for key in REQUEST_HEADERS {
        let Some(value) = reader.read_text_of(&object, key.name) else {
            continue;
        };
        match normalize_request_header(key.name, value) {
            Ok(header) => headers.push(header),
            Err(why) => reader.add_fault(&format!("{}.{}", at.path, key.name), why),
        }
    }
    headers
}

fn read_url_pattern(at: &ValueAtPath<'_>, reader: &mut Reader<'_>) -> Option<UrlPattern> {
    let object = reader.read_object(at, URL_PATTERN_KEYS)?;
    reader.read_text_of(&object, "description");
    let kind = reader.read_text_of(&object, "type");
    let pattern = reader.read_text_of(&object, "pattern");
    let (kind, pattern) = (kind?, pattern?);
    match UrlPattern::compile(kind, pattern) {
        Ok(pattern) => Some(pattern),
        Err(fault) => {
            reader.add_fault(&format!("{}.{}", at.path, fault.key), fault.message);
            None
        }
    }
}

pub(crate) fn read_url_parser(
    at: &ValueAtPath<'_>,
    reader: &mut Reader<'_>,
    selectors: &mut Selectors,
) -> Option<Chain> {
    let object = reader.read_object(at, URL_PARSER_KEYS)?;
    let description = reader
        .read_text_of(&object, "description")
        .map(str::to_owned);
    let processors = object.get("processors")?;
    Some(Chain {
        description,
        ..read_chain(&processors, reader, selectors)
    })
}

fn read_fields(
    object: &Object<'_>,
    reader: &mut Reader<'_>,
    selectors: &mut Selectors,
) -> Vec<Field> {
    let mut fields: Vec<Field> = Vec::new();
    for at in reader.read_list_of(object, "fields") {
        let Some(field) = read_field(&at, reader, selectors) else {
            continue;
        };
        if fields.iter().any(|known| known.name == field.name) {
            let message = format!("duplicate field {}", quote(&field.name));
            reader.add_fault(&format!("{}.name", at.path), message);
        }
        fields.push(field);
    }
    fields
}

fn read_field(
    at: &ValueAtPath<'_>,
    reader: &mut Reader<'_>,
    selectors: &mut Selectors,
) -> Option<Field> {
    let object = reader.read_object(at, FIELD_KEYS)?;
    let name = read_name(&object, is_field_name, FIELD_NAME, reader);
    reader.read_text_of(&object, "description");
    let multiple = reader.read_boolean_of(&object, "multiple").unwrap_or(false);
    let continues = reader
        .read_boolean_of(&object, "continues")
        .unwrap_or(false);
    if continues && !multiple {
        let path = format!("{}.continues", at.path);
        reader.add_fault(
            &path,
            "only a list can continue over several pages: set `multiple`",
        );
    }
    let keep_empty = reader
        .read_boolean_of(&object, "keep_empty")
        .unwrap_or(false);
    if keep_empty && !multiple {
        let path = format!("{}.keep_empty", at.path);
        reader.add_fault(&path, "only a list has positions to keep: set `multiple`");
    }
    let alternatives = read_chains(at, &object, reader, selectors);
    Some(Field {
        name: name?,
        multiple,
        continues,
        keep_empty,
        alternatives,
    })
}

/// Reads the chains of a field, from `processors` or `alternatives`.
pub(crate) fn read_chains(
    at: &ValueAtPath<'_>,
    object: &Object<'_>,
    reader: &mut Reader<'_>,
    selectors: &mut Selectors,
) -> Vec<Chain> {
    match (object.get("processors"), object.get("alternatives")) {
        (Some(processors), None) => vec![read_chain(&processors, reader, selectors)],
        (None, Some(alternatives)) => read_alternatives(&alternatives, reader, selectors),
        _ => {
            reader.add_fault(
                &at.path,
                "a field needs either `processors` or `alternatives`",
            );
            Vec::new()
        }
    }
}

fn read_alternatives(
    at: &ValueAtPath<'_>,
    reader: &mut Reader<'_>,
    selectors: &mut Selectors,
) -> Vec<Chain> {
    let chains = reader.read_list(at);
    if at.value.as_array().is_some_and(Vec::is_empty) {
        reader.add_fault(&at.path, "the list of alternatives is empty");
    }
    chains
        .iter()
        .map(|chain| read_chain(chain, reader, selectors))
        .collect()
}

pub(crate) fn read_chain(
    at: &ValueAtPath<'_>,
    reader: &mut Reader<'_>,
    selectors: &mut Selectors,
) -> Chain {
    let entries = reader.read_list(at);
    if at.value.as_array().is_some_and(Vec::is_empty) {
        reader.add_fault(&at.path, "the list of processors is empty");
    }
    let mut steps: Vec<Step> = Vec::with_capacity(entries.len());
    for entry in entries {
        let Some(step) = read_step(&entry, reader, selectors) else {
            continue;
        };
        let is_within = !steps.is_empty() && steps.iter().all(|step| step.processor.sees_markup());
        if let Some(expression) = step.root_xpath().filter(|_| is_within) {
            let warning = format!(
                "{} searches the whole page, not the elements found before: begin with `.//`",
                quote(expression)
            );
            reader.warn(&format!("{}.parameters.expression", entry.path), warning);
        }
        steps.push(step);
    }
    Chain {
        description: None,
        steps,
    }
}

impl Step {
    /// The XPath of this step, if it searches from the root of the page even after other steps have selected elements.
    pub(crate) fn root_xpath(&self) -> Option<&str> {
        let expression = self.parameters.get("expression")?.as_str()?;
        (self.name == XPATH.name && ignores_context(expression)).then_some(expression)
    }
}

fn read_step(
    at: &ValueAtPath<'_>,
    reader: &mut Reader<'_>,
    selectors: &mut Selectors,
) -> Option<Step> {
    let object = reader.read_object(at, STEP_KEYS)?;
    let kind = object.get("type")?;
    let entry = match catalogue::find(reader.read_text(&kind)?) {
        Ok(entry) => entry,
        Err(message) => {
            reader.add_fault(&kind.path, message);
            return None;
        }
    };
    let none = Map::new();
    let (given, path) = match object.get("parameters") {
        None => (&none, at.path.clone()),
        Some(ValueAtPath {
            value: Value::Object(members),
            path,
        }) => (members, path),
        Some(other) => {
            reader.report_wrong_type(&other, "an object");
            return None;
        }
    };
    let parameters = Parameters::read(entry, given, &path, reader)?;
    let built = (entry.build)(&parameters, selectors);
    for (parameter, message) in selectors.take_warnings() {
        reader.warn(&format!("{path}.{parameter}"), message);
    }
    match built {
        Ok(processor) => Some(Step {
            name: entry.name,
            parameters: given.clone(),
            processor,
        }),
        Err(refusals) => {
            for refusal in refusals {
                let place = match refusal.parameter.is_empty() {
                    true => path.clone(),
                    false => format!("{path}.{}", refusal.parameter),
                };
                reader.add_fault(&place, refusal.message);
            }
            None
        }
    }
}
