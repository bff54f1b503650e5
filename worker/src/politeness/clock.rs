//! The clock of one site ([`Clock`]) says when the site's next request may start.
//!
//! The delay counts from the moment the server's answer began (or the attempt ended without one), never from the start
//! of a request. Otherwise a slow connect would shorten the pause that the server sees. A site belongs to one worker,
//! and only that worker's clock decides about its requests. The dispatcher and the shared cache hold copies, so that
//! another worker can take over. Every moment is passed in; a clock never reads the time itself.

use std::time::{Duration, Instant};

use super::refused_pages::RefusedPages;
use super::{AcceptedPace, Answer, Answered, Pace};

/// The clock of a site, which says when the site's next request may start.
#[derive(Debug, Clone, Default)]
pub struct Clock {
    /// When the last answer began, or when the last attempt ended without one.
    last: Option<Instant>,
    /// The same time as `last`, but only of requests for pages.
    last_page: Option<Instant>,
    /// No request may start before this moment, whatever the delay says.
    not_before: Option<Instant>,
    /// The number of failed requests in a row.
    failures: u32,
    accepted: AcceptedPace,
    refused_pages: RefusedPages,
}

/// The shortest backoff of a site that is overloaded or whose robots.txt is unavailable, even if the delay is zero.
const LEAST_BACK_OFF: Duration = Duration::from_secs(1);

/// The longest wait after a single refusal, even with a longer `Retry-After`, because it may concern only one page. If
/// the next request is refused, too, the `Retry-After` is kept in full.
const BELIEVED_AT_ONCE: Duration = Duration::from_secs(60);

/// How long a row of failures still counts after the wait that it led to.
const FAILURES_COUNT_FOR: Duration = Duration::from_secs(60);

/// How long the pace that a site accepts is remembered after its last request. After that, only the cache has it.
const ACCEPTED_PACE_COUNTS_FOR: Duration = Duration::from_secs(600);

/// How many times the wait may double with failures in a row. A site that does not answer waits up to 8 delays, so that
/// the many URLs of a dead site come to an end. An overloaded site waits up to 64 delays.
const MOST_DOUBLINGS_SILENT: u32 = 3;
const MOST_DOUBLINGS_OVERLOADED: u32 = 6;

impl Clock {
    /// When the next request may start, with `delay` between two requests.
    pub fn next_start(&self, delay: Duration) -> Option<Instant> {
        let paced = self.last.map(|last| last + self.spacing(delay));
        paced.max(self.not_before)
    }

    /// The time between two requests: `delay`, or more if the site accepts only fewer requests.
    pub fn spacing(&self, delay: Duration) -> Duration {
        delay.max(self.accepted.spacing())
    }

    pub fn accepted_pace(&self) -> AcceptedPace {
        self.accepted
    }

    /// Takes over the accepted pace learnt by another worker or an earlier run.
    pub fn set_accepted_pace(&mut self, spacing: Duration) {
        if !self.accepted.is_known() {
            self.accepted = AcceptedPace::from_spacing(spacing);
        }
    }

    /// When a page may be requested after the robots.txt that was just answered.
    pub fn next_start_after_robots(&self, delay: Duration) -> Option<Instant> {
        let paced = self.last_page.map(|last| last + self.spacing(delay));
        paced.max(self.not_before)
    }

    /// Forgets all reasons to wait (`Retry-After`, backoff, holds, the accepted pace) except the delay.
    pub fn forget_back_off(&mut self) {
        self.not_before = None;
        self.failures = 0;
        self.accepted = AcceptedPace::default();
        self.refused_pages = RefusedPages::default();
    }

    /// Notes that another worker may have been requesting the site until `at`.
    pub fn note_foreign_request(&mut self, at: Instant) {
        self.last = self.last.max(Some(at));
        self.last_page = self.last_page.max(Some(at));
    }

    /// Notes that a request for a page was answered at this time, or ended without an answer.
    pub fn note_page_answer(&mut self, at: Instant) {
        self.last_page = self.last_page.max(Some(at));
    }

    /// Allows no request before `instant`, which comes from the dispatcher or the shared cache.
    pub fn hold_until(&mut self, instant: Instant) {
        self.not_before = self.not_before.max(Some(instant));
    }

    /// Notes that a request was answered, or ended without an answer.
    pub fn note_answer(&mut self, request: Answered, pace: Pace) {
        self.last = self.last.max(Some(request.at));
        let wait = match request.answer {
            Answer::Served => {
                self.failures = 0;
                self.accepted.note_served(request.page, request.at);
                if let Some(page) = request.page {
                    self.refused_pages.note_served(page);
                }
                Duration::ZERO
            }
            Answer::Redirect => Duration::ZERO,
            Answer::Silent => self.back_off(pace.delay, MOST_DOUBLINGS_SILENT),
            Answer::NoRules => self.back_off(pace.delay.max(LEAST_BACK_OFF), MOST_DOUBLINGS_SILENT),
            Answer::Overloaded { retry_after } | Answer::TooMany { retry_after } => {
                self.note_refusal(request, pace.delay, retry_after)
            }
            Answer::Refused { retry_after } => {
                let believed = match self.failures {
                    0 => retry_after.min(BELIEVED_AT_ONCE),
                    _ => retry_after,
                };
                self.note_refusal(request, pace.delay, Some(believed))
            }
        };
        let wait = match pace.is_adaptive {
            true => wait.max(request.response_time()),
            false => wait,
        };
        if !wait.is_zero() {
            self.hold_until(request.at + wait.min(pace.longest_wait));
        }
    }

    /// Returns how long to wait after a refused request.
    fn note_refusal(
        &mut self,
        request: Answered,
        delay: Duration,
        retry_after: Option<Duration>,
    ) -> Duration {
        let is_own = request
            .page
            .map(|page| self.refused_pages.note_refused(page));
        if is_own != Some(true) {
            self.learn_from_refusal(request, delay, retry_after);
        }
        let base = delay.max(LEAST_BACK_OFF);
        let own = self.back_off(base, MOST_DOUBLINGS_OVERLOADED);
        // The wait that the server demands is a minimum: even if it is short, the wait doubles after each failure.
        own.max(retry_after.unwrap_or_default())
    }

    fn learn_from_refusal(
        &mut self,
        request: Answered,
        delay: Duration,
        retry_after: Option<Duration>,
    ) {
        // If the server names a time (`Retry-After`), the pace is learnt from that alone.
        if matches!(request.answer, Answer::TooMany { retry_after: None }) {
            self.accepted.note_too_many(request.page, request.at);
        }
        // Only the first refusal in a row counts here. Each further one comes after a backoff, so the cause is an
        // outage rather than the pace.
        if self.failures == 0 {
            self.accepted.note_refusal(delay, retry_after, request.at);
        }
    }

    /// The length of a backoff, which doubles with each failure in a row.
    fn back_off(&mut self, base: Duration, most_doublings: u32) -> Duration {
        let wait = base * 2u32.pow(self.failures.min(most_doublings));
        self.failures = self.failures.saturating_add(1);
        wait
    }

    /// When the clock can be forgotten: nothing delays the next request, and earlier failures no longer count. `None`
    /// if the clock is empty.
    pub fn expires_at(&self, delay: Duration) -> Option<Instant> {
        let next = self.next_start(delay)?;
        Some(match self.failures {
            _ if self.accepted.is_known() => next + ACCEPTED_PACE_COUNTS_FOR,
            0 => next,
            _ => next + FAILURES_COUNT_FOR,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::now::Now;
    use crate::politeness::Answer;

    const SECOND: Duration = Duration::from_secs(1);
    const LONGEST: Duration = Duration::from_secs(1_000);
    const PACE: Pace = Pace {
        delay: SECOND,
        longest_wait: LONGEST,
        is_adaptive: true,
    };

    #[test]
    fn the_delay_counts_from_the_answer() {
        let mut clock = Clock::default();
        assert_eq!(clock.next_start(SECOND), None);
        let answer_at = Instant::now() + 5 * SECOND;
        clock.note_answer(quick_answer(answer_at, Answer::Served), PACE);
        assert_eq!(clock.next_start(SECOND), Some(answer_at + SECOND));
        assert_eq!(clock.next_start(3 * SECOND), Some(answer_at + 3 * SECOND));
    }

    #[test]
    fn an_overloaded_site_is_left_alone_as_long_as_it_asks() {
        let at = Instant::now();
        let mut clock = Clock::default();
        let asked = Answer::Overloaded {
            retry_after: Some(20 * SECOND),
        };
        clock.note_answer(quick_answer(at, asked), PACE);
        assert_eq!(clock.next_start(SECOND), Some(at + 20 * SECOND));
        let too_much = Answer::Overloaded {
            retry_after: Some(5_000 * SECOND),
        };
        clock.note_answer(quick_answer(at, too_much), PACE);
        assert_eq!(clock.next_start(SECOND), Some(at + LONGEST));
    }

    #[test]
    fn a_retry_after_counts_for_a_minute_at_the_first_refusal_and_fully_at_the_second() {
        let at = Instant::now();
        let mut clock = Clock::default();
        let refused = Answer::Refused {
            retry_after: 900 * SECOND,
        };
        clock.note_answer(quick_answer(at, refused), PACE);
        assert_eq!(clock.next_start(SECOND), Some(at + 60 * SECOND));
        let again = at + 60 * SECOND;
        clock.note_answer(quick_answer(again, refused), PACE);
        assert_eq!(clock.next_start(SECOND), Some(again + 900 * SECOND));
    }

    #[test]
    fn repeated_failures_wait_longer_until_one_request_is_served() {
        let at = Instant::now();
        let mut clock = Clock::default();
        for wait in [1, 2, 4, 8, 8] {
            clock.note_answer(quick_answer(at, Answer::Silent), PACE);
            assert_eq!(clock.next_start(SECOND), Some(at + wait * SECOND));
        }
        let later = at + 100 * SECOND;
        clock.note_answer(quick_answer(later, Answer::Served), PACE);
        clock.note_answer(quick_answer(later, Answer::Silent), PACE);
        assert_eq!(clock.next_start(SECOND), Some(later + SECOND));
    }

    #[test]
    fn a_page_need_not_wait_for_its_robots_txt_but_for_the_page_before() {
        let at = Instant::now();
        let mut clock = Clock::default();
        clock.note_answer(quick_answer(at, Answer::Served), PACE);
        assert_eq!(clock.next_start_after_robots(SECOND), None);
        clock.note_page_answer(at);
        clock.note_answer(quick_answer(at + SECOND, Answer::Served), PACE);
        assert_eq!(
            clock.next_start_after_robots(5 * SECOND),
            Some(at + 5 * SECOND)
        );
        clock.note_foreign_request(at + 2 * SECOND);
        assert_eq!(
            clock.next_start_after_robots(5 * SECOND),
            Some(at + 7 * SECOND)
        );
        assert_eq!(clock.next_start(SECOND), Some(at + 3 * SECOND));
    }

    #[test]
    fn a_site_without_delay_still_backs_off_when_it_is_overloaded() {
        let at = Instant::now();
        let mut clock = Clock::default();
        let overloaded = Answer::Overloaded { retry_after: None };
        clock.note_answer(quick_answer(at, overloaded), NO_DELAY);
        assert_eq!(clock.next_start(Duration::ZERO), Some(at + SECOND));
    }

    #[test]
    fn a_named_wait_is_a_minimum_and_no_maximum() {
        let (mut clock, mut at) = (Clock::default(), Instant::now());
        let overloaded = Answer::Overloaded {
            retry_after: Some(SECOND),
        };
        for wait in [1, 2, 4, 8, 16, 32, 64, 64] {
            clock.note_answer(quick_answer(at, overloaded), NO_DELAY);
            assert_eq!(clock.next_start(Duration::ZERO), Some(at + wait * SECOND));
            at += wait * SECOND;
        }
    }

    #[test]
    fn after_a_slow_answer_the_site_is_left_alone_for_as_long() {
        let started = Now::read();
        let slow = |took: Duration, answer| Answered {
            started,
            at: started.instant + took,
            answer,
            page: None,
        };
        let next = |request: Answered, pace| {
            let mut clock = Clock::default();
            clock.note_answer(request, pace);
            clock.next_start(SECOND)
        };
        let served = slow(5 * SECOND, Answer::Served);
        assert_eq!(next(served, PACE), Some(served.at + 5 * SECOND));
        let steady = Pace {
            is_adaptive: false,
            ..PACE
        };
        assert_eq!(next(served, steady), Some(served.at + SECOND));
        let very_slow = slow(5_000 * SECOND, Answer::Served);
        assert_eq!(next(very_slow, PACE), Some(very_slow.at + LONGEST));
        let silent = slow(60 * SECOND, Answer::Silent);
        assert_eq!(next(silent, PACE), Some(silent.at + SECOND));
    }

    /// The clock is not forgotten while the site has no task for a moment. Otherwise the cause of its refusals would
    /// have to be learnt again.
    #[test]
    fn a_clock_is_kept_for_a_while_once_refusals_have_another_cause() {
        let (mut clock, mut at) = (Clock::default(), Instant::now());
        for request in 1..2_000 {
            at += clock.spacing(Duration::ZERO) + SECOND / 500;
            let answer = match request % 100 {
                0 => Answer::Overloaded { retry_after: None },
                _ => Answer::Served,
            };
            clock.note_answer(quick_answer(at, answer), NO_DELAY);
        }
        assert_eq!(clock.spacing(Duration::ZERO), Duration::ZERO);
        assert_eq!(
            clock.expires_at(Duration::ZERO),
            clock
                .next_start(Duration::ZERO)
                .map(|next| next + ACCEPTED_PACE_COUNTS_FOR)
        );
        clock.set_accepted_pace(SECOND);
        assert_eq!(clock.spacing(Duration::ZERO), Duration::ZERO);
    }

    #[test]
    fn a_redirect_on_the_way_to_robots_txt_does_not_end_a_row_of_failures() {
        let (mut clock, at) = (Clock::default(), Instant::now());
        for wait in [1, 2, 4] {
            clock.note_answer(quick_answer(at, Answer::Redirect), NO_DELAY);
            clock.note_answer(quick_answer(at, Answer::NoRules), NO_DELAY);
            assert_eq!(clock.next_start(Duration::ZERO), Some(at + wait * SECOND));
        }
    }

    const NO_DELAY: Pace = Pace {
        delay: Duration::ZERO,
        ..PACE
    };

    /// Makes a request that was answered immediately.
    fn quick_answer(at: Instant, answer: Answer) -> Answered {
        let started = Now {
            instant: at,
            wall_ms: 0,
        };
        Answered {
            started,
            at,
            answer,
            page: None,
        }
    }
}
