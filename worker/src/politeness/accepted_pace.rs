//! The pace that a site accepts, learnt from its refusals (429, 503). It is found by additive increase and
//! multiplicative decrease, like the rate of a TCP connection.
//!
//! A refusal doubles the time between two requests. Each other answer raises the rate a little again, up to just below
//! the rate that was refused last. The pace thus matches a limiter after a few refusals, and does not probe it again
//! and again. The learnt pace can only slow requests down: the configured delay always applies, too.
//!
//! A slow rate limiter refuses several requests in a row, each after a longer wait. Once it accepts requests again, the
//! number of requests that it answered before, and the time they took, give a rate that is too high. If all refusals in
//! a row are of one page, they count only if that page is answered in the end. Otherwise that page alone may be refused
//! forever.
//!
//! Some sites refuse now and then whatever the pace ([`Stretches`]). Nothing is learnt from their refusals.

use std::time::{Duration, Instant};

use super::PageKey;
use super::stretches::Stretches;

/// A refused spacing (time between two requests) counts as at least this long, because a short burst says little about
/// the rate that a site accepts.
const FASTEST_REFUSED: Duration = Duration::from_millis(50);

/// The longest time between two requests that is learnt from single refusals without a `Retry-After`. If a site refuses
/// even then, the pace may not be the cause.
const SLOWEST: Duration = Duration::from_secs(2);

/// The longest time between two requests that is learnt if many requests are answered with 429: at least
/// [`REFUSALS_IN_A_ROW`] in a row, or one after at most [`SOME_REFUSED`] answers.
const SLOWEST_OF_MANY: Duration = Duration::from_secs(60);
const REFUSALS_IN_A_ROW: u32 = 2;
const MANY_REFUSED: u32 = 3;
const SOME_REFUSED: u32 = 20;

/// The longest and the shortest time between two requests that is learnt from a `Retry-After` header.
const SLOWEST_NAMED: Duration = Duration::from_secs(60);
const FASTEST_NAMED: Duration = Duration::from_secs(1);

/// Each accepted request raises the rate by the last refused rate divided by this number.
const STEPS: f64 = 200.0;

/// For this long after a refusal, the rate stays below four fifths of the refused rate.
const REFUSAL_COUNTS_FOR: Duration = Duration::from_secs(3_600);

/// The pace that a site accepts, learnt from its refusals.
#[derive(Debug, Clone, Copy, Default)]
pub struct AcceptedPace {
    /// The learnt time between two requests; zero if nothing was learnt.
    spacing: Duration,
    /// The time between two requests when the site last refused one, and the moment of that refusal.
    refused: Option<(Duration, Instant)>,
    /// The time of the first answer since the last refusals, and the number of answers since then.
    answers: Option<(Instant, u32)>,
    too_many: Option<RefusalRun>,
    stretches: Stretches,
}

/// A row of answers with status 429.
#[derive(Debug, Clone, Copy)]
struct RefusalRun {
    length: u32,
    /// The time of the last refusal in this row.
    last: Instant,
    /// The page of the first refusal in this row; `None` for robots.txt.
    page: Option<PageKey>,
    is_of_one_page: bool,
}

impl AcceptedPace {
    /// Starts with a spacing (time between two requests) that another worker or an earlier run has learnt.
    pub fn from_spacing(spacing: Duration) -> AcceptedPace {
        AcceptedPace {
            spacing: spacing.min(SLOWEST_NAMED),
            ..AcceptedPace::default()
        }
    }

    /// The learnt time between two requests. The configured delay applies as well.
    pub fn spacing(&self) -> Duration {
        self.spacing
    }

    /// Whether anything was learnt, be it only that the site refuses requests at any pace.
    pub fn is_known(&self) -> bool {
        !self.spacing.is_zero() || self.stretches.have_other_cause()
    }

    pub fn note_refusal(&mut self, delay: Duration, retry_after: Option<Duration>, at: Instant) {
        if let Some(spacing) = self.stretches.note_refusal(self.spacing, at) {
            (self.spacing, self.refused) = (spacing, None);
            return;
        }
        let refused = delay.max(self.spacing).max(FASTEST_REFUSED);
        let answers = self.answers.filter(|_| self.too_many.is_some());
        let slower = match (retry_after, answers) {
            (Some(named), _) => (refused * 2).min(named.clamp(FASTEST_NAMED, SLOWEST_NAMED)),
            (None, Some((_, ..=MANY_REFUSED))) => (refused * 2).min(SLOWEST_OF_MANY),
            (None, Some((_, ..=SOME_REFUSED))) if refused >= SLOWEST => {
                (refused * 5 / 4).min(SLOWEST_OF_MANY)
            }
            (None, _) => (refused * 2).min(SLOWEST),
        };
        // The learnt spacing may already be longer, because of an earlier `Retry-After`.
        self.spacing = slower.max(self.spacing);
        self.refused = Some((refused, at));
    }

    /// Notes a request that was answered with 429: there were too many requests.
    pub fn note_too_many(&mut self, page: Option<PageKey>, at: Instant) {
        let row = self.too_many.get_or_insert(RefusalRun {
            length: 0,
            last: at,
            page,
            is_of_one_page: true,
        });
        row.length = row.length.saturating_add(1);
        row.last = at;
        row.is_of_one_page &= row.page == page;
    }

    pub fn note_served(&mut self, page: Option<PageKey>, at: Instant) {
        self.learn_from_row(page);
        self.stretches.note_served(at);
        let (since, answers) = self.answers.unwrap_or((at, 0));
        self.answers = Some((since, answers.saturating_add(1)));
        self.raise_pace(at);
    }

    /// Learns from a row of refusals, now that the site answers requests again.
    fn learn_from_row(&mut self, served: Option<PageKey>) {
        let Some(row) = self.too_many.take() else {
            return;
        };
        let Some((since, answers)) = self.answers.take() else {
            return;
        };
        let may_be_closed = row.is_of_one_page && row.page != served;
        if row.length < REFUSALS_IN_A_ROW || may_be_closed || self.stretches.have_other_cause() {
            return;
        }
        let refused = row.last.duration_since(since) / answers.max(1);
        let refused = refused.min(SLOWEST_OF_MANY * 4 / 5);
        if refused > self.spacing {
            self.spacing = refused * 5 / 4;
            // The refused requests may have come faster than `refused` says, so half of it is noted as the refused
            // spacing.
            self.refused = Some((refused / 2, row.last));
        }
    }

    fn raise_pace(&mut self, at: Instant) {
        if self.spacing.is_zero() {
            return;
        }
        let refused = self
            .refused
            .map_or(self.spacing / 2, |(spacing, _)| spacing);
        let (spacing_s, refused_s) = (self.spacing.as_secs_f64(), refused.as_secs_f64());
        let rate = 1.0 / spacing_s + 1.0 / (STEPS * refused_s);
        let raised = Duration::from_secs_f64(1.0 / rate);
        let least = match self.refused {
            Some((refused, when)) if at < when + REFUSAL_COUNTS_FOR => refused * 5 / 4,
            _ => Duration::ZERO,
        };
        self.spacing = raised.max(least).min(self.spacing);
        if self.spacing < FASTEST_REFUSED {
            (self.spacing, self.refused) = (Duration::ZERO, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::TokenBucket;
    use super::*;

    /// Simulates this many requests to a rate limiter. Returns the numbers of the refused requests, and the rate of the
    /// second half.
    fn simulate_refusals(
        per_second: f64,
        burst: f64,
        delay: Duration,
        retry_after: Option<Duration>,
        requests: usize,
    ) -> (Vec<usize>, f64) {
        let start = Instant::now();
        let mut bucket = TokenBucket::new(per_second, burst, start);
        let mut pace = AcceptedPace::default();
        let (mut at, mut half) = (start, start);
        let mut refused = Vec::new();
        let mut in_a_row = 0;
        for number in 0..requests {
            let page = Some(PageKey::from_url(&number.to_string()));
            if number == requests / 2 {
                half = at;
            }
            let latency = Duration::from_millis(2);
            let mut wait = Duration::ZERO;
            if bucket.try_request(at) {
                pace.note_served(page, at);
                in_a_row = 0;
            } else {
                refused.push(number);
                pace.note_too_many(page, at);
                if in_a_row == 0 {
                    pace.note_refusal(delay, retry_after, at);
                }
                wait = retry_after.unwrap_or_default();
                wait = wait.max(Duration::from_secs(1) * 2u32.pow(in_a_row));
                in_a_row += 1;
            }
            at += latency + wait.max(delay.max(pace.spacing()));
        }
        let rate = (requests / 2) as f64 / at.duration_since(half).as_secs_f64();
        (refused, rate)
    }

    #[test]
    fn the_pace_of_a_limiter_is_learnt_after_a_few_refusals() {
        let second = Some(Duration::from_secs(1));
        for (per_second, burst, delay_ms, retry_after) in [
            (5.0, 1.0, 0, None),
            (5.0, 1.0, 0, second),
            (5.0, 5.0, 0, second),
            (5.0, 10.0, 50, None),
            (5.0, 20.0, 0, second),
            (2.0, 1.0, 0, None),
            (1.0, 5.0, 200, second),
            (10.0, 1.0, 0, second),
        ] {
            let what = format!("{per_second}/s, burst {burst}, delay {delay_ms} ms");
            let delay = Duration::from_millis(delay_ms);
            let (refused, rate) = simulate_refusals(per_second, burst, delay, retry_after, 2_000);
            assert!(refused.len() <= 8, "{what}: {refused:?}");
            assert!(
                refused.iter().all(|number| *number < 400),
                "{what}: {refused:?}"
            );
            assert!(rate > 0.6 * per_second, "{what}: {rate:.2}/s");
        }
    }

    /// The limiter is slower than the longest wait that is learnt from single refusals.
    #[test]
    fn the_pace_of_a_slow_limiter_is_learnt_without_retry_after() {
        for (per_second, burst, delay_ms) in [
            (0.3, 1.0, 0),
            (0.2, 1.0, 100),
            (0.2, 5.0, 200),
            (0.1, 1.0, 0),
            (0.05, 3.0, 1_000),
        ] {
            let what = format!("{per_second}/s, burst {burst}, delay {delay_ms} ms");
            let delay = Duration::from_millis(delay_ms);
            let (refused, rate) = simulate_refusals(per_second, burst, delay, None, 300);
            assert!(refused.len() <= 20, "{what}: {refused:?}");
            assert!(rate > 0.6 * per_second, "{what}: {rate:.2}/s");
        }
    }

    #[test]
    fn a_site_whose_pages_fail_for_other_causes_is_slowed_down_within_bounds() {
        let (mut pace, at) = (AcceptedPace::default(), Instant::now());
        for number in 0..1_000 {
            match number % 25 {
                0 => {
                    pace.note_too_many(None, at);
                    pace.note_refusal(Duration::ZERO, None, at);
                }
                // Servers that are overloaded send 503 without counting requests.
                5 | 10 | 15 => pace.note_refusal(Duration::ZERO, None, at),
                _ => pace.note_served(None, at),
            }
        }
        assert!(pace.spacing() <= SLOWEST);
        pace.note_refusal(Duration::ZERO, Some(Duration::from_secs(3_600)), at);
        assert!(pace.spacing() <= SLOWEST_NAMED);
    }

    #[test]
    fn the_learnt_pace_is_forgotten_when_the_site_accepts_more() {
        let (mut pace, at) = (AcceptedPace::default(), Instant::now());
        pace.note_refusal(Duration::ZERO, None, at);
        assert!(pace.is_known());
        let later = at + REFUSAL_COUNTS_FOR;
        for _ in 0..1_000 {
            pace.note_served(None, later);
        }
        assert!(!pace.is_known());
    }

    #[test]
    fn a_row_of_one_page_counts_only_if_that_page_is_served_in_the_end() {
        let page = |name| Some(PageKey::from_url(name));
        for (row, served, is_learnt) in [
            (["closed", "closed"], "other", false),
            (["limited", "limited"], "limited", true),
            (["one", "two"], "other", true),
        ] {
            let (mut pace, start) = (AcceptedPace::default(), Instant::now());
            pace.note_served(None, start);
            for (number, name) in (1..).zip(row) {
                pace.note_too_many(page(name), start + number * Duration::from_secs(10));
            }
            pace.note_served(page(served), start + Duration::from_secs(30));
            assert_eq!(pace.is_known(), is_learnt, "{row:?}, then {served}");
        }
    }
}
