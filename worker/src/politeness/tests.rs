//! Simulates crawls of whole sites at the pace that their clocks allow. Some sites have rate limiters, and some have
//! pages that are always refused.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::*;
use crate::now::Now;

/// A simulated rate limiter that accepts a number of requests per second, and bursts up to a limit.
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

    pub(super) fn try_request(&mut self, at: Instant) -> bool {
        let since = at.duration_since(self.at).as_secs_f64();
        self.tokens = (self.tokens + since * self.per_second).min(self.burst);
        self.at = at;
        let accepts = self.tokens >= 1.0;
        self.tokens -= f64::from(u8::from(accepts));
        accepts
    }
}

/// A simulated site: its number of pages, which of them are refused, and its limits.
struct Pages {
    number: u32,
    /// The pages that are always refused.
    closed: &'static [u32],
    refusal: Answer,
    /// The rate limit of the site; it refuses requests beyond the limit with 429.
    limit: Limit,
    blocks: Blocks,
    delay: Duration,
}

#[derive(Debug, Clone, Copy)]
enum Limit {
    None,
    /// A token bucket: requests per second, and the size of a burst.
    Bucket(f64, f64),
    /// A fixed window: the number of requests in each window, and the window's length in seconds.
    Window(u32, u64),
    /// For `Penalty(most, within, penalty)`: after more than `most` requests within `within` seconds, all requests are
    /// refused for `penalty` seconds.
    Penalty(usize, u64, u64),
}

impl Limit {
    fn begin(self, start: Instant) -> Limiter {
        match self {
            Limit::None => Limiter::None,
            Limit::Bucket(per_second, burst) => {
                Limiter::Bucket(TokenBucket::new(per_second, burst, start))
            }
            Limit::Window(requests, seconds) => Limiter::Window {
                requests,
                length: Duration::from_secs(seconds),
                began: start,
                count: 0,
            },
            Limit::Penalty(requests, within, seconds) => Limiter::Penalty {
                requests,
                within: Duration::from_secs(within),
                penalty: Duration::from_secs(seconds),
                lately: VecDeque::new(),
                until: start,
            },
        }
    }
}

enum Limiter {
    None,
    Bucket(TokenBucket),
    Window {
        requests: u32,
        length: Duration,
        began: Instant,
        count: u32,
    },
    Penalty {
        requests: usize,
        within: Duration,
        penalty: Duration,
        lately: VecDeque<Instant>,
        until: Instant,
    },
}

impl Limiter {
    fn try_request(&mut self, at: Instant) -> bool {
        match self {
            Limiter::None => true,
            Limiter::Bucket(bucket) => bucket.try_request(at),
            Limiter::Window {
                requests,
                length,
                began,
                count,
            } => {
                while at >= *began + *length {
                    (*began, *count) = (*began + *length, 0);
                }
                *count += 1;
                *count <= *requests
            }
            Limiter::Penalty {
                requests,
                within,
                penalty,
                lately,
                until,
            } => {
                lately.push_back(at);
                while lately[0] + *within < at {
                    lately.pop_front();
                }
                if at >= *until && lately.len() > *requests {
                    *until = at + *penalty;
                    lately.clear();
                }
                at >= *until
            }
        }
    }
}

/// Refusals that do not depend on the pace of requests.
#[derive(Debug, Clone, Copy)]
enum Blocks {
    Never,
    /// For `Counted(of, last)`: of every `of` requests, the last `last` ones are blocked.
    Counted(u32, u32),
    /// For `Chance(of, seed)`: one of `of` requests is blocked, at random.
    Chance(u32, u64),
}

impl Blocks {
    fn blocks(&mut self, request: u32) -> bool {
        match self {
            Blocks::Never => false,
            Blocks::Counted(of, last) => request % *of >= *of - *last,
            Blocks::Chance(of, state) => {
                *state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (*state >> 33) % u64::from(*of) == 0
            }
        }
    }
}

/// The cost of crawling a site.
struct Cost {
    seconds: f64,
    refused_by_limiter: usize,
    blocked: usize,
    spacing: Duration,
}

const LATENCY: Duration = Duration::from_millis(2);

/// How many times a page that is always refused is requested at most. After a refusal, [`OTHERS_BETWEEN`] other pages
/// are requested first. Other pages are requested until they are served.
const MOST_TRIES: usize = 20;
const OTHERS_BETWEEN: usize = 2;

fn simulate_crawl(pages: &Pages) -> Cost {
    let start = Instant::now();
    let pace = Pace {
        delay: pages.delay,
        longest_wait: Duration::from_secs(86_400),
        is_adaptive: true,
    };
    let mut limiter = pages.limit.begin(start);
    let mut blocks = pages.blocks;
    let (mut clock, mut at, mut refused_by_limiter) = (Clock::default(), start, 0);
    let (mut blocked, mut requests) = (0, 0);
    let mut queue: VecDeque<(u32, usize)> = (0..pages.number).map(|page| (page, 1)).collect();
    while let Some((page, tries)) = queue.pop_front() {
        at = clock
            .next_start(pages.delay)
            .map_or(at, |next| next.max(at));
        let started = Now {
            instant: at,
            wall_ms: 0,
        };
        let is_closed = pages.closed.contains(&page);
        let is_limited = !limiter.try_request(at);
        let is_blocked = blocks.blocks(requests);
        requests += 1;
        refused_by_limiter += usize::from(is_limited);
        blocked += usize::from(is_blocked);
        let answer = match (is_limited, is_closed || is_blocked) {
            (true, _) => Answer::TooMany { retry_after: None },
            (false, true) => pages.refusal,
            (false, false) => Answer::Served,
        };
        at += LATENCY;
        let page_key = Some(PageKey::from_url(&page.to_string()));
        let answered = Answered {
            started,
            at,
            answer,
            page: page_key,
        };
        clock.note_answer(answered, pace);
        let is_over = answer == Answer::Served || (is_closed && tries == MOST_TRIES);
        if !is_over {
            queue.insert(OTHERS_BETWEEN.min(queue.len()), (page, tries + 1));
        }
        // End the crawl once all pages are served except those that are always refused.
        if queue.iter().all(|(page, _)| pages.closed.contains(page)) {
            break;
        }
    }
    Cost {
        seconds: at.duration_since(start).as_secs_f64(),
        refused_by_limiter,
        blocked,
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
            limit: Limit::None,
            blocks: Blocks::Never,
            delay,
        };
        let cost = simulate_crawl(&pages);
        let case = format!("{closed:?} of {number} answer {refusal:?}");
        assert!(
            cost.seconds <= most_seconds,
            "{case}: {:.1} s",
            cost.seconds
        );
    }
}

#[test]
fn the_pace_of_limiters_is_learnt_despite_closed_pages() {
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
            limit: Limit::Bucket(per_second, burst),
            blocks: Blocks::Never,
            delay: Duration::from_millis(100),
        };
        let cost = simulate_crawl(&pages);
        let case = format!("{number} pages at {per_second}/s, burst {burst}, closed {closed:?}");
        let least = f64::from(number) / per_second;
        assert!(cost.seconds <= 2.0 * least, "{case}: {:.1} s", cost.seconds);
        let refused = cost.refused_by_limiter;
        assert!(refused <= 20, "{case}: {refused} refused");
        let accepted = Duration::from_secs_f64(1.0 / per_second);
        assert!(cost.spacing * 2 > accepted, "{case}: {:?}", cost.spacing);
    }
}

/// Sites with rate limiters are not mistaken for sites that refuse requests at any pace.
#[test]
fn the_pace_of_all_kinds_of_limiters_is_learnt_in_a_long_crawl() {
    for limit in [
        Limit::Bucket(5.0, 1.0),
        Limit::Bucket(5.0, 20.0),
        Limit::Bucket(5.0, 200.0),
        Limit::Bucket(1.0, 30.0),
        Limit::Bucket(1.0, 300.0),
        Limit::Bucket(0.3, 100.0),
        Limit::Window(200, 60),
        Limit::Window(30, 60),
        Limit::Window(10, 1),
        Limit::Window(1_000, 3_600),
        Limit::Penalty(100, 10, 10),
        Limit::Penalty(20, 10, 60),
        Limit::Penalty(50, 10, 2),
        Limit::Penalty(300, 60, 600),
    ] {
        for delay_ms in [0, 20, 100] {
            let pages = Pages {
                number: 10_000,
                closed: &[],
                refusal: Answer::Served,
                limit,
                blocks: Blocks::Never,
                delay: Duration::from_millis(delay_ms),
            };
            let cost = simulate_crawl(&pages);
            let refused = cost.refused_by_limiter;
            let case = format!("{limit:?}, delay {delay_ms} ms");
            assert!(refused <= 300, "{case}: {refused} refused");
        }
    }
}

/// Refusals that come at any pace cost only their own waits, and the few minutes until they are recognised as such.
#[test]
fn blocks_that_do_not_depend_on_the_pace_do_not_slow_a_site_down() {
    for (blocks, delay_ms) in [
        (Blocks::Counted(200, 2), 0),
        (Blocks::Counted(200, 1), 0),
        (Blocks::Counted(100, 2), 50),
        (Blocks::Counted(50, 3), 0),
        (Blocks::Counted(500, 1), 100),
        (Blocks::Chance(200, 1), 0),
        (Blocks::Chance(200, 2), 0),
        (Blocks::Chance(200, 3), 50),
        (Blocks::Chance(100, 4), 0),
        (Blocks::Chance(100, 5), 0),
        (Blocks::Chance(50, 6), 0),
    ] {
        for refusal in [
            Answer::Overloaded { retry_after: None },
            Answer::TooMany { retry_after: None },
            Answer::TooMany {
                retry_after: seconds(2),
            },
        ] {
            let pages = Pages {
                number: 40_000,
                closed: &[],
                refusal,
                limit: Limit::None,
                blocks,
                delay: Duration::from_millis(delay_ms),
            };
            let cost = simulate_crawl(&pages);
            let polite = f64::from(pages.number) * (pages.delay + LATENCY).as_secs_f64();
            let most = 1.2 * polite + 4.0 * cost.blocked as f64 + 300.0;
            let case = format!("{blocks:?}, delay {delay_ms} ms, {refusal:?}");
            assert!(cost.seconds <= most, "{case}: {} of {most} s", cost.seconds);
        }
    }
}
