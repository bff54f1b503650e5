//! When the runs of a watch are due: `once`, `every 6h`, or five cron fields in a time zone.
//!
//! When clocks change, the hour field decides. If it begins with `*`, the schedule has a rhythm and keeps to it, like
//! vixie cron. A time that clocks skip is not made up for, and one that they show twice is due twice. Otherwise the
//! hours are fixed: a time that does not exist is due once, right after the gap, and one that exists twice is due the
//! first time only.

mod field;

use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp, ToSpan};

use self::field::Field;

/// How far ahead a day is searched for: 29 February may be eight years away.
const DAYS_AHEAD: i32 = 9 * 366;

/// The shortest and the longest period of `every`, in milliseconds.
const SHORTEST_MS: i64 = 1_000;
const LONGEST_MS: i64 = 366 * 86_400_000;

/// Clock changes are smaller than this. (A whole day skipped by a zone is a gap like any other.)
const LARGEST_CHANGE_H: i64 = 4;

/// Missed due times are counted up to this.
const MOST_COUNTED: usize = 200;

/// A run that starts within this time is on time.
const ON_TIME_MS: i64 = 60_000;

/// The times of a run, in milliseconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastRun {
    pub due_ms: i64,
    pub started_ms: i64,
    pub ended_ms: i64,
}

/// When the runs of a watch are due.
#[derive(Debug, Clone, PartialEq)]
pub enum Schedule {
    /// Only once, immediately.
    Once,
    /// This many milliseconds after the last start.
    Every(i64),
    /// At the times of day that five cron fields name.
    Cron(Box<Cron>),
}

/// Five fields, and the time zone they refer to.
#[derive(Debug, Clone, PartialEq)]
pub struct Cron {
    minutes: Field,
    hours: Field,
    days: Field,
    months: Field,
    /// The allowed days of the week; Sunday is 0.
    weekdays: Field,
    zone: TimeZone,
}

impl Schedule {
    /// Reads `once`, `every DURATION` or five cron fields. The error is one clause.
    pub fn parse(text: &str, zone: TimeZone) -> Result<Schedule, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        match *words {
            ["once"] => Ok(Schedule::Once),
            ["every", period] => match crate::duration_ms(period)? {
                period @ SHORTEST_MS..=LONGEST_MS => Ok(Schedule::Every(period)),
                _ => Err("expected a period from 1s to 366d".into()),
            },
            [minute, hour, day, month, weekday] => {
                let cron = Cron {
                    minutes: Field::parse(&field::MINUTE, minute)?,
                    hours: Field::parse(&field::HOUR, hour)?,
                    days: Field::parse(&field::DAY, day)?,
                    months: Field::parse(&field::MONTH, month)?,
                    weekdays: Field::parse(&field::WEEKDAY, weekday)?,
                    zone,
                };
                match cron.has_possible_date() {
                    true => Ok(Schedule::Cron(Box::new(cron))),
                    false => Err("no month of these has such a day".into()),
                }
            }
            _ => Err(
                "expected `once`, `every 6h`, or five fields: minute, hour, day of month, month, day of week, such as `0 2 * * *`"
                    .into(),
            ),
        }
    }

    /// When the next run is due: after the last run, or after `since_ms` if there was none. A result in the past means
    /// that a run was missed. All times are milliseconds since the epoch. `None` means never.
    pub fn next_due_ms(&self, last: Option<&LastRun>, since_ms: i64) -> Option<i64> {
        match (self, last) {
            (Schedule::Once, Some(_)) => None,
            (Schedule::Once | Schedule::Every(_), None) => Some(since_ms),
            (Schedule::Every(period_ms), Some(last)) => {
                let passed = (last.end_ms() - last.anchor_ms()) / period_ms;
                Some(last.anchor_ms() + (passed + 1) * period_ms)
            }
            (Schedule::Cron(cron), _) => {
                cron.next_due_after(last.map_or(since_ms, LastRun::end_ms))
            }
        }
    }

    /// The time between the next two due times, in milliseconds; `None` if there are not two.
    pub fn period_ms(&self, now_ms: i64) -> Option<i64> {
        match self {
            Schedule::Once => None,
            Schedule::Every(period_ms) => Some(*period_ms),
            Schedule::Cron(cron) => {
                let next_ms = cron.next_due_after(now_ms)?;
                Some(cron.next_due_after(next_ms)? - next_ms)
            }
        }
    }

    /// The number of due times that passed while the run was under way; with cron fields at most 200.
    pub fn count_skipped_during(&self, run: &LastRun) -> u64 {
        match self {
            Schedule::Once => 0,
            Schedule::Every(period_ms) => {
                ((run.end_ms() - run.anchor_ms()) / period_ms).max(0) as u64
            }
            Schedule::Cron(_) => {
                self.count_due_between(run.started_ms.max(run.due_ms), run.end_ms())
            }
        }
    }

    /// The number of due times after `after_ms` and up to `upto_ms`; with cron fields at most 200.
    pub fn count_due_between(&self, after_ms: i64, upto_ms: i64) -> u64 {
        match self {
            Schedule::Once => 0,
            Schedule::Every(period_ms) => ((upto_ms - after_ms) / period_ms).max(0) as u64,
            Schedule::Cron(cron) => {
                let next = |at_ms: &i64| cron.next_due_after(*at_ms);
                let due = std::iter::successors(cron.next_due_after(after_ms), next);
                let due = due.take_while(|at_ms| *at_ms <= upto_ms);
                due.take(MOST_COUNTED).count() as u64
            }
        }
    }
}

impl LastRun {
    /// The time that `every` counts from. A late run that makes up for a missed one starts a new count; smaller delays
    /// do not add up.
    fn anchor_ms(&self) -> i64 {
        match self.started_ms - self.due_ms {
            0..ON_TIME_MS => self.due_ms,
            _ => self.started_ms,
        }
    }

    /// When the run ended, but never before its start, in case the machine's clock was set back meanwhile.
    fn end_ms(&self) -> i64 {
        self.ended_ms.max(self.started_ms)
    }
}

impl Cron {
    /// Whether some allowed month has an allowed day. A schedule such as 30 February is never due.
    fn has_possible_date(&self) -> bool {
        let days_of = |month| match month {
            2 => 29,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        let is_by_weekday = self.days.is_star || !self.weekdays.is_star;
        let exists = |month| (1..=days_of(month)).any(|day| self.days.allows(day));
        is_by_weekday || (1..=12).any(|month| self.months.allows(month) && exists(month))
    }

    /// The first due time after this one.
    fn next_due_after(&self, after_ms: i64) -> Option<i64> {
        let after = Timestamp::from_millisecond(after_ms).ok()?;
        let shown = after.to_zoned(self.zone.clone()).datetime();
        // Starts a day earlier, because a clock change at midnight may repeat a part of the previous day.
        let mut date = shown.date().yesterday().ok()?;
        let earliest = shown.checked_sub(LARGEST_CHANGE_H.hours()).ok()?;
        for _ in 0..DAYS_AHEAD {
            let tomorrow = date.tomorrow().ok()?;
            if let Some(due) = self.first_due_on(date, (after, earliest)) {
                let next = self.first_due_on(tomorrow, (after, earliest));
                return Some(next.map_or(due, |next| due.min(next)).as_millisecond());
            }
            date = tomorrow;
        }
        None
    }

    /// The first due time on this date that is after `after`. All times that clocks show before `earliest` have passed
    /// by then.
    fn first_due_on(
        &self,
        date: Date,
        (after, earliest): (Timestamp, DateTime),
    ) -> Option<Timestamp> {
        if !self.matches_date(date) {
            return None;
        }
        let mut first: Option<Timestamp> = None;
        let mut latest: Option<DateTime> = None;
        for hour in (0..24).filter(|hour| self.hours.allows(*hour)) {
            for minute in (0..60).filter(|minute| self.minutes.allows(*minute)) {
                let shown = date.at(hour as i8, minute as i8, 0, 0);
                if shown < earliest {
                    continue;
                }
                if latest.is_some_and(|latest| shown > latest) {
                    return first;
                }
                for due in self.instants_of(shown).into_iter().flatten() {
                    if due > after && first.is_none_or(|first| due < first) {
                        first = Some(due);
                        latest = shown.checked_add(LARGEST_CHANGE_H.hours()).ok();
                    }
                }
            }
        }
        first
    }

    /// If both the day of the month and the day of the week are restricted, either is enough.
    fn matches_date(&self, date: Date) -> bool {
        let by_day = self.days.allows(date.day() as u32);
        let by_weekday = self
            .weekdays
            .allows(date.weekday().to_sunday_zero_offset() as u32);
        let is_day = match self.days.is_star || self.weekdays.is_star {
            true => by_day && by_weekday,
            false => by_day || by_weekday,
        };
        is_day && self.months.allows(date.month() as u32)
    }

    /// The instants when this clock time is due: none, one or two. The module's documentation has the rules.
    fn instants_of(&self, shown: DateTime) -> [Option<Timestamp>; 2] {
        let has_rhythm = self.hours.is_star;
        match self.zone.to_ambiguous_timestamp(shown).offset() {
            AmbiguousOffset::Unambiguous { offset } => [offset.to_timestamp(shown).ok(), None],
            AmbiguousOffset::Fold { before, after } => {
                let second = after.to_timestamp(shown).ok().filter(|_| has_rhythm);
                [before.to_timestamp(shown).ok(), second]
            }
            AmbiguousOffset::Gap { .. } if has_rhythm => [None, None],
            AmbiguousOffset::Gap { .. } => [self.end_of_gap(shown), None],
        }
    }

    /// The moment when clocks jump over this nonexistent time.
    fn end_of_gap(&self, within: DateTime) -> Option<Timestamp> {
        let mut shown = within;
        loop {
            shown = shown.checked_add(1.minute()).ok()?;
            let ambiguous = self.zone.to_ambiguous_timestamp(shown);
            if !matches!(ambiguous.offset(), AmbiguousOffset::Gap { .. }) {
                return ambiguous.compatible().ok();
            }
        }
    }
}

/// The time zone of this name in the IANA database: the system's, or else the one compiled in.
pub fn time_zone(name: &str) -> Result<TimeZone, String> {
    TimeZone::get(name).map_err(|_| {
        "expected the name of an IANA time zone, such as `Europe/Berlin` or `UTC`".into()
    })
}

#[cfg(test)]
mod tests;
