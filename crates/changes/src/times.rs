//! Evidence that the times in a text move as the clock does: a clock that a cache delays, the date of tomorrow's
//! delivery, a countdown. [`SiteBlocks`](crate::SiteBlocks) counts the evidence and acts on it.
//!
//! A movement may be a coincidence: `Open until 18:00` may become `19:00` between two checks an hour apart. So clock
//! times in multiples of five minutes are no evidence if the checks are about a whole number of hours apart.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::compare::Difference;
use crate::hash;
use crate::masks::{Time, differing_days_by_zone, mask_times, parse_times};

const MINUTES_OF_DAY: i64 = 24 * 60;

/// By how many minutes a clock may deviate because a cache delays it.
const CLOCK_OFF: i64 = 15;

/// A text whose times have changed: its place, and the hash of the text without its times.
pub(crate) type TimedText = (u32, u64);

/// When the two compared checks were made.
#[derive(Clone, Copy)]
struct Checks {
    old_ms: i64,
    new_ms: i64,
    minutes: i64,
}

/// Finds texts that differ only in their times, if these have moved by the time between the two checks.
pub(crate) fn find_moved_times(
    differing: &Difference<'_>,
    old_ms: i64,
    new_ms: i64,
) -> Vec<TimedText> {
    let Some((old_day, new_day)) = day_of(old_ms).zip(day_of(new_ms)) else {
        return Vec::new();
    };
    let minutes = (new_ms - old_ms) / 60_000;
    let checks = Checks {
        old_ms,
        new_ms,
        minutes,
    };
    let mut moved = Vec::new();
    for old in &differing.gone {
        let rest = mask_times(&old.text);
        if rest == old.text {
            continue;
        }
        let is_same =
            |new: &&&crate::Block| new.place == old.place && mask_times(&new.text) == rest;
        let mut same = differing.come.iter().filter(is_same);
        let (Some(new), None) = (same.next(), same.next()) else {
            continue;
        };
        if checks.have_moved(
            &parse_times(&old.text, old_day),
            &parse_times(&new.text, new_day),
        ) {
            moved.push((old.place, hash(&rest)));
        }
    }
    moved
}

fn day_of(ms: i64) -> Option<Date> {
    let moment = Timestamp::from_millisecond(ms).ok()?;
    Some(moment.to_zoned(TimeZone::UTC).date())
}

impl Checks {
    fn have_moved(self, old: &[Time], new: &[Time]) -> bool {
        let mut pairs = old
            .iter()
            .zip(new)
            .filter(|(old, new)| old != new)
            .peekable();
        old.len() == new.len()
            && pairs.peek().is_some()
            && pairs.all(|(old, new)| self.has_moved(*old, *new))
    }

    fn has_moved(self, old: Time, new: Time) -> bool {
        match (old, new) {
            (Time::Day(old), Time::Day(new)) => {
                let days = |one: Date, other: Date| one.until(other).map(|span| span.get_days());
                let Ok(moved) = days(old, new) else {
                    return false;
                };
                let mut passed = differing_days_by_zone(self.old_ms, self.new_ms).into_iter();
                moved > 0 && passed.any(|(one, other)| days(one, other).ok() == Some(moved))
            }
            (Time::Clock(old), Time::Clock(new)) => {
                let off = (new - old - self.minutes).rem_euclid(MINUTES_OF_DAY);
                let is_near = off <= CLOCK_OFF || off >= MINUTES_OF_DAY - CLOCK_OFF;
                let is_round = |clock: i64| clock % 5 == 0;
                let of_hour = self.minutes.rem_euclid(60);
                let hours_apart = of_hour <= CLOCK_OFF || of_hour >= 60 - CLOCK_OFF;
                is_near && !(hours_apart && (is_round(old) || is_round(new)))
            }
            (Time::Span(old, unit), Time::Span(new, unit_too)) => {
                unit == unit_too && new < old && (old - new - self.minutes).abs() <= unit
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Block;

    /// The time of the first check in these tests: 2026-11-23T08:02:00Z.
    const AT_MS: i64 = 1_795_420_920_000;
    const MINUTE_MS: i64 = 60_000;

    #[test]
    fn only_times_that_move_with_the_clock_are_evidence() {
        for (old, new, minutes, expected) in [
            ("made at 08:01", "made at 11:38", 217, true),
            ("made at 9:01 PM", "made at 0:30 AM", 217, true),
            (
                "delivery by 24.11.2026",
                "delivery by 25.11.2026",
                1_440,
                true,
            ),
            ("Ends in 3 days", "Ends in 2 days", 1_440, true),
            ("Ends in 3 h 12 min", "Ends in 1 h 5 min", 127, false),
            ("Ends in 5 h", "Ends in 3 h", 127, true),
            // These times change for another reason than the clock, so they are content.
            ("Open until 18:00", "Open until 19:00", 60, false),
            ("Open until 18:00", "Open until 19:00", 217, false),
            (
                "Concert on 30.11.2026",
                "Concert on 2.12.2026",
                1_440,
                false,
            ),
            ("Ships in 3 days", "Ships in 5 days", 1_440, false),
            ("made at 08:01", "built at 11:38", 217, false),
            ("7 visits", "8 visits", 217, false),
        ] {
            let block = |text: &str| Block {
                place: 1,
                text: text.to_owned(),
                ..Block::default()
            };
            let (old, new) = (block(old), block(new));
            let differing = Difference {
                gone: vec![&old],
                come: vec![&new],
            };
            let found = find_moved_times(&differing, AT_MS, AT_MS + minutes * MINUTE_MS);
            assert_eq!(
                found.len(),
                usize::from(expected),
                "{} {}",
                old.text,
                new.text
            );
        }
    }
}
