//! `measure`: reads an amount with its unit, and yields it in another unit of the same kind.

use std::sync::LazyLock;

use regex::Regex;

use crate::entry::{Entry, Example, Family, Input, Kind, Parameter, Presence};
use crate::run::EachText;

pub(crate) const MEASURE: Entry = Entry {
    name: "measure",
    family: Family::Convert,
    summary: "Reads the length, weight, area, speed or temperature in every value and yields it in one unit: `6 ft 5 in`, `6'5\"`, `1.96 m`, `12 lb 3 oz`, `70 °F`. If the same amount follows in another unit, as in `6 ft 5 in (1.96 m)`, the one of the same system as the result is used. Values with other text or of another kind are dropped.",
    parameters: &[
        Parameter {
            name: "unit",
            kind: Kind::Choice(&NAMES),
            presence: Presence::Required,
            meaning: "the unit of the result",
        },
        Parameter {
            name: "decimals",
            kind: Kind::Integer(0, MOST_DECIMALS),
            presence: Presence::Required,
            meaning: "the most digits after the decimal point; the result is rounded",
        },
    ],
    examples: &[
        Example {
            parameters: r#"{"unit": "cm", "decimals": 0}"#,
            input: Input::Values(&["6 ft 5 in", "6'5\"", "1.96 m", "5 lb", "tall"]),
            output: &["196", "196", "196"],
        },
        Example {
            parameters: r#"{"unit": "°C", "decimals": 1}"#,
            input: Input::Values(&["70 °F", "32 F"]),
            output: &["21.1", "0"],
        },
    ],
    build: |parameters, _| {
        let unit = parameters.text("unit");
        let unit = UNITS.iter().find(|one| one.name == unit);
        let decimals = parameters.integer("decimals").unwrap_or(0);
        Ok(Box::new(EachText(move |text: &str| {
            let number = Measure::parse(text)?.in_unit(unit?)?;
            Some(round_decimals(number, decimals as i32))
        })))
    },
};

const MOST_DECIMALS: i64 = 6;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quantity {
    Length,
    Weight,
    Area,
    Speed,
    Temperature,
}

/// A unit of measurement. An amount in this unit, times `factor` plus `offset`, is the amount in the base unit of its
/// quantity.
#[derive(Debug)]
struct Unit {
    name: &'static str,
    quantity: Quantity,
    factor: f64,
    offset: f64,
    is_metric: bool,
    /// How pages write the unit: words and signs, as regular expressions.
    words: &'static str,
    signs: &'static str,
}

const fn unit(
    name: &'static str,
    quantity: Quantity,
    (factor, is_metric): (f64, bool),
    words: &'static str,
    signs: &'static str,
) -> Unit {
    Unit {
        name,
        quantity,
        factor,
        offset: 0.0,
        is_metric,
        words,
        signs,
    }
}

const NAMES: [&str; 18] = [
    "km/h", "mph", "m²", "ft²", "mm", "cm", "m", "km", "in", "ft", "yd", "mi", "g", "kg", "oz",
    "lb", "°C", "°F",
];

const METRIC: bool = true;
const IMPERIAL: bool = false;

/// All units. If the notation of one unit begins with that of another, it comes first: `mm` before `m`.
#[rustfmt::skip]
static UNITS: [Unit; 18] = [
    unit("km/h", Quantity::Speed, (1.0, METRIC), "km/h|kmh|kph|kilomet(?:er|re)s per hour", ""),
    unit("mph", Quantity::Speed, (1.609_344, IMPERIAL), "mph|miles per hour", ""),
    unit("m²", Quantity::Area, (1.0, METRIC), r"m2|sqm|sq\.?\s*m|square met(?:er|re)s?", "m²"),
    unit("ft²", Quantity::Area, (0.092_903_04, IMPERIAL), r"ft2|sqft|sq\.?\s*ft|square (?:feet|foot)", "ft²"),
    unit("mm", Quantity::Length, (0.001, METRIC), "mm|milli?met(?:er|re)s?", ""),
    unit("cm", Quantity::Length, (0.01, METRIC), "cm|centimet(?:er|re)s?", ""),
    unit("m", Quantity::Length, (1.0, METRIC), "m|met(?:er|re)s?", ""),
    unit("km", Quantity::Length, (1_000.0, METRIC), "km|kilomet(?:er|re)s?", ""),
    unit("in", Quantity::Length, (0.0254, IMPERIAL), "in|inch|inches", r#""|''|\x{201d}|\x{2033}|\x{2019}\x{2019}"#),
    unit("ft", Quantity::Length, (0.3048, IMPERIAL), "ft|foot|feet", r"'|\x{2019}|\x{2032}"),
    unit("yd", Quantity::Length, (0.9144, IMPERIAL), "yds?|yards?", ""),
    unit("mi", Quantity::Length, (1_609.344, IMPERIAL), "mi|miles?", ""),
    unit("g", Quantity::Weight, (1.0, METRIC), "g|gr|grams?|grammes?", ""),
    unit("kg", Quantity::Weight, (1_000.0, METRIC), "kgs?|kilos?|kilograms?|kilogrammes?", ""),
    unit("oz", Quantity::Weight, (28.349_523_125, IMPERIAL), "oz|ounces?", ""),
    unit("lb", Quantity::Weight, (453.592_37, IMPERIAL), "lbs?|pounds?", ""),
    unit("°C", Quantity::Temperature, (1.0, METRIC), r"°\s*c|c|deg(?:rees?)?\.? c(?:elsius)?|celsius", "℃"),
    Unit {
        name: "°F",
        quantity: Quantity::Temperature,
        factor: 5.0 / 9.0,
        offset: -160.0 / 9.0,
        is_metric: IMPERIAL,
        words: r"°\s*f|f|deg(?:rees?)?\.? f(?:ahrenheit)?|fahrenheit",
        signs: "℉",
    },
];

/// Matches a number with a unit. Each unit has a group, in the order of [`UNITS`].
static PART: LazyLock<Regex> = LazyLock::new(|| {
    let whole = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,9}(?:[.,]\d{1,6})?";
    let fraction = r"[½¼¾⅓⅔⅛⅜⅝⅞]|\d{1,2}[/⁄]\d{1,2}";
    let units = UNITS.iter().map(|unit| match unit.signs {
        "" => format!(r"((?:{})\b)", unit.words),
        signs => format!(r"((?:{})\b|{signs})", unit.words),
    });
    let units: Vec<String> = units.collect();
    let pattern = format!(
        r"(?i)^([+\-\x{{2212}}]?)({whole})?(?:[\s-]*({fraction}))?\s*-?(?:{})",
        units.join("|")
    );
    Regex::new(&pattern).expect("a constant pattern")
});

/// Matches a height in metres as it is written in French: `1m80`.
static METRES: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?i)^([0-9])\s*m\s*([0-9]{2})$").expect("a constant pattern"));

/// How many capture groups of [`PART`] come before those of the units.
const GROUPS_OF_NUMBER: usize = 3;

/// An amount that a text gives in one unit, or in two such as `6 ft (183 cm)`.
pub struct Measure {
    /// For each given amount: whether its unit is metric, and the amount in the base unit of the quantity.
    amounts: Vec<(bool, f64)>,
    quantity: Quantity,
}

impl Measure {
    /// Reads an amount; `None` if the text is anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Measure> {
        const LONGEST: usize = 60;
        let text = webfill_values::trim(text);
        if text.len() > LONGEST {
            return None;
        }
        if let Some(metres) = METRES.captures(text) {
            return Measure::parse(&format!("{}.{} m", &metres[1], &metres[2]));
        }
        let (quantity, first, rest) = parse_amount(text)?;
        let mut measure = Measure {
            amounts: vec![first],
            quantity,
        };
        let rest = rest.trim_start();
        if rest.is_empty() {
            return Some(measure);
        }
        let again = match rest.strip_prefix('(') {
            Some(inner) => inner.strip_suffix(')')?,
            None => rest.strip_prefix(['/', '|', ',', ';', '='])?,
        };
        let (other, second, rest) = parse_amount(again.trim())?;
        // Two amounts that differ are not one, but for example a width and a height.
        let is_same = other == quantity && are_close(first.1, second.1);
        measure.amounts.push(second);
        (is_same && rest.trim().is_empty()).then_some(measure)
    }

    fn in_unit(&self, unit: &Unit) -> Option<f64> {
        if unit.quantity != self.quantity {
            return None;
        }
        let of_system = self
            .amounts
            .iter()
            .find(|(is_metric, _)| *is_metric == unit.is_metric);
        let (_, amount) = of_system.or(self.amounts.first())?;
        Some((amount - unit.offset) / unit.factor)
    }

    /// The amount in each unit of its quantity, with the name of the unit.
    pub fn in_all_units(&self) -> impl Iterator<Item = (&'static str, f64)> {
        UNITS
            .iter()
            .filter_map(|unit| Some((unit.name, self.in_unit(unit)?)))
    }
}

/// The number with at most `decimals` digits after the point, without zeros at the end.
#[must_use]
pub fn round_decimals(number: f64, decimals: i32) -> String {
    let scale = 10_f64.powi(decimals);
    // The factor makes halves round up even if their binary form is slightly less.
    let rounded = (number * scale * (1.0 + 1e-12)).round() / scale;
    let rounded = if rounded == 0.0 { 0.0 } else { rounded };
    rounded.to_string()
}

/// Whether two amounts may be the same amount, rounded in different units.
fn are_close(one: f64, other: f64) -> bool {
    const ROUNDED_BY: f64 = 0.03;
    (one - other).abs() <= ROUNDED_BY * one.abs().max(other.abs()) + f64::EPSILON
}

/// Parses an amount at the beginning of a text, in one unit or in a large and a small one (`6 ft 5 in`). Also returns
/// the rest of the text.
fn parse_amount(text: &str) -> Option<(Quantity, (bool, f64), &str)> {
    let (unit, number, rest) = parse_part(text)?;
    let base = number * unit.factor + unit.offset;
    let follows = parse_part(rest.trim_start_matches([' ', ',', '-']));
    let small = follows.filter(|(small, part, _)| {
        let is_part = small.quantity == unit.quantity && unit.quantity != Quantity::Temperature;
        is_part
            && small.is_metric == unit.is_metric
            && *part >= 0.0
            && part * small.factor < unit.factor
    });
    match small {
        Some((small, part, rest)) => {
            let part = part * small.factor;
            let base = if number < 0.0 {
                base - part
            } else {
                base + part
            };
            Some((unit.quantity, (unit.is_metric, base), rest))
        }
        None => Some((unit.quantity, (unit.is_metric, base), rest)),
    }
}

fn parse_part(text: &str) -> Option<(&'static Unit, f64, &str)> {
    let part = PART.captures(text)?;
    let (at, written) = (0..UNITS.len()).find_map(|at| {
        let group = part.get(at + 1 + GROUPS_OF_NUMBER)?;
        Some((at, group))
    })?;
    // A capital `M` means a million, and `G` a thousand millions, so they are not units.
    let rest = &text[written.end()..];
    if matches!(written.as_str(), "M" | "G") {
        return None;
    }
    let whole = part.get(2).map(|digits| parse_number(digits.as_str()));
    let fraction = part
        .get(3)
        .map(|fraction| parse_fraction(fraction.as_str()));
    let number = match (whole, fraction) {
        (Some(whole), fraction) => whole? + fraction.unwrap_or(Some(0.0))?,
        (None, fraction) => fraction??,
    };
    let sign = if part[1].is_empty() || &part[1] == "+" {
        1.0
    } else {
        -1.0
    };
    Some((
        &UNITS[at],
        sign * number,
        rest.strip_prefix('.').unwrap_or(rest),
    ))
}

/// A comma before three digits separates groups of digits, except after a single zero: `0,147` is a fraction.
fn parse_number(digits: &str) -> Option<f64> {
    let is_group = digits
        .rsplit_once(',')
        .is_some_and(|(first, last)| last.len() >= 3 && first != "0");
    let mark = if is_group { "" } else { "." };
    digits.replace(',', mark).parse().ok()
}

fn parse_fraction(text: &str) -> Option<f64> {
    const SIGNS: [(&str, f64); 9] = [
        ("½", 0.5),
        ("¼", 0.25),
        ("¾", 0.75),
        ("⅓", 1.0 / 3.0),
        ("⅔", 2.0 / 3.0),
        ("⅛", 0.125),
        ("⅜", 0.375),
        ("⅝", 0.625),
        ("⅞", 0.875),
    ];
    if let Some((_, fraction)) = SIGNS.iter().find(|(sign, _)| *sign == text) {
        return Some(*fraction);
    }
    let (over, under) = text.split_once(['/', '⁄'])?;
    let (over, under): (f64, f64) = (over.parse().ok()?, under.parse().ok()?);
    (over < under).then_some(over / under)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, unit: &str, decimals: i32) -> Option<String> {
        let unit = UNITS.iter().find(|one| one.name == unit)?;
        Some(round_decimals(
            Measure::parse(text)?.in_unit(unit)?,
            decimals,
        ))
    }

    #[test]
    fn units_have_the_names_of_the_parameter() {
        assert_eq!(UNITS.each_ref().map(|unit| unit.name), NAMES);
    }

    #[test]
    fn measures_are_converted() {
        let table = [
            ("6 ft 5 in", "cm", 0, "196"),
            ("6 ft 5 in", "m", 2, "1.96"),
            ("6' 5\"", "cm", 0, "196"),
            ("6\u{2032}5\u{2033}", "cm", 0, "196"),
            ("5'10\u{bd}\"", "cm", 0, "179"),
            ("6 feet, 5 inches", "in", 0, "77"),
            ("6 ft", "cm", 0, "183"),
            ("1.96 m (6 ft 5 in)", "cm", 0, "196"),
            ("6 ft 5 in (1.96 m)", "cm", 1, "196"),
            ("6 ft 5 in / 196 cm", "ft", 2, "6.42"),
            ("210 lbs.", "kg", 0, "95"),
            ("210 pounds", "kg", 1, "95.3"),
            ("5 lb 3 oz", "g", 0, "2353"),
            ("5.2 oz (147 g)", "g", 0, "147"),
            ("1,200 lb", "kg", 0, "544"),
            ("1,5 kg", "g", 0, "1500"),
            ("0,147 kg", "g", 0, "147"),
            ("0,5 kg", "g", 0, "500"),
            ("70 °F", "°C", 0, "21"),
            ("70\u{b0}F", "°C", 1, "21.1"),
            ("70F", "°C", 0, "21"),
            ("-40 degrees Fahrenheit", "°C", 0, "-40"),
            ("31.5 F", "°C", 0, "0"),
            ("26.2 miles", "km", 1, "42.2"),
            ("60 mph", "km/h", 0, "97"),
            ("1,200 sq ft", "m²", 0, "111"),
            ("5 1/2 in", "mm", 1, "139.7"),
            ("5-1/2 in", "mm", 1, "139.7"),
            ("5 1⁄2\"", "mm", 1, "139.7"),
            ("20 ℃", "°F", 0, "68"),
            ("70℉", "°C", 0, "21"),
            ("1m80", "cm", 0, "180"),
            ("1 m 80", "cm", 0, "180"),
        ];
        for (text, unit, decimals, wanted) in table {
            assert_eq!(
                read(text, unit, decimals).as_deref(),
                Some(wanted),
                "{text}"
            );
        }
    }

    #[test]
    fn other_texts_are_not_measures() {
        let table = [
            ("6 ft 5 in", "kg"),
            ("6 ft x 5 in", "cm"),
            ("6 ft 14 in", "cm"),
            ("10 in (12 in)", "cm"),
            ("5 min", "cm"),
            ("5 months", "cm"),
            ("5 M", "cm"),
            ("1m8", "cm"),
            ("11 m 80", "cm"),
            ("5 G", "kg"),
            ("5 football", "cm"),
            ("5", "cm"),
            ("", "cm"),
            ("in", "cm"),
            ("about 6 ft", "cm"),
            ("70 °F at night", "°C"),
            ("5-6 ft", "cm"),
            ("1815 Fifth Ave", "°C"),
        ];
        for (text, unit) in table {
            assert_eq!(read(text, unit, 0), None, "{text}");
        }
    }
}
