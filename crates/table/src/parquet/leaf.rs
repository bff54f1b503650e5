//! Converts values of a Parquet column from their stored form to cells, and from texts to the stored form.

use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as Physical};
use parquet::schema::types::{ColumnDescriptor, Type};
use serde_json::Value;
use webfill_values::Decimal;

use super::batch::Single;
use super::times;
use crate::cell::Cell;

/// What the stored values of a column mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Meaning {
    Bool,
    /// An integer, with its number of bits, and whether it is signed.
    Integer(u32, bool),
    Float,
    Double,
    /// A decimal number, with the number of digits after the point, and of all digits.
    Decimal(i32, i32),
    Text,
    Date,
    Clock(TimeUnit),
    Time(TimeUnit, bool),
    OldTime,
    Uuid,
    /// Values that are only copied, neither read nor filled in.
    Opaque,
}

/// A column that holds single values, or lists of them.
#[derive(Debug, Clone)]
pub(super) struct Leaf {
    pub(super) meaning: Meaning,
    physical: Physical,
    /// The length of a value in bytes, if all values have the same length.
    length: i32,
    /// The definition level (a number stored with each value) that means that a value is present.
    pub(super) present: i16,
    /// The definition level that means that a list has an entry; `None` if the column holds no lists.
    pub(super) entry: Option<i16>,
}

impl Leaf {
    /// The description of a column; `None` if it holds objects, maps or lists of lists. `top` is the column as a whole,
    /// `leaf` its stored part.
    pub(super) fn from_column(top: &Type, leaf: &ColumnDescriptor) -> Option<Leaf> {
        let mut entry = None;
        let mut level = 0;
        let mut node = top;
        loop {
            let info = node.get_basic_info();
            let repetition = info.has_repetition().then(|| info.repetition());
            match repetition {
                Some(parquet::basic::Repetition::OPTIONAL) => level += 1,
                Some(parquet::basic::Repetition::REPEATED) if entry.is_some() => return None,
                Some(parquet::basic::Repetition::REPEATED) => {
                    level += 1;
                    entry = Some(level);
                }
                _ => {}
            }
            if node.is_primitive() {
                break;
            }
            // A group of columns that is not a list is an object, even if it has a single member.
            let is_list = std::ptr::eq(node, top)
                && (info.logical_type_ref() == Some(&LogicalType::List)
                    || info.converted_type() == ConvertedType::LIST);
            let is_entry = repetition == Some(parquet::basic::Repetition::REPEATED);
            match node.get_fields() {
                [child] if is_list || (is_entry && !std::ptr::eq(node, top)) => node = child,
                _ => return None,
            }
        }
        Some(Leaf {
            meaning: meaning_of_leaf(leaf),
            physical: leaf.physical_type(),
            length: leaf.type_length(),
            present: leaf.max_def_level(),
            entry,
        })
    }

    /// Converts a stored value to a cell.
    pub(super) fn cell(&self, value: Single<'_>) -> Cell {
        let number = |text: String| Some(Cell::Number(text));
        let cell = match (self.meaning, value) {
            (Meaning::Opaque, _) => None,
            (_, Single::Bool(value)) => Some(Cell::Bool(value)),
            (Meaning::Date, Single::Int32(days)) => times::format_date(days).map(Cell::Date),
            (Meaning::Clock(unit), Single::Int32(count)) => {
                times::format_clock(count.into(), unit).map(Cell::Date)
            }
            (Meaning::Clock(unit), Single::Int64(count)) => {
                times::format_clock(count, unit).map(Cell::Date)
            }
            (Meaning::Time(unit, is_utc), Single::Int64(count)) => {
                times::format_time(count, unit, is_utc).map(Cell::Date)
            }
            (Meaning::OldTime, Single::Nanoseconds(count)) => {
                times::format_time(count, TimeUnit::NANOS, false).map(Cell::Date)
            }
            (Meaning::Decimal(scale, _), Single::Int32(value)) => {
                number(format_decimal(value.into(), scale))
            }
            (Meaning::Decimal(scale, _), Single::Int64(value)) => {
                number(format_decimal(value.into(), scale))
            }
            (Meaning::Decimal(scale, _), Single::Bytes(bytes)) => {
                parse_big_endian(bytes).map(|value| Cell::Number(format_decimal(value, scale)))
            }
            (Meaning::Integer(_, false), Single::Int32(value)) => {
                number((value as u32).to_string())
            }
            (Meaning::Integer(_, false), Single::Int64(value)) => {
                number((value as u64).to_string())
            }
            (_, Single::Int32(value)) => number(value.to_string()),
            (_, Single::Int64(value)) => number(value.to_string()),
            (_, Single::Float(value)) => number(value.to_string()),
            (_, Single::Double(value)) => number(value.to_string()),
            (Meaning::Uuid, Single::Bytes(bytes)) => Some(Cell::Text(format_uuid(bytes))),
            (_, Single::Bytes(bytes)) => {
                let text = std::str::from_utf8(bytes).ok();
                text.map(|text| Cell::Text(text.to_owned()))
            }
            (_, Single::Nanoseconds(_)) => None,
        };
        cell.unwrap_or(Cell::Other(Value::Null))
    }

    /// Converts a text to the stored form. An error says why the text does not fit.
    pub(super) fn parse(&self, text: &str) -> Result<Owned, String> {
        let text = match self.meaning {
            Meaning::Text => text,
            _ => text.trim(),
        };
        match self.meaning {
            Meaning::Bool => match text {
                "true" => Ok(Owned::Bool(true)),
                "false" => Ok(Owned::Bool(false)),
                _ => Err(String::from("the column holds true or false")),
            },
            Meaning::Integer(bits, is_signed) => {
                self.sized_integer(parse_integer(text, bits, is_signed)?)
            }
            Meaning::Float | Meaning::Double => {
                let number = Decimal::from_plain_text(text).ok_or("the column holds numbers")?;
                let value: f64 = number.plain().parse().map_err(|_| "it is out of range")?;
                match self.meaning {
                    Meaning::Float if (value as f32).is_finite() => Ok(Owned::Float(value as f32)),
                    Meaning::Double if value.is_finite() => Ok(Owned::Double(value)),
                    _ => Err(String::from("it is out of range")),
                }
            }
            Meaning::Decimal(scale, digits) => self.parse_decimal(text, scale, digits),
            Meaning::Text => Ok(Owned::Bytes(text.as_bytes().to_vec())),
            Meaning::Date => {
                let days = times::parse_days(text);
                days.map(Owned::Int32)
                    .ok_or_else(|| String::from("the column holds days"))
            }
            Meaning::Clock(unit) => self.sized_integer(times::parse_clock_count(text, unit)?),
            Meaning::Time(unit, is_utc) => {
                times::parse_time_count(text, unit, is_utc).map(Owned::Int64)
            }
            Meaning::Uuid => {
                let digits: String = text.chars().filter(|c| *c != '-').collect();
                let value = u128::from_str_radix(&digits, 16)
                    .ok()
                    .filter(|_| digits.len() == 32);
                let value = value.ok_or("the column holds UUIDs")?;
                Ok(Owned::Bytes(value.to_be_bytes().to_vec()))
            }
            Meaning::OldTime | Meaning::Opaque => Err(String::from("such columns are not filled")),
        }
    }

    fn sized_integer(&self, value: i64) -> Result<Owned, String> {
        match self.physical {
            Physical::INT32 => Ok(Owned::Int32(value as i32)),
            _ => Ok(Owned::Int64(value)),
        }
    }

    fn parse_decimal(&self, text: &str, scale: i32, digits: i32) -> Result<Owned, String> {
        let number = Decimal::from_plain_text(text).ok_or("the column holds numbers")?;
        let shifted = number
            .times_power_of_ten(scale.into())
            .filter(Decimal::is_integer);
        let shifted =
            shifted.ok_or_else(|| format!("the column has {scale} digits behind the point"))?;
        let value: i128 = shifted.plain().parse().map_err(|_| "it is out of range")?;
        if value.unsigned_abs().to_string().len() as i32 > digits {
            return Err(format!("the column has {digits} digits"));
        }
        match self.physical {
            Physical::INT32 => Ok(Owned::Int32(value as i32)),
            Physical::INT64 => Ok(Owned::Int64(value as i64)),
            Physical::FIXED_LEN_BYTE_ARRAY => {
                let bytes = value.to_be_bytes();
                let length = self.length.max(0) as usize;
                let sign = if value < 0 { 0xff } else { 0 };
                let mut fixed = vec![sign; length.saturating_sub(bytes.len())];
                fixed.extend_from_slice(&bytes[bytes.len().saturating_sub(length)..]);
                Ok(Owned::Bytes(fixed))
            }
            _ => Ok(Owned::Bytes(value.to_be_bytes().to_vec())),
        }
    }
}

/// A value in its stored form, to be written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Owned {
    Bool(bool),
    Int32(i32),
    Int64(i64),
    Float(f32),
    Double(f64),
    Bytes(Vec<u8>),
}

fn meaning_of_leaf(leaf: &ColumnDescriptor) -> Meaning {
    let physical = leaf.physical_type();
    if let Some(logical) = leaf.logical_type_ref() {
        return match logical {
            LogicalType::String | LogicalType::Enum | LogicalType::Json => Meaning::Text,
            LogicalType::Decimal(decimal) => Meaning::Decimal(decimal.scale, decimal.precision),
            LogicalType::Date => Meaning::Date,
            LogicalType::Time(time) => Meaning::Clock(time.unit),
            LogicalType::Timestamp(time) => Meaning::Time(time.unit, time.is_adjusted_to_u_t_c),
            LogicalType::Integer(int) => {
                Meaning::Integer(int.bit_width.unsigned_abs().into(), int.is_signed)
            }
            LogicalType::Uuid => Meaning::Uuid,
            _ => Meaning::Opaque,
        };
    }
    match leaf.converted_type() {
        ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON => Meaning::Text,
        ConvertedType::DECIMAL => Meaning::Decimal(leaf.type_scale(), leaf.type_precision()),
        ConvertedType::DATE => Meaning::Date,
        ConvertedType::TIME_MILLIS => Meaning::Clock(TimeUnit::MILLIS),
        ConvertedType::TIME_MICROS => Meaning::Clock(TimeUnit::MICROS),
        ConvertedType::TIMESTAMP_MILLIS => Meaning::Time(TimeUnit::MILLIS, true),
        ConvertedType::TIMESTAMP_MICROS => Meaning::Time(TimeUnit::MICROS, true),
        ConvertedType::INT_8 => Meaning::Integer(8, true),
        ConvertedType::INT_16 => Meaning::Integer(16, true),
        ConvertedType::INT_32 => Meaning::Integer(32, true),
        ConvertedType::INT_64 => Meaning::Integer(64, true),
        ConvertedType::UINT_8 => Meaning::Integer(8, false),
        ConvertedType::UINT_16 => Meaning::Integer(16, false),
        ConvertedType::UINT_32 => Meaning::Integer(32, false),
        ConvertedType::UINT_64 => Meaning::Integer(64, false),
        ConvertedType::NONE => match physical {
            Physical::BOOLEAN => Meaning::Bool,
            Physical::INT32 => Meaning::Integer(32, true),
            Physical::INT64 => Meaning::Integer(64, true),
            Physical::INT96 => Meaning::OldTime,
            Physical::FLOAT => Meaning::Float,
            Physical::DOUBLE => Meaning::Double,
            // Old programs write texts without declaring their type.
            Physical::BYTE_ARRAY => Meaning::Text,
            Physical::FIXED_LEN_BYTE_ARRAY => Meaning::Opaque,
        },
        _ => Meaning::Opaque,
    }
}

fn parse_integer(text: &str, bits: u32, is_signed: bool) -> Result<i64, String> {
    let number = Decimal::from_plain_text(text).filter(Decimal::is_integer);
    let number = number.ok_or("the column holds whole numbers")?;
    let value: i128 = number.plain().parse().map_err(|_| "it is out of range")?;
    let (least, most) = match is_signed {
        true => (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1),
        false => (0, (1_i128 << bits) - 1),
    };
    match (least..=most).contains(&value) {
        true => Ok(value as i64),
        false => Err(String::from("it is out of the range of the column")),
    }
}

fn parse_big_endian(bytes: &[u8]) -> Option<i128> {
    let sign = bytes.first().is_some_and(|first| first & 0x80 != 0);
    let mut padded = [if sign { 0xff } else { 0 }; 16];
    let start = padded.len().checked_sub(bytes.len())?;
    padded[start..].copy_from_slice(bytes);
    Some(i128::from_be_bytes(padded))
}

/// How many digits after the point are kept even if they are zeros.
const KEPT_DIGITS: usize = 2;

/// Writes a decimal number. Zeros after the second digit of the fraction are dropped, because 5.050 could be read as
/// 5,050 with a point between thousands, and would not match 5.05 on a page.
fn format_decimal(value: i128, scale: i32) -> String {
    let scale = scale.max(0) as usize;
    let digits = format!("{:0>width$}", value.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let significant = fraction.trim_end_matches('0').len();
    let fraction = &fraction[..significant.max(KEPT_DIGITS).min(scale)];
    let sign = if value < 0 { "-" } else { "" };
    match fraction.is_empty() {
        true => format!("{sign}{whole}"),
        false => format!("{sign}{whole}.{fraction}"),
    }
}

fn format_uuid(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    match digits.len() {
        32 => format!(
            "{}-{}-{}-{}-{}",
            &digits[..8],
            &digits[8..12],
            &digits[12..16],
            &digits[16..20],
            &digits[20..]
        ),
        _ => digits,
    }
}
