//! The columns of an export in CSV or Parquet: their names, the kinds of their values, and where a row has the values.

use serde_json::{Number, Value};
use webfill_store::split_record_key;
use webfill_values::Decimal;

use crate::cli::ExportWhat;

/// A column of an export.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    pub name: String,
    pub of: ColumnSource,
    pub kind: Kind,
    /// Whether all values of the column are lists that come from pages.
    pub is_list: bool,
    /// The number of decimals when numbers are written as text; `None`: as they are.
    pub decimals: Option<usize>,
}

/// The part of a row that a column shows.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnSource {
    /// A key of the stored document.
    Member(&'static str),
    /// The id of a record.
    RecordId,
    /// A field of a record.
    Field(String),
    /// The URL of the page that the value of this field comes from.
    Source(String),
    /// The URLs that were supplied with a record.
    Urls,
    /// The id of the parent: the record that a row's page was fetched for.
    ParentId,
    /// A field of the parent: the record that a row's page was fetched for.
    ParentField(String),
    /// The time since which a row is gone from its list.
    GoneAt,
}

/// The kind of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Integer,
    /// A 64-bit integer that a double cannot represent exactly.
    LargeInteger,
    Number,
    /// Numbers, including some that fit neither a 64-bit integer nor a double. They are stored as the text of their
    /// digits.
    Digits,
    /// A text of digits that are too many for a JSON number. With numbers in the same column it counts as a number,
    /// with texts as a text.
    LongDigits,
    Truth,
    Text,
    /// A list of texts.
    Texts,
    /// A time in ISO 8601, in milliseconds.
    Time,
    /// Any JSON value.
    Json,
}

use Kind::{Integer, Json, Text, Texts, Time};

/// The columns of exported pages, with the kinds of their values. Other programs rely on these names.
pub const PAGES: [(&str, Kind); 31] = [
    ("_id", Text),
    ("app_id", Text),
    ("crawl_id", Text),
    ("url", Text),
    ("final_url", Text),
    ("site", Text),
    ("depth", Integer),
    ("parent", Text),
    ("outcome", Text),
    ("status_code", Integer),
    ("mapping", Text),
    ("mapping_version", Text),
    ("fields", Json),
    ("links", Texts),
    ("content_type", Text),
    ("bytes", Integer),
    ("content_hash", Text),
    ("started_at", Time),
    ("elapsed_ms", Integer),
    ("attempts", Integer),
    ("worker", Text),
    ("attrs", Json),
    ("tries", Json),
    ("headers", Json),
    ("document", Json),
    ("body", Text),
    ("template", Text),
    ("records", Texts),
    ("alternatives", Json),
    ("rows", Integer),
    ("row_counts", Json),
];

/// The columns of exported changes, with the kinds of their values.
pub const CHANGES: [(&str, Kind); 12] = [
    ("number", Integer),
    ("app_id", Text),
    ("crawl_id", Text),
    ("url", Text),
    ("page", Text),
    ("site", Text),
    ("kind", Text),
    ("at", Time),
    ("mapping", Text),
    ("old", Json),
    ("new", Json),
    ("difference", Text),
];

/// Further columns of records. They come after the columns of the fields.
pub const BEHIND_FIELDS: [(&str, Kind); 3] =
    [("missing", Texts), ("resolved_at", Time), ("dataset", Text)];

/// The prefix of columns with the sources of values, and the prefix of a field whose name is used by another column.
pub const SOURCE: &str = "source.";
pub const FIELDS: &str = "fields.";

/// The prefix of columns with fields of the parent record.
pub const PARENT: &str = "parent.";

/// The column with the time since which a row is gone.
const GONE_AT: &str = "gone_at";

/// A field that occurs in any exported record, as a value or as missing.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    pub name: String,
    /// A kind that can hold all values of the field; `None` if no record has a value.
    pub kind: Option<Kind>,
    /// Whether any page has given a list as the value.
    pub has_lists: bool,
    /// The number of decimals when numbers are written as text; `None`: as they are.
    pub decimals: Option<usize>,
}

/// The columns of pages or of changes, which are the same in every export.
pub fn fixed_columns(what: ExportWhat) -> Vec<Column> {
    let columns: &[(&str, Kind)] = match what {
        ExportWhat::Pages => &PAGES,
        ExportWhat::Changes => &CHANGES,
        ExportWhat::Records => &[],
    };
    columns.iter().map(member_column).collect()
}

fn member_column((name, kind): &(&'static str, Kind)) -> Column {
    Column {
        name: (*name).to_owned(),
        of: ColumnSource::Member(name),
        kind: *kind,
        is_list: false,
        decimals: None,
    }
}

/// The columns of records. A field with the name of another column gets a prefix.
pub fn record_columns(
    fields: &[Field],
    with_sources: bool,
    with_gone: bool,
    parent: Option<&[Field]>,
) -> Vec<Column> {
    let column = |name: &str, of, kind| Column {
        name: name.to_owned(),
        of,
        kind,
        is_list: false,
        decimals: None,
    };
    let mut columns = vec![column("id", ColumnSource::RecordId, Text)];
    let is_taken = |name: &str| {
        let is_behind = BEHIND_FIELDS.iter().any(|(behind, _)| *behind == name);
        let is_of_sources = with_sources && (name == "urls" || name.starts_with(SOURCE));
        let is_of_parent = parent.is_some() && (name == "parent" || name.starts_with(PARENT));
        let is_of_gone = with_gone && name == GONE_AT;
        name == "id"
            || is_behind
            || is_of_sources
            || is_of_parent
            || is_of_gone
            || name.starts_with(FIELDS)
    };
    for field in fields {
        let name = match is_taken(&field.name) {
            true => format!("{FIELDS}{}", field.name),
            false => field.name.clone(),
        };
        let kind = field.kind.unwrap_or(Text);
        columns.push(Column {
            is_list: field.has_lists && kind == Texts,
            decimals: field.decimals,
            ..column(&name, ColumnSource::Field(field.name.clone()), kind)
        });
    }
    columns.extend(BEHIND_FIELDS.iter().map(member_column));
    if let Some(parent) = parent {
        columns.push(column("parent", ColumnSource::ParentId, Text));
        for Field { name, kind, .. } in parent {
            let of = ColumnSource::ParentField(name.clone());
            columns.push(column(&format!("{PARENT}{name}"), of, kind.unwrap_or(Text)));
        }
    }
    if with_gone {
        columns.push(column(GONE_AT, ColumnSource::GoneAt, Time));
    }
    if with_sources {
        columns.push(column("urls", ColumnSource::Urls, Texts));
        for Field { name, .. } in fields {
            let source = format!("{SOURCE}{name}");
            columns.push(column(&source, ColumnSource::Source(name.clone()), Text));
        }
    }
    columns
}

impl Column {
    /// The value of the column in a row; null if there is none.
    pub fn value(&self, row: &Value) -> Value {
        match &self.of {
            ColumnSource::Member(name) => row[name].clone(),
            ColumnSource::RecordId => row["record_id"].clone(),
            ColumnSource::Field(name) => row["fields"][name].clone(),
            ColumnSource::Source(name) => row["sources"][name]["url"].clone(),
            ColumnSource::Urls => Value::from(urls_of_record(row)),
            ColumnSource::ParentId => match row["row"]["parent"].as_str() {
                Some(key) => split_record_key(key).1.into(),
                None => Value::Null,
            },
            ColumnSource::ParentField(name) => row["parent_fields"][name].clone(),
            ColumnSource::GoneAt => row["row"]["gone"]["at"].clone(),
        }
    }
}

/// The URLs that were supplied with a stored record. If it has none, such as a row of a list without links, these are
/// the URLs of the pages that have filled it.
pub fn urls_of_record(record: &Value) -> Vec<String> {
    let kept = record["urls"].as_array().into_iter().flatten();
    let mut urls: Vec<String> = kept.filter_map(Value::as_str).map(str::to_owned).collect();
    if urls.is_empty() {
        let sources = record["sources"].as_object().into_iter().flatten();
        let filling = sources.filter_map(|(_, source)| source["url"].as_str());
        for url in filling {
            if !urls.iter().any(|known| known == url) {
                urls.push(url.to_owned());
            }
        }
    }
    urls
}

/// Doubles represent every integer up to this one.
const MAX_EXACT_INTEGER: u64 = 1 << 53;

/// Whether a text is a number with too many digits for a JSON number.
pub fn is_long_number(text: &str) -> bool {
    let number = (text.len() > 15)
        .then(|| Decimal::from_plain_text(text))
        .flatten();
    number.is_some_and(|number| number.plain() == text && number.to_number(false).is_none())
}

impl Kind {
    /// The kind of a value; null has none.
    pub fn of_value(value: &Value) -> Option<Kind> {
        Some(match value {
            Value::Null => return None,
            Value::Bool(_) => Kind::Truth,
            Value::Number(number) => Kind::of_number(number),
            Value::String(text) if is_long_number(text) => Kind::LongDigits,
            Value::String(_) => Kind::Text,
            Value::Array(items) if items.iter().all(Value::is_string) => Kind::Texts,
            Value::Array(_) | Value::Object(_) => Kind::Json,
        })
    }

    fn of_number(number: &Number) -> Kind {
        match (number.as_i64(), number.is_u64()) {
            (Some(integer), _) if integer.unsigned_abs() <= MAX_EXACT_INTEGER => Kind::Integer,
            (Some(_), _) => Kind::LargeInteger,
            (None, true) => Kind::Digits,
            (None, false) => Kind::Number,
        }
    }

    pub fn is_of_numbers(self) -> bool {
        use Kind::{Digits, Integer, LargeInteger, Number};
        matches!(self, Integer | LargeInteger | Number | Digits)
    }

    /// The kind that can hold values of both kinds.
    pub fn common_kind(self, other: Kind) -> Kind {
        match (self, other) {
            (one, other) if one == other => one,
            (Kind::Integer, Kind::Number) | (Kind::Number, Kind::Integer) => Kind::Number,
            (Kind::Integer, Kind::LargeInteger) | (Kind::LargeInteger, Kind::Integer) => {
                Kind::LargeInteger
            }
            // No double can hold all digits of the values of both kinds.
            (one, other) if one.is_of_numbers() && other.is_of_numbers() => Kind::Digits,
            (Kind::LongDigits, other) | (other, Kind::LongDigits) if other.is_of_numbers() => {
                Kind::Digits
            }
            (Kind::LongDigits, Kind::Text) | (Kind::Text, Kind::LongDigits) => Kind::Text,
            _ => Kind::Json,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_kind_of_a_column_can_hold_all_its_values() {
        let kind = |values: &[Value]| {
            values
                .iter()
                .filter_map(Kind::of_value)
                .reduce(Kind::common_kind)
        };
        assert_eq!(kind(&[json!(null)]), None);
        assert_eq!(
            kind(&[json!(1), json!(null), json!(-2)]),
            Some(Kind::Integer)
        );
        assert_eq!(kind(&[json!(1), json!(1.5)]), Some(Kind::Number));
        assert_eq!(kind(&[json!(u64::MAX)]), Some(Kind::Digits));
        let large = json!((1_i64 << 53) + 1);
        assert_eq!(kind(std::slice::from_ref(&large)), Some(Kind::LargeInteger));
        assert_eq!(kind(&[large.clone(), json!(1)]), Some(Kind::LargeInteger));
        assert_eq!(kind(&[json!(1.5), large.clone()]), Some(Kind::Digits));
        assert_eq!(
            kind(&[large, json!(u64::MAX), json!(1)]),
            Some(Kind::Digits)
        );
        assert_eq!(kind(&[json!(1_i64 << 53), json!(1.5)]), Some(Kind::Number));
        assert_eq!(kind(&[json!("a"), json!("1")]), Some(Kind::Text));
        assert_eq!(kind(&[json!([]), json!(["a"])]), Some(Kind::Texts));
        assert_eq!(kind(&[json!("a"), json!(["a"])]), Some(Kind::Json));
        assert_eq!(kind(&[json!([1])]), Some(Kind::Json));
        assert_eq!(kind(&[json!(true), json!(1)]), Some(Kind::Json));
    }

    #[test]
    fn no_two_columns_have_the_same_name() {
        let names = [
            "id",
            "missing",
            "urls",
            "source.a",
            "a",
            "fields.id",
            "dataset",
            "parent",
            "parent.a",
        ];
        let fields: Vec<Field> = names
            .map(|name| Field {
                name: name.to_owned(),
                kind: None,
                has_lists: false,
                decimals: None,
            })
            .into();
        let columns = record_columns(&fields, true, false, Some(&fields));
        let names: std::collections::HashSet<&str> =
            columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names.len(), columns.len());
    }

    #[test]
    fn a_record_without_urls_gets_those_of_the_pages_that_filled_it() {
        let record =
            json!({"sources": {"a": {"url": "u1"}, "b": {"url": "u2"}, "c": {"url": "u1"}}});
        assert_eq!(urls_of_record(&record), ["u1", "u2"]);
        let record = json!({"urls": ["u3"], "sources": {"a": {"url": "u1"}}});
        assert_eq!(urls_of_record(&record), ["u3"]);
    }
}
