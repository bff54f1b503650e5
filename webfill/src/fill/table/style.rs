//! What the known values of a column have in common: the form that values from pages must have as well.

use webfill_table::{GapWords, Kind};

use crate::export::CellStyle;
use crate::fill::casing::{Casing, apply_casing, casing};
use crate::fill::clock_style::ClockStyle;
use crate::fill::form;
use crate::fill::number_style::{NumberStyle, number_style};

/// The most known values that show which words mean a gap in their column.
const MOST_FOR_GAP_WORDS: usize = 10_000;

/// The style of a column.
#[derive(Debug, Clone)]
pub(super) struct Style {
    /// The kind of nearly all known values.
    form: Kind,
    /// The digits after the point that nearly all known numbers have.
    decimals: Option<usize>,
    /// How nearly all known texts write numbers, if they are nothing else.
    numbers: Option<NumberStyle>,
    /// Nearly all known points in time are in UTC.
    is_in_utc: bool,
    /// The years of the first and the last known day.
    years: Option<(i32, i32)>,
    /// The words that mean a gap among the known values.
    gap_words: GapWords,
    /// How nearly all known texts write commas between words.
    comma: Option<&'static str>,
    /// How all known texts write letters.
    casing: Option<Casing>,
    /// How nearly all known texts write times of day.
    clock: Option<ClockStyle>,
    /// Nearly all known texts are one number with a sign.
    has_amounts: bool,
    /// What nearly all of these have between the number and its sign.
    amount_space: Option<String>,
    /// Whether any known value is cut off.
    has_cut_off: bool,
    /// All known texts have letters.
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
            has_amounts,
            amount_space: has_amounts.then(|| form::amount_space(known)).flatten(),
            has_cut_off: known().any(|value| form::is_cut_off(&value)),
            has_letters: is_text && form::has_letters(known),
            has_formulas: known().any(|value| is_like_a_formula(&value)),
        }
    }

    /// The same value in this style, or why it has none. If a person has accepted it, only what the column cannot hold
    /// is refused.
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
        let value = form::pad_decimals(value, self.decimals);
        let value = form::with_space_at_sign(value, self.amount_space.as_deref());
        Ok(form::with_comma_style(value, self.comma))
    }

    /// Refuses a value that is unlike the known ones, or incomplete.
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

    /// Whether a spreadsheet would run this text, and no known value is such a text: pages are foreign.
    pub(super) fn is_foreign_formula(&self, text: &str) -> bool {
        !self.has_formulas && is_like_a_formula(text)
    }

    /// Whether no known value ends as texts do that are cut off.
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
