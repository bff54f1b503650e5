//! The values of a column, collected until they are written as one group.

use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedColumnWriter;
use serde_json::Value;
use webfill_store::parse_iso_time;

use crate::export::columns::Kind;

/// The values of a column, without missing ones. The levels (Parquet's marks for missing values) show where values are
/// missing.
pub(super) enum Cells {
    Integers(Levels, Vec<i64>),
    Times(Levels, Vec<i64>),
    Numbers(Levels, Vec<f64>),
    Truths(Levels, Vec<bool>),
    Texts(Levels, Vec<ByteArray>),
    Json(Levels, Vec<ByteArray>),
    /// Numbers that are stored as texts of their digits.
    Digits(Levels, Vec<ByteArray>),
    Lists(Levels, Vec<ByteArray>),
}

/// Parquet's definition levels, which show whether each value is missing. In a column of lists, also its repetition
/// levels, which show whether a value continues the list of the previous value.
#[derive(Default)]
pub(super) struct Levels {
    defined: Vec<i16>,
    /// The repetition levels, only in a column of lists.
    repeated: Vec<i16>,
}

const MISSING: i16 = 0;
const THERE: i16 = 1;
/// The definition levels of an empty list, and of an item.
const EMPTY: i16 = 1;
const ITEM: i16 = 2;

impl Cells {
    pub(super) fn new(kind: Kind) -> Cells {
        let levels = Levels::default();
        match kind {
            Kind::Integer | Kind::LargeInteger => Cells::Integers(levels, Vec::new()),
            Kind::Time => Cells::Times(levels, Vec::new()),
            Kind::Number => Cells::Numbers(levels, Vec::new()),
            Kind::Truth => Cells::Truths(levels, Vec::new()),
            Kind::Text | Kind::LongDigits => Cells::Texts(levels, Vec::new()),
            Kind::Json => Cells::Json(levels, Vec::new()),
            Kind::Digits => Cells::Digits(levels, Vec::new()),
            Kind::Texts => Cells::Lists(levels, Vec::new()),
        }
    }

    /// Adds a value and returns its approximate size in bytes. If the column cannot hold the value's kind, the error
    /// describes that kind.
    pub(super) fn push(&mut self, value: &Value) -> Result<usize, String> {
        let other = || String::from(describe_kind(value));
        let is_of_digits = matches!(self, Cells::Digits(..));
        match self {
            Cells::Integers(levels, kept) => {
                levels.push(value, kept, |value| value.as_i64().ok_or_else(other))
            }
            Cells::Times(levels, kept) => levels.push(value, kept, |value| {
                value.as_str().and_then(parse_iso_time).ok_or_else(other)
            }),
            Cells::Numbers(levels, kept) => {
                levels.push(value, kept, |value| value.as_f64().ok_or_else(other))
            }
            Cells::Truths(levels, kept) => {
                levels.push(value, kept, |value| value.as_bool().ok_or_else(other))
            }
            Cells::Texts(levels, kept) => {
                let length = value.as_str().map_or(0, str::len);
                let text = |value: &Value| value.as_str().map(byte_array).ok_or_else(other);
                levels.push(value, kept, text).map(|beside| beside + length)
            }
            Cells::Json(levels, kept) | Cells::Digits(levels, kept) => {
                let text = match (value, is_of_digits) {
                    (Value::String(digits), true) => digits.clone(),
                    (other, _) => other.to_string(),
                };
                let length = text.len();
                let taken = levels.push(value, kept, |_| Ok(byte_array(&text)));
                taken.map(|beside| beside + length)
            }
            Cells::Lists(levels, kept) => levels.push_list(value, kept).ok_or_else(other),
        }
    }

    /// Writes the collected values to the file, and clears them.
    pub(super) fn write(&mut self, mut to: SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        match self {
            Cells::Integers(levels, kept) | Cells::Times(levels, kept) => {
                levels.write::<Int64Type>(kept, &mut to)?;
            }
            Cells::Numbers(levels, kept) => levels.write::<DoubleType>(kept, &mut to)?,
            Cells::Truths(levels, kept) => levels.write::<BoolType>(kept, &mut to)?,
            Cells::Texts(levels, kept)
            | Cells::Json(levels, kept)
            | Cells::Digits(levels, kept)
            | Cells::Lists(levels, kept) => {
                levels.write::<ByteArrayType>(kept, &mut to)?;
            }
        }
        to.close()
    }
}

impl Levels {
    /// The approximate size of a value without its text, in bytes.
    const BESIDE: usize = 16;

    fn push<T>(
        &mut self,
        value: &Value,
        kept: &mut Vec<T>,
        read: impl FnOnce(&Value) -> Result<T, String>,
    ) -> Result<usize, String> {
        match value {
            Value::Null => self.defined.push(MISSING),
            value => {
                kept.push(read(value)?);
                self.defined.push(THERE);
            }
        }
        Ok(Levels::BESIDE)
    }

    /// Adds a list of texts; `None` if the value is not a list of texts.
    fn push_list(&mut self, value: &Value, kept: &mut Vec<ByteArray>) -> Option<usize> {
        let items = match value {
            Value::Null => {
                self.defined.push(MISSING);
                self.repeated.push(0);
                return Some(Levels::BESIDE);
            }
            value => value.as_array()?,
        };
        let texts: Vec<&str> = items.iter().map(Value::as_str).collect::<Option<_>>()?;
        if texts.is_empty() {
            self.defined.push(EMPTY);
            self.repeated.push(0);
        }
        for (number, text) in texts.iter().enumerate() {
            self.defined.push(ITEM);
            self.repeated.push(i16::from(number > 0));
            kept.push(byte_array(text));
        }
        let length: usize = texts.iter().map(|text| text.len() + Levels::BESIDE).sum();
        Some(length + Levels::BESIDE)
    }

    fn write<T: DataType>(
        &mut self,
        kept: &mut Vec<T::T>,
        to: &mut SerializedColumnWriter<'_>,
    ) -> Result<(), ParquetError> {
        let repeated = (!self.repeated.is_empty()).then_some(self.repeated.as_slice());
        to.typed::<T>()
            .write_batch(kept.as_slice(), Some(&self.defined), repeated)?;
        kept.clear();
        self.defined.clear();
        self.repeated.clear();
        Ok(())
    }
}

fn byte_array(text: &str) -> ByteArray {
    ByteArray::from(text.as_bytes().to_vec())
}

fn describe_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "another number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
