//! The style of a column: what its known values have in common. Values from pages must have the same style.

use webfill_table::{GapWords, Kind};

use crate::export::CellStyle;
use crate::fill::casing::{Casing, apply_casing, casing};
use crate::fill::clock_style::ClockStyle;
use crate::fill::form;
use crate::fill::number_style::{NumberStyle, number_style};
use crate::fill::typography::Typography;

/// The most known values that are used to learn which words mean a gap in their column.
const MOST_FOR_GAP_WORDS: usize = 10_000;

/// The style of a column.
#[derive(Debug, Clone)]
pub(super) struct Style {
    /// The kind of nearly all known values.
    form: Kind,
    /// The number of decimals that nearly all known numbers have.
    decimals: Option<usize>,
    /// The notation of numbers, if nearly all known texts are numbers.
    numbers: Option<NumberStyle>,
    /// Whether nearly all known points in time are in UTC.
    is_in_utc: bool,
    /// The years of the first and the last known day.
    years: Option<(i32, i32)>,
    /// The words that mean a gap in this column.
    gap_words: GapWords,
    /// The style of commas between words in nearly all known texts.
    comma: Option<&'static str>,
    /// The casing of all known texts.
    casing: Option<Casing>,
    /// The format of times of day in nearly all known texts.
    clock: Option<ClockStyle>,
    /// The forms of characters in the known texts, such as those of apostrophes.
    typography: Typography,
    /// Whether nearly all known texts are amounts: one number with a sign.
    has_amounts: bool,
    /// The space between the number and the sign in nearly all known amounts.
    amount_space: Option<String>,
    /// Whether any known value is incomplete.
    has_cut_off: bool,
    /// Whether all known texts have letters.
    has_letters: bool,
    /// Whether any known value begins like a formula.
    has_formulas: bool,
}

impl Style {
    /// The style of a column without known values.
    pub(super) fn of_nothing() -> Style {
        Style::of_column(std::iter::empty)
    }

    /// The style of these known values.
    pub(super) fn of_column<I: Iterator<Item = String>>(known: impl Fn() -> I + Copy) -> Style {
        let kind = form::common_kind(known);
        let is_text = kind == Kind::Text;
        let has_amounts = is_text && form::has_amounts(known);
        let some: Vec<String> = known().take(MOST_FOR_GAP_WORDS).collect();
        Style {
            form: kind,
            decimals: (kind == Kind::Number)
                .then(|| form::decimals(known))
                .flatten(),
            numbers: is_text.then(|| number_style(known)).flatten(),
            is_in_utc: kind == Kind::Time && form::is_in_utc(known),
            years: (kind == Kind::Date)
                .then(|| form::year_range(known))
                .flatten(),
            gap_words: GapWords::of_column(some.iter().map(String::as_str)),
            comma: is_text.then(|| form::comma_style(known)).flatten(),
            casing: is_text.then(|| casing(known)).flatten(),
            clock: is_text.then(|| ClockStyle::of_column(known)).flatten(),
            typography: Typography::of_column(known),
            has_amounts,
            amount_space: has_amounts.then(|| form::amount_space(known)).flatten(),
            has_cut_off: known().any(|value| form::is_cut_off(&value)),
            has_letters: is_text && form::has_letters(known),
            has_formulas: known().any(|value| is_like_a_formula(&value)),
        }
    }

    /// Converts a value to this style. The error is the reason why that is impossible. A value that a person has
    /// accepted is refused only if the column cannot hold it.
    pub(super) fn fit_value(&self, value: &str, is_accepted: bool) -> Result<String, String> {
        let value = form::fit_to_kind(value, self.form)?;
        let value = match self.is_in_utc {
            true => form::convert_to_utc(value)?,
            false => value,
        };
        let value = match &self.clock {
            Some(style) => style.format(value),
            None => value,
        };
        if !is_accepted {
            self.require_likeness(&value)?;
        }
        let value = match self.numbers {
            Some(style) => style.format(value),
            None => value,
        };
        let value = match is_accepted {
            true => value,
            false => apply_casing(value, self.casing)?,
        };
        let value = match self.form {
            Kind::Text => self.typography.format(value),
            _ => value,
        };
        let value = form::pad_decimals(value, self.decimals);
        let value = form::with_space_at_sign(value, self.amount_space.as_deref());
        Ok(form::with_comma_style(value, self.comma))
    }

    /// Refuses a value that is incomplete or unlike the known values.
    fn require_likeness(&self, value: &str) -> Result<(), String> {
        let years = self.years;
        let refusal = if value.contains(char::REPLACEMENT_CHARACTER) {
            "a character of it was lost: its page has another encoding than it declares"
        } else if years.is_some_and(|years| form::may_be_of_other_century(value, years)) {
            "its century is not certain"
        } else if self.has_amounts && !form::is_amount(value) {
            "nearly all known values of the column are one number with a sign, as amounts of money are"
        } else if !self.has_cut_off && form::is_cut_off(value) {
            "it is cut off, and no known value of the column is"
        } else if self.has_letters && !value.contains(char::is_alphabetic) {
            "all known values of the column have letters"
        } else {
            return Ok(());
        };
        Err(refusal.to_owned())
    }

    /// Whether a spreadsheet would run this text as a formula, although no known value is one. Such texts are refused,
    /// because pages are foreign.
    pub(super) fn is_foreign_formula(&self, text: &str) -> bool {
        !self.has_formulas && is_like_a_formula(text)
    }

    /// Whether no known value has an ending that shows it is incomplete.
    pub(super) fn lacks_cut_off(&self) -> bool {
        !self.has_cut_off
    }

    /// Whether a text would mean a gap if it were a value of this column.
    pub(super) fn means_gap(&self, text: &str) -> bool {
        self.gap_words.contains(text)
    }
}

fn is_like_a_formula(text: &str) -> bool {
    CellStyle::Spreadsheet.format_text(text) != text
}
