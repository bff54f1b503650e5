//! Dates that pages and records write differently: which day a text means, and which processors read it.
//!
//! The crate `values` reads all dates. The processor `date` uses it too, so a crawl reads every date that is
//! recognised here.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};
use webfill_values::{DateOrder, DateReading, read_dates};

/// Texts with more bytes contain more than a date.
const LONGEST: usize = 60;

/// How many bytes before and after the year may contain the rest of a date.
const AROUND_YEAR: usize = 40;

/// The most numbers of a text that are tried as the year.
const MOST_YEARS: usize = 4;

/// One way to read a text as a date.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DateInterpretation {
    /// The date in ISO 8601 without the time: `2024-03-01`, or `2024-03` for a month.
    pub(crate) day: String,
    pub(crate) has_time: bool,
    /// The parameters of the processor `date`.
    parameters: Value,
}

impl DateInterpretation {
    fn new(iso: String, parameters: Value) -> DateInterpretation {
        let has_time = iso.len() > 10;
        let mut day = iso;
        day.truncate(10);
        DateInterpretation {
            day,
            has_time,
            parameters,
        }
    }

    /// The processors (extraction steps) that read the text in this way. Without `with_time`, they drop the time.
    pub(crate) fn processors(&self, with_time: bool) -> Vec<Value> {
        let mut processors = vec![json!({"type": "date", "parameters": self.parameters})];
        if self.has_time && !with_time {
            processors.push(day_processor());
        }
        processors
    }
}

/// The processor that extracts the day from a date with a time.
pub(crate) fn day_processor() -> Value {
    json!({"type": "regex", "parameters": {"pattern": r"^\d{4}-\d{2}-\d{2}"}})
}

/// All ways to read a text as a date. There are two if either of two numbers may be the day, and none if the text is
/// not a date.
pub(crate) fn date_interpretations(text: &str) -> Vec<DateInterpretation> {
    let has_digit = text.bytes().any(|b| b.is_ascii_digit()) || !text.is_ascii();
    // A number of eight digits may be an article number instead of a date.
    if text.len() > LONGEST || !has_digit || text.bytes().all(|b| b.is_ascii_digit()) {
        return Vec::new();
    }
    let read = |order| read_dates(&[text], Some(order)).pop();
    let day_first = match read(DateOrder::DayFirst) {
        None | Some(DateReading::None) => return Vec::new(),
        Some(DateReading::Date(iso)) => Some(iso),
        Some(DateReading::Undecided) => None,
    };
    let month_first = match read(DateOrder::MonthFirst) {
        Some(DateReading::Date(iso)) => Some(iso),
        _ => None,
    };
    match (day_first, month_first) {
        (Some(one), Some(other)) if one == other => vec![DateInterpretation::new(one, json!({}))],
        (None, None) => short_year_interpretations(text),
        (one, other) => {
            let ordered = [(one, "day_first"), (other, "month_first")];
            let ways = ordered.into_iter();
            ways.filter_map(|(iso, order)| {
                Some(DateInterpretation::new(iso?, json!({"order": order})))
            })
            .collect()
        }
    }
}

/// The day that a text means; `None` if it is not a date, or may mean several days.
pub(crate) fn day_of(text: &str) -> Option<String> {
    match date_interpretations(text).as_slice() {
        [only] => Some(only.day.clone()),
        _ => iso_day(text),
    }
}

/// The day of a text in ISO 8601, whatever follows it.
pub(crate) fn iso_day(text: &str) -> Option<String> {
    let (day, rest) = (text.get(..10)?, &text[10..]);
    let is_day = day.char_indices().all(|(at, c)| match at {
        4 | 7 => c == '-',
        _ => c.is_ascii_digit(),
    });
    (is_day && (rest.is_empty() || rest.starts_with(['T', ' ']))).then(|| day.to_owned())
}

/// The ways to read a date with a two-digit year. They always set a format, because only the known values show that the
/// text is a date.
fn short_year_interpretations(text: &str) -> Vec<DateInterpretation> {
    let Some(parts) = SHORT_YEAR.captures(text) else {
        return Vec::new();
    };
    let mark = &parts[2];
    let orders = [(1, 3, "%d", "%m"), (3, 1, "%m", "%d")].into_iter();
    let ways = orders.filter_map(|(day, month, first, second)| {
        let (day, month) = (&parts[day], &parts[month]);
        // As in `strptime`, the two-digit years 69 to 99 are in the 20th century.
        let century = if &parts[4] < "69" { "20" } else { "19" };
        let iso = format!("{century}{}-{month:0>2}-{day:0>2}", &parts[4]);
        let exists = matches!(read_dates(&[&iso], None).pop(), Some(DateReading::Date(_)));
        let format = format!("{first}{mark}{second}{mark}%y");
        exists.then(|| DateInterpretation::new(iso, json!({"formats": [format]})))
    });
    ways.collect()
}

static SHORT_YEAR: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(\d{1,2})([./-])(\d{1,2})[./-](\d{2})$").expect("constant pattern")
});

/// Finds a known day in a longer text. Returns the range of the shortest part that means the day, and the ways to read
/// it.
pub(crate) fn find_day(text: &str, day: &str) -> Option<(usize, usize, Vec<DateInterpretation>)> {
    let (century, year) = (day.get(..2)?, day.get(2..4)?);
    let is_whole = |at: &usize| text[..*at].ends_with(century);
    let written = || text.match_indices(year).map(|(at, _)| at).take(MOST_YEARS);
    // Four-digit years are tried before two-digit ones.
    let years = written().filter(is_whole).chain(written());
    years
        .into_iter()
        .find_map(|at| find_day_around_year(text, day, at))
}

/// Finds the known day around a year. `year` is the index of the year's last two digits.
fn find_day_around_year(
    text: &str,
    day: &str,
    year: usize,
) -> Option<(usize, usize, Vec<DateInterpretation>)> {
    let number = day.get(8..)?.trim_start_matches('0');
    let from = year.saturating_sub(AROUND_YEAR);
    let to = (year + 2 + AROUND_YEAR).min(text.len());
    let bounds: Vec<usize> = (from..=to)
        .filter(|&at| is_word_boundary(text, at))
        .collect();
    let starts = bounds.iter().filter(|start| **start <= year);
    let mut parts: Vec<(usize, usize)> = starts
        .flat_map(|&start| {
            let ends = bounds.iter().filter(|end| **end >= year + 2);
            ends.map(move |&end| (start, end))
        })
        .filter(|&(start, end)| end - start < text.len() && text[start..end].contains(number))
        .filter(|&(start, end)| text[start..end].trim().len() == end - start)
        .collect();
    parts.sort_by_key(|(start, end)| (end - start, *start));
    parts.into_iter().find_map(|(start, end)| {
        let mut ways = date_interpretations(&text[start..end]);
        ways.retain(|way| way.day == day);
        (!ways.is_empty()).then_some((start, end, ways))
    })
}

/// Whether a word or number begins or ends at this index. In Chinese and Japanese, a date may follow letters directly.
fn is_word_boundary(text: &str, at: usize) -> bool {
    if !text.is_char_boundary(at) {
        return false;
    }
    let before = text[..at].chars().next_back();
    let behind = text[at..].chars().next();
    let (Some(before), Some(behind)) = (before, behind) else {
        return true;
    };
    let is_ideograph = |c: char| c.is_alphabetic() && c >= '\u{3000}';
    let is_east_asian = is_ideograph(before) && behind.is_ascii_digit();
    let joins = before.is_alphanumeric() && behind.is_alphanumeric();
    !joins || is_east_asian || matches!(before, '日' | '号' | '號')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ways to write 1 March 2024, each with the parameters of the processor `date` that reads it.
    const WRITTEN: &[(&str, &str)] = &[
        ("2024-03-01", "{}"),
        ("March 1st, 2024", "{}"),
        ("Freitag, 1. März 2024", "{}"),
        ("vendredi 1er mars 2024", "{}"),
        ("1 de março de 2024", "{}"),
        ("piątek, 1 marca 2024 r.", "{}"),
        ("2024年3月1日(金)", "{}"),
        ("1. März 2024, 10:30 Uhr", "{}"),
        ("01/03/2024", r#"{"order":"day_first"}"#),
        ("03/01/2024", r#"{"order":"month_first"}"#),
        ("01.03.24", r#"{"formats":["%d.%m.%y"]}"#),
    ];

    #[test]
    fn a_text_is_read_as_the_processor_reads_it() {
        for (text, parameters) in WRITTEN {
            let ways = date_interpretations(text);
            let way = ways.iter().find(|way| way.day == "2024-03-01");
            let way = way.map(|way| way.parameters.to_string());
            assert_eq!(way.as_deref(), Some(*parameters), "{text}: {ways:?}");
        }
        for text in ["20240301", "31.04.2023", "soon", "1.2", "Mon 1 Mar 2024"] {
            assert_eq!(date_interpretations(text), [], "{text}");
        }
    }

    #[test]
    fn a_date_is_found_between_other_words() {
        for (text, part) in [
            ("Published 1 March 2024 by Ada", "1 March 2024"),
            ("Erschienen am 1. März 2024 (Neuauflage)", "1. März 2024"),
            ("发布于2024年3月1日，来源：新华社", "2024年3月1日"),
            ("更新日：2024年03月01日", "2024年03月01日"),
            ("Stand: 01.03.2024, 5 Bilder", "01.03.2024"),
            ("Stand: 01.03.24, 5 Bilder", "01.03.24"),
            (
                "Publicado el 1 de marzo de 2024 en Madrid",
                "1 de marzo de 2024",
            ),
        ] {
            let (start, end, _) = find_day(text, "2024-03-01").unwrap();
            assert_eq!(&text[start..end], part);
        }
        assert_eq!(find_day("Since 2024, 1 of 3", "2024-03-01"), None);
    }
}
