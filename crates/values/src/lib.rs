//! Rules for values that all code shares which reads, stores or compares them: which characters show nothing, when two
//! spellings are the same value, and numbers that lose no digit. No state, no files, no network.
//!
//! | question | function |
//! |---|---|
//! | Does this text show anything? | [`is_blank`] |
//! | The text without blanks around it, or with single spaces | [`trim`], [`collapse_white_space`] |
//! | Are two texts, or two values, the same in another spelling? | [`is_equivalent_text`], [`is_equivalent_value`] |
//! | A text in the form for comparing, indexing or hashing | [`normal_form`], [`folded_form`] |
//! | Which number a text says, and which date it is | [`read_numbers`], [`read_dates`] |
//! | The same of values that are read one at a time, such as those of a column | [`Numbers`], [`Dates`] |
//! | An exact number | [`Decimal`] |
//! | JSON without losing a digit of its numbers | [`exact_json`], [`exact_json_text`], [`loses_digits`] |

mod blanks;
mod date;
mod decimal;
mod exact_json;
mod normal;
mod number;
mod telephone;

pub use blanks::{collapse_white_space, is_blank, is_invisible, is_white_space, trim};
pub use date::{
    DateEvidence, DateOrder, DateReading, Dates, date_names, has_date_name, month_of_name,
    read_dates, replace_zone_names, translate_names,
};
pub use decimal::Decimal;
pub use exact_json::{exact_json_text, loses_digits, parse_exact_json};
pub use normal::{folded_form, is_equivalent_text, is_equivalent_value, normal_form};
pub use number::{
    NumberEvidence, NumberNotation, NumberReading, Numbers, begins_with_currency,
    ends_with_currency, read_numbers,
};
pub use telephone::telephone_digits;
