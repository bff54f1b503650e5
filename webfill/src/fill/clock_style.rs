//! The format of the times of day in a column.

use std::collections::BTreeMap;

use webfill_learn::minutes_of_day;

use super::form::MOST;

/// The format of times of day that nearly all known values of a column have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockStyle {
    /// Whether hours have two digits: `05:30` instead of `5:30`.
    is_padded: bool,
    /// The text after the minutes, such as ` am` and ` pm`: before noon, and from noon. On a 24-hour clock, both are
    /// the same.
    behind: [String; 2],
    has_halves: bool,
}

impl ClockStyle {
    pub fn of_column<I: Iterator<Item = String>>(known: impl Fn() -> I) -> Option<ClockStyle> {
        /// A format is recognised only from at least this many times of day.
        const LEAST: usize = 3;
        let mut behind: [BTreeMap<String, usize>; 2] = Default::default();
        let (mut all, mut times, mut padded, mut short) = (0, 0, 0, 0);
        for value in known() {
            all += 1;
            let Some((minutes, hours, rest)) = time_parts(&value) else {
                continue;
            };
            times += 1;
            padded += usize::from(hours.starts_with('0') && hours.len() == 2);
            short += usize::from(hours.len() == 1);
            let half = usize::from(minutes >= 12 * 60);
            *behind[half].entry(rest.to_owned()).or_default() += 1;
        }
        if times < LEAST || times * 100 < all * MOST {
            return None;
        }
        let [before, after] = behind.map(|rests| {
            let most = rests.into_iter().max_by_key(|(_, count)| *count);
            most.map(|(rest, _)| rest)
        });
        let has_halves = [&before, &after]
            .into_iter()
            .flatten()
            .any(|rest| is_am_pm(rest));
        let behind = match has_halves {
            // If all known values are in one half of the day, the other half gets the same text with `am` and `pm`
            // exchanged.
            true => [
                before
                    .clone()
                    .or_else(|| after.as_deref().map(swap_am_pm))?,
                after.or_else(|| before.as_deref().map(swap_am_pm))?,
            ],
            false => {
                let rest = before.or(after)?;
                [rest.clone(), rest]
            }
        };
        Some(ClockStyle {
            is_padded: padded > short,
            behind,
            has_halves,
        })
    }

    /// Formats a time of day as the column has it. Any other text stays as it is.
    pub fn format(&self, value: String) -> String {
        let Some(minutes) = minutes_of_day(&value) else {
            return value;
        };
        let (hour, minute) = (minutes / 60, minutes % 60);
        let hour = match self.has_halves {
            true => (hour + 11) % 12 + 1,
            false => hour,
        };
        let behind = &self.behind[usize::from(minutes >= 12 * 60)];
        match self.is_padded {
            true => format!("{hour:02}:{minute:02}{behind}"),
            false => format!("{hour}:{minute:02}{behind}"),
        }
    }
}

/// The minutes since midnight, the hours as written, and the text after the minutes. `None` for a time without a colon.
fn time_parts(value: &str) -> Option<(u32, &str, &str)> {
    let minutes = minutes_of_day(value)?;
    let (hours, rest) = value.trim().split_once(':')?;
    Some((minutes, hours, rest.get(2..)?))
}

fn is_am_pm(rest: &str) -> bool {
    let rest = rest.trim_start().to_ascii_lowercase();
    rest.starts_with(['a', 'p'])
}

fn swap_am_pm(rest: &str) -> String {
    let other = |c: char| match c {
        'a' => 'p',
        'A' => 'P',
        'p' => 'a',
        'P' => 'A',
        c => c,
    };
    rest.chars().map(other).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_day_are_written_as_their_column_writes_them() {
        let of =
            |known: &[&str]| ClockStyle::of_column(|| known.iter().map(|time| (*time).to_owned()));
        let table: [(&[&str], &str, &str); 6] = [
            (&["05:30", "17:05", "23:59"], "1:05 pm", "13:05"),
            (&["5:30", "17:05", "23:59"], "1:05 am", "1:05"),
            (&["5:30 PM", "11:05 AM", "9:15 AM"], "13:05", "1:05 PM"),
            (
                &["5:30 p.m.", "1:05 p.m.", "2:05 p.m."],
                "00:10",
                "12:10 a.m.",
            ),
            (&["05:30", "17:05", "23:59"], "closed", "closed"),
            (&["05:30", "17:05", "23:59"], "13.05 Uhr", "13:05"),
        ];
        for (known, value, expected) in table {
            assert_eq!(
                of(known).unwrap().format(value.to_owned()),
                expected,
                "{known:?}"
            );
        }
        assert_eq!(of(&["05:30", "noon", "23:59"]), None);
        assert_eq!(of(&["12.30", "9.50", "8.20"]), None);
    }
}
