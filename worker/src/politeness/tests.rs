//! Whole sites, paced by their clocks: pages that are closed for good among others, and limiters.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::*;
use crate::now::Now;

/// A server that accepts a number of requests per second, and a number at once.
pub(super) struct TokenBucket {
    per_second: f64,
    burst: f64,
    tokens: f64,
    at: Instant,
}

impl TokenBucket {
    pub(super) fn new(per_second: f64, burst: f64, at: Instant) -> TokenBucket {
        TokenBucket {
            per_second,
            burst,
            tokens: burst,
            at,
        }
    }

    pub(super) fn accepts(&mut self, at: Instant) -> bool {
        let since = at.duration_since(self.at).as_secs_f64();
        self.tokens = (self.tokens + since * self.per_second).min(self.burst);
        self.at = at;
        let accepts = self.tokens >= 1.0;
        self.tokens -= f64::from(u8::from(accepts));
        accepts
    }
}

/// The pages of one site.
struct Pages {
    number: u32,
    /// These are always refused.
    closed: &'static [u32],
    refusal: Answer,
    /// Requests a second that a limiter accepts, and at once; beyond that it refuses with 429.
    limit: Option<(f64, f64)>,
    delay: Duration,
}

/// The cost of crawling a site.
struct Cost {
    seconds: f64,
    refused_by_limiter: usize,
    spacing: Duration,
}

const LATENCY: Duration = Duration::from_millis(2);

/// Each page is requested until it is served, a closed one this many times. A refused page is requested again after
/// this many others.
const MOST_TRIES: usize = 20;
const OTHERS_BETWEEN: usize = 2;

fn crawl(pages: &Pages) -> Cost {
    let start = Instant::now();
    let pace = Pace {
        delay: pages.delay,
        longest_wait: Duration::from_secs(86_400),
        is_adaptive: true,
    };
    let limit = pages.limit;
    let mut bucket = limit.map(|(per_second, burst)| TokenBucket::new(per_second, burst, start));
    let (mut clock, mut at, mut refused_by_limiter) = (Clock::default(), start, 0);
    let mut queue: VecDeque<(u32, usize)> = (0..pages.number).map(|page| (page, 1)).collect();
    while let Some((page, tries)) = queue.pop_front() {
        at = clock.next(pages.delay).map_or(at, |next| next.max(at));
        let started = Now {
            instant: at,
            wall_ms: 0,
        };
        let is_closed = pages.closed.contains(&page);
        let is_limited = !bucket.as_mut().is_none_or(|bucket| bucket.accepts(at));
        refused_by_limiter += usize::from(is_limited);
        let answer = match (is_limited, is_closed) {
            (true, _) => Answer::TooMany { retry_after: None },
            (false, true) => pages.refusal,
            (false, false) => Answer::Served,
        };
        at += LATENCY;
        let page_key = Some(PageKey::of(&page.to_string()));
        let answered = Answered {
            started,
            at,
            answer,
            page: page_key,
        };
        clock.answered(answered, pace);
        let is_over = answer == Answer::Served || (is_closed && tries == MOST_TRIES);
        if !is_over {
            queue.insert(OTHERS_BETWEEN.min(queue.len()), (page, tries + 1));
        }
        // Only closed pages are left, and their cost no longer delays others.
        if queue.iter().all(|(page, _)| pages.closed.contains(page)) {
            break;
        }
    }
    Cost {
        seconds: at.duration_since(start).as_secs_f64(),
        refused_by_limiter,
        spacing: clock.spacing(pages.delay),
    }
}

fn seconds(seconds: u64) -> Option<Duration> {
    Some(Duration::from_secs(seconds))
}

#[test]
fn closed_pages_do_not_slow_down_the_others() {
    let too_many = |retry_after| Answer::TooMany { retry_after };
    let overloaded = |retry_after| Answer::Overloaded { retry_after };
    let second = Duration::from_secs(1);
    let refused = Answer::Refused {
        retry_after: second,
    };
    for (number, closed, refusal, delay, most_seconds) in [
        (12, &[0][..], too_many(None), second, 40.0),
        (12, &[6], too_many(None), second, 40.0),
        (12, &[6], too_many(seconds(2)), second, 40.0),
        (12, &[6], overloaded(None), second, 40.0),
        (12, &[6], overloaded(seconds(2)), second, 40.0),
        (12, &[6], refused, second, 40.0),
        (12, &[3, 8], too_many(None), second, 80.0),
        (12, &[3, 4], too_many(None), second, 80.0),
        (12, &[3, 8], overloaded(seconds(2)), second, 80.0),
        (1_000, &[500], too_many(None), Duration::ZERO, 120.0),
    ] {
        let pages = Pages {
            number,
            closed,
            refusal,
            limit: None,
            delay,
        };
        let cost = crawl(&pages);
        let case = format!("{closed:?} of {number} answer {refusal:?}");
        assert!(
            cost.seconds <= most_seconds,
            "{case}: {:.1} s",
            cost.seconds
        );
    }
}

#[test]
fn limiters_are_still_met() {
    for (number, per_second, burst, closed) in [
        (12, 0.05, 3.0, &[][..]),
        (12, 0.2, 1.0, &[]),
        (40, 0.2, 1.0, &[]),
        (400, 2.0, 5.0, &[]),
        (400, 5.0, 1.0, &[]),
        (400, 2.0, 5.0, &[100]),
        (400, 2.0, 5.0, &[100, 200]),
    ] {
        let pages = Pages {
            number,
            closed,
            refusal: Answer::TooMany { retry_after: None },
            limit: Some((per_second, burst)),
            delay: Duration::from_millis(100),
        };
        let cost = crawl(&pages);
        let case = format!("{number} pages at {per_second}/s, burst {burst}, closed {closed:?}");
        let least = f64::from(number) / per_second;
        assert!(cost.seconds <= 2.0 * least, "{case}: {:.1} s", cost.seconds);
        let refused = cost.refused_by_limiter;
        assert!(refused <= 20, "{case}: {refused} refused");
        let accepted = Duration::from_secs_f64(1.0 / per_second);
        assert!(cost.spacing * 2 > accepted, "{case}: {:?}", cost.spacing);
    }
}
