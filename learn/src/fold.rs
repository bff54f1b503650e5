//! When two spellings are the same value: white space, case, compatibility forms, numbers, dates, the
//! digits of telephone numbers.

pub(crate) use webfill_values::{collapsed, folded_form as folded};

/// A known value with what its other spellings have in common.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// As the record writes it.
    pub(crate) given: String,
    /// The same with white space and character references resolved.
    pub(crate) text: String,
    pub(crate) folded: String,
    pub(crate) number: Option<String>,
    /// Year, month, day.
    pub(crate) date: Option<(i32, u32, u32)>,
    pub(crate) digits: Option<String>,
}

impl Wanted {
    /// `None` for a text without anything to look for.
    pub(crate) fn new(value: &str) -> Option<Wanted> {
        let text = collapsed(&decoded(value));
        let folded = folded(&text);
        if folded.is_empty() {
            return None;
        }
        let is_number = !is_code(&text)
            && text
                .bytes()
                .all(|b| b.is_ascii_digit() || b"-.,".contains(&b));
        Some(Wanted {
            number: is_number.then(|| number_in(&text)).flatten(),
            date: date_of(&text),
            digits: phone_digits(&text),
            given: value.to_owned(),
            text,
            folded,
        })
    }

    /// Whether it begins with a plus or with zeros, as telephone numbers and postcodes do; a number would lose them.
    pub(crate) fn is_code(&self) -> bool {
        is_code(&self.text)
    }

    /// Whether a text that was read is this value.
    pub(crate) fn is(&self, read: &Spelling) -> bool {
        self.folded == read.folded
            || (self.number.is_some() && self.number == read.number)
            || (self.digits.is_some() && self.digits == read.digits)
            || (self.date.is_some() && self.date == read.date)
    }
}

fn is_code(text: &str) -> bool {
    let mut bytes = text.bytes();
    match bytes.next() {
        Some(b'+') => true,
        Some(b'0') => bytes.next().is_some_and(|next| next.is_ascii_digit()),
        _ => false,
    }
}

impl PartialEq for Wanted {
    fn eq(&self, other: &Wanted) -> bool {
        self.folded == other.folded
    }
}

/// A text that was read.
#[derive(Debug, Clone)]
pub(crate) struct Spelling {
    /// As it was read.
    pub(crate) text: String,
    pub(crate) folded: String,
    number: Option<String>,
    digits: Option<String>,
    date: Option<(i32, u32, u32)>,
}

/// Two spellings of the same text are equal.
impl PartialEq for Spelling {
    fn eq(&self, other: &Spelling) -> bool {
        self.folded == other.folded
    }
}

impl Spelling {
    pub(crate) fn new(read: &str) -> Spelling {
        let is_short = read.len() <= 40 && read.bytes().any(|b| b.is_ascii_digit());
        let plain = is_short
            && read
                .bytes()
                .all(|b| b.is_ascii_digit() || b"+-., ".contains(&b));
        Spelling {
            text: read.to_owned(),
            folded: folded(read),
            number: if plain { number_in(read) } else { None },
            digits: if is_short { phone_digits(read) } else { None },
            date: if is_short {
                date_of(&collapsed(read))
            } else {
                None
            },
        }
    }
}

impl Spelling {
    pub(crate) fn date(&self) -> Option<(i32, u32, u32)> {
        self.date
    }

    /// Those of a telephone number.
    pub(crate) fn digits(self) -> Option<String> {
        self.digits
    }
}

/// Character references that were left in a known value.
fn decoded(value: &str) -> String {
    if !value.contains('&') {
        return value.to_owned();
    }
    [
        ("&amp;", "&"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&apos;", "'"),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&nbsp;", " "),
    ]
    .iter()
    .fold(value.to_owned(), |text, (reference, character)| {
        text.replace(reference, character)
    })
}

/// The only number in a text, in one spelling: no groups, no zeros at the end of a fraction.
pub(crate) fn number_in(text: &str) -> Option<String> {
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',');
    let mut runs = text
        .split(|c: char| !is_part(c))
        .map(|run| run.trim_matches(['.', ',']))
        .filter(|run| !run.is_empty());
    let run = runs.next()?;
    if runs.next().is_some() || run.len() > 20 {
        return None;
    }
    let negative = text
        .split(run)
        .next()
        .is_some_and(|before| before.ends_with(['-', '−']));
    // A mark before exactly three digits, or one that is repeated, separates groups.
    let fraction = run.rfind(['.', ',']).filter(|&at| {
        let mark = &run[at..=at];
        let other = if mark == "." { ',' } else { '.' };
        run.matches(mark).count() == 1 && (run.len() - at != 4 || run[..at].contains(other))
    });
    let whole: String = run[..fraction.unwrap_or(run.len())]
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    let whole = whole.trim_start_matches('0');
    let part = fraction.map_or("", |at| run[at + 1..].trim_end_matches('0'));
    let sign = if negative { "-" } else { "" };
    let whole = if whole.is_empty() { "0" } else { whole };
    Some(if part.is_empty() {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{part}")
    })
}

/// The digits of a text that looks like a telephone number.
fn phone_digits(text: &str) -> Option<String> {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let is_phone = (7..=15).contains(&digits.len())
        && text.len() <= 30
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || b"+-./() ".contains(&b));
    is_phone.then_some(digits)
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// The forms of dates that are looked for, in the letters of the processor `date`.
pub(crate) const DATE_FORMATS: &[&str] = &[
    "%Y-%m-%d",
    "%d %B %Y",
    "%B %d, %Y",
    "%d %b %Y",
    "%b %d, %Y",
    "%d.%m.%Y",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%Y/%m/%d",
    "%d-%m-%Y",
    "%d. %B %Y",
    "%B %d %Y",
    "%A, %B %d, %Y",
    "%a, %d %b %Y",
];

/// A date that is written so that only one is meant: ISO 8601, or with the month in letters.
fn date_of(text: &str) -> Option<(i32, u32, u32)> {
    if text.len() > 40 || !text.is_ascii() {
        return None;
    }
    if let Some(date) = iso_date(text) {
        return Some(date);
    }
    let (mut year, mut month, mut day) = (None, None, None);
    for word in text.split([' ', ',', '.']).filter(|word| !word.is_empty()) {
        let lower = word.to_ascii_lowercase();
        let named = MONTHS
            .iter()
            .position(|name| lower.len() >= 3 && name.starts_with(&lower));
        match word.parse::<u32>() {
            Ok(number @ 1..=31) if day.is_none() && word.len() <= 2 => day = Some(number),
            Ok(number @ 1000..=2999) if year.is_none() => year = Some(number as i32),
            Ok(_) => return None,
            Err(_) if month.is_none() && named.is_some() => month = named,
            Err(_) if lower.ends_with("day") || lower.len() == 3 => {}
            Err(_) => return None,
        }
    }
    Some((year?, month? as u32 + 1, day?))
}

fn iso_date(text: &str) -> Option<(i32, u32, u32)> {
    let (date, rest) = (text.get(..10)?, &text[10..]);
    let mut parts = date.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let fits = year.len() == 4 && month.len() == 2 && day.len() == 2;
    let ends = rest.is_empty() || rest.starts_with(['T', ' ']);
    (fits && ends).then_some(())?;
    Some((year.parse().ok()?, month.parse().ok()?, day.parse().ok()?))
}

/// How a date is written in a format, with and without leading zeros.
pub(crate) fn written((year, month, day): (i32, u32, u32), format: &str) -> Vec<String> {
    let name = MONTHS
        .get(month.wrapping_sub(1) as usize)
        .copied()
        .unwrap_or("");
    let weekday = weekday(year, month, day);
    let short = |text: &str| text.get(..3).unwrap_or(text).to_owned();
    [true, false]
        .iter()
        .map(|padded| {
            let two = |number: u32| match padded {
                true => format!("{number:02}"),
                false => number.to_string(),
            };
            format
                .replace("%Y", &format!("{year:04}"))
                .replace("%m", &two(month))
                .replace("%d", &two(day))
                .replace("%B", name)
                .replace("%b", &short(name))
                .replace("%A", weekday)
                .replace("%a", &short(weekday))
        })
        .collect()
}

/// Sakamoto's method.
fn weekday(year: i32, month: u32, day: u32) -> &'static str {
    const SHIFTS: [i32; 12] = [0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4];
    const DAYS: [&str; 7] = [
        "sunday",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
    ];
    let shift = SHIFTS
        .get(month.wrapping_sub(1) as usize)
        .copied()
        .unwrap_or(0);
    let year = if month < 3 { year - 1 } else { year };
    let number = year + year / 4 - year / 100 + year / 400 + shift + day as i32;
    DAYS[number.rem_euclid(7) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(known: &str, read: &str) -> bool {
        Wanted::new(known).unwrap().is(&Spelling::new(read))
    }

    #[test]
    fn spellings_of_one_value_are_equal() {
        assert!(same("Caf\u{e9} &amp; Bar", "  CAFE\u{301}  & bar"));
        assert!(same("1234.5", "1,234.50"));
        assert!(same("1234567", "1.234.567"));
        assert!(same("+1 (325) 674-2000", "1.325.674.2000"));
        assert!(same("2010-05-25", "May 25, 2010"));
        assert!(same("25 May 2010", "2010-05-25"));
    }

    #[test]
    fn other_values_are_not() {
        assert!(!same("12", "1.2"));
        assert!(!same("18", "18 dogs"));
        assert!(!same("2010-05-25", "May 26, 2010"));
        assert!(!same("-5", "5"));
    }

    #[test]
    fn dates_are_written_as_people_do() {
        assert_eq!(
            written((2010, 5, 5), "%A, %B %d, %Y")[1],
            "wednesday, may 5, 2010"
        );
    }
}
