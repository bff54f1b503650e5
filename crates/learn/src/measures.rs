//! Measures in another system of units: `6 ft 5 in` for `196` centimetres, `210 lb` for `95 kg`, `70 °F` for `21`.
//!
//! Known values show the unit, and how numbers are rounded. A rounded number is equal by chance more easily than
//! others, so it must have two digits.

use serde_json::{Value, json};
use webfill_mapping::{Measure, round_decimals};

use crate::amounts::{Amount, affix_processors};
use crate::forms::ConvertedPlace;
use crate::places::Places;

/// The longest text that is read as a measure, in bytes, and the most places of one value that are converted.
const LONGEST: usize = 60;
const MOST_PLACES: usize = 6;

/// The most digits after the point that a column rounds to.
const MOST_DECIMALS: usize = 3;

const EXACT_DECIMALS: usize = 6;

/// Finds places of the page that have the known amount in another unit.
pub(crate) fn find(page: &Places<'_>, value: &str) -> Vec<ConvertedPlace> {
    let sign = if value.starts_with('-') { "-" } else { "" };
    let Some(wanted) = Amount::parse(value.strip_prefix('-').unwrap_or(value)) else {
        return Vec::new();
    };
    let number = format!("{sign}{}.{}", wanted.whole, wanted.fraction);
    let decimals = wanted.fraction.len();
    let Some(number) = number.parse::<f64>().ok().filter(|number| {
        let last_digits = number.abs() * 10_f64.powi(decimals as i32);
        last_digits >= 10.0 && decimals <= MOST_DECIMALS
    }) else {
        return Vec::new();
    };
    let places = page.all.iter().enumerate();
    let measures = places.filter_map(|(at, place)| {
        let text = place.text.trim_start();
        let is_short = text.len() <= LONGEST && text.starts_with(is_first_of_number);
        let measure = Measure::parse(&place.text).filter(|_| is_short)?;
        // A number that the page also shows as such needs no conversion: it is extracted from its text like any value.
        (!place.text.contains(value)).then_some((at, measure))
    });
    let affixes = affix_processors(&wanted);
    let found = measures.flat_map(|(place, measure)| {
        let ways = conversions(&measure, number, decimals);
        let ways: Vec<Vec<Value>> = ways
            .into_iter()
            .map(|way| std::iter::once(way).chain(affixes.clone()).collect())
            .collect();
        ways.into_iter()
            .map(move |processors| ConvertedPlace { place, processors })
    });
    found.take(MOST_PLACES).collect()
}

fn is_first_of_number(c: char) -> bool {
    c.is_ascii_digit() || "-+\u{2212}½¼¾⅓⅔⅛⅜⅝⅞".contains(c)
}

/// The processors that convert a measure to this number, in several ways. A column may round to more digits than the
/// number has, because zeros at the end of a fraction are not written. An exact number does not show that others are
/// rounded.
fn conversions(measure: &Measure, number: f64, decimals: usize) -> Vec<Value> {
    let mut ways = Vec::new();
    for (unit, amount) in measure.in_all_units() {
        let is_exact = (amount - number).abs() <= 1e-9 * number.abs();
        let decimals = match is_exact {
            true => EXACT_DECIMALS..=EXACT_DECIMALS,
            false => decimals..=MOST_DECIMALS,
        };
        for decimals in decimals {
            let rounded = round_decimals(amount, decimals as i32);
            if rounded.parse() == Ok(number) {
                let parameters = json!({"unit": unit, "decimals": decimals});
                ways.push(json!({"type": "measure", "parameters": parameters}));
            }
        }
    }
    ways
}
