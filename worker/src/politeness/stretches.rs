//! Finds out whether a site's refusals depend on the pace of requests at all ([`Stretches`]). Some sites refuse every
//! few hundred requests, or at random, however slowly the requests come.
//!
//! A *stretch* is a row of answers together with the refusals that end it. A rate limiter accepts requests up to its
//! rate, and never refuses requests that come more slowly. So if a site has once accepted a much faster pace over two
//! stretches, a refusal at a slow pace has another cause. The stretch with fewer answers counts for both, because a
//! limiter may have accepted a burst in the other one.

use std::time::{Duration, Instant};

/// The number of answers that a stretch (a row of answers up to a refusal) must have to count; shorter ones say little.
const LEAST_ANSWERS: u32 = 5;

/// How many times slower than the fastest accepted pace a refused stretch must be, so that its refusal has another
/// cause.
const SLOWER: f64 = 4.0;

/// A gap between two answers is a pause if it is longer than this plus [`USUAL_GAPS`] usual gaps. A rate limiter may
/// accept more requests after a pause.
const PAUSE: Duration = Duration::from_secs(5);
const USUAL_GAPS: u32 = 4;

/// How long refusals are assumed to have another cause than the pace. The assumption ends earlier after
/// [`SHORT_IN_A_ROW`] short stretches in a row.
const COUNTS_FOR: Duration = Duration::from_secs(3_600);
const SHORT_IN_A_ROW: u32 = 3;

/// The stretches of one site: rows of answers, each with the refusals that end it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stretches {
    current: Option<Stretch>,
    /// The previous stretch, with the time up to the next answer.
    before: Option<(Stretch, Duration)>,
    /// The fastest pace that the site has accepted over two stretches.
    fastest: Option<Answered>,
    other_cause: Option<OtherCause>,
}

#[derive(Debug, Clone, Copy)]
struct Stretch {
    since: Instant,
    last_answer: Instant,
    answers: u32,
    had_pause: bool,
    /// Whether a refusal has ended the stretch.
    is_refused: bool,
    /// The learnt time between two requests at the moment of the refusal.
    spacing: Duration,
}

#[derive(Debug, Clone, Copy)]
struct Answered {
    per_second: f64,
    /// The learnt time between two requests that led to this pace.
    spacing: Duration,
}

#[derive(Debug, Clone, Copy)]
struct OtherCause {
    since: Instant,
    short_in_a_row: u32,
}

impl Stretches {
    /// Notes a refusal that follows an answer. `spacing` is the learnt time between two requests. If the refusal has
    /// another cause than the pace, returns the earlier spacing, which then applies again.
    pub(super) fn note_refusal(&mut self, spacing: Duration, at: Instant) -> Option<Duration> {
        let current = self.current.as_mut()?;
        current.is_refused = true;
        current.spacing = spacing;
        if let Some(cause) = &mut self.other_cause {
            cause.short_in_a_row = match current.is_conclusive() {
                true => 0,
                false => cause.short_in_a_row + 1,
            };
            if cause.short_in_a_row < SHORT_IN_A_ROW && at < cause.since + COUNTS_FOR {
                return Some(spacing);
            }
            (self.other_cause, self.fastest, self.before) = (None, None, None);
        }
        let fastest = self.fastest?;
        let took = at.duration_since(current.since).as_secs_f64();
        let per_second = f64::from(current.answers) / took;
        if current.had_pause || per_second * SLOWER > fastest.per_second {
            return None;
        }
        self.other_cause = Some(OtherCause {
            since: at,
            short_in_a_row: 0,
        });
        Some(fastest.spacing)
    }

    /// Whether the site is known to refuse requests at any pace.
    pub(super) fn have_other_cause(&self) -> bool {
        self.other_cause.is_some()
    }

    pub(super) fn note_served(&mut self, at: Instant) {
        match &mut self.current {
            Some(current) if !current.is_refused => current.count_answer(at),
            Some(ended) => {
                let ended = (*ended, at.duration_since(ended.since));
                self.update_fastest(ended);
                self.before = Some(ended);
                self.current = Some(Stretch::from(at));
            }
            None => self.current = Some(Stretch::from(at)),
        }
    }

    fn update_fastest(&mut self, (ended, took): (Stretch, Duration)) {
        let Some((before, took_before)) = self.before else {
            return;
        };
        if !before.is_conclusive() || !ended.is_conclusive() {
            return;
        }
        let answers = 2 * before.answers.min(ended.answers);
        let answered = Answered {
            per_second: f64::from(answers) / (took + took_before).as_secs_f64(),
            spacing: before.spacing.max(ended.spacing),
        };
        let fastest = self.fastest.get_or_insert(answered);
        if answered.per_second > fastest.per_second {
            *fastest = answered;
        }
    }
}

impl Stretch {
    fn from(at: Instant) -> Stretch {
        Stretch {
            since: at,
            last_answer: at,
            answers: 1,
            had_pause: false,
            is_refused: false,
            spacing: Duration::ZERO,
        }
    }

    fn count_answer(&mut self, at: Instant) {
        let usual = self.last_answer.duration_since(self.since) / self.answers;
        let gap = at.duration_since(self.last_answer);
        self.had_pause |= gap > PAUSE + usual * USUAL_GAPS;
        self.last_answer = at;
        self.answers = self.answers.saturating_add(1);
    }

    fn is_conclusive(&self) -> bool {
        self.answers >= LEAST_ANSWERS && !self.had_pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates stretches, each given by its number of answers and their spacing in milliseconds. A refusal and a wait
    /// end each stretch. Returns whether the refusals are found to have another cause.
    fn has_other_cause(stretches: &[(u32, u64)], pause: Duration) -> bool {
        let (mut found, mut at) = (Stretches::default(), Instant::now());
        for (answers, spacing) in stretches {
            let spacing = Duration::from_millis(*spacing);
            for _ in 0..*answers {
                found.note_served(at);
                at += spacing;
            }
            at += pause;
            found.note_served(at);
            found.note_refusal(spacing, at + spacing);
            at += Duration::from_secs(1);
        }
        found.have_other_cause()
    }

    #[test]
    fn refusals_at_a_much_slower_pace_have_another_cause_than_the_pace() {
        let long = Duration::from_secs(600);
        for (case, stretches, pause, expected) in [
            (
                "as many",
                &[(100, 10), (100, 20), (100, 400)][..],
                Duration::ZERO,
                true,
            ),
            (
                "fewer",
                &[(100, 10), (100, 20), (3, 400)],
                Duration::ZERO,
                true,
            ),
            (
                "one before",
                &[(100, 10), (100, 400)],
                Duration::ZERO,
                false,
            ),
            (
                "hardly slower",
                &[(100, 10), (100, 20), (100, 40)],
                Duration::ZERO,
                false,
            ),
            (
                "a burst before",
                &[(1_000, 10), (3, 20), (3, 400)],
                Duration::ZERO,
                false,
            ),
            (
                "a limiter that recovers",
                &[(100, 10), (100, 20), (100, 400)],
                long,
                false,
            ),
        ] {
            assert_eq!(has_other_cause(stretches, pause), expected, "{case}");
        }
    }

    #[test]
    fn short_stretches_in_a_row_indicate_a_limiter_again() {
        let mut stretches = vec![(100, 10), (100, 20), (100, 400), (100, 10)];
        for short in [true, true, false] {
            stretches.push((1, 10));
            assert_eq!(has_other_cause(&stretches, Duration::ZERO), short);
        }
    }
}
