//! Politeness: its settings ([`PolitenessConfig`]), the time of a site's next request ([`Clock`]), and the pace that a
//! site accepts ([`AcceptedPace`]). This file has the type that they share: the result of a request.

use std::time::{Duration, Instant};

use crate::now::Now;

pub use self::accepted_pace::AcceptedPace;
pub use self::clock::Clock;
pub use self::config::{ClockOwner, PolitenessConfig};
pub use self::refused_pages::PageKey;

mod accepted_pace;
mod clock;
mod config;
mod refused_pages;
mod stretches;

/// The delay between two requests to a site, and the longest wait that a server can demand.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    pub delay: Duration,
    pub longest_wait: Duration,
    /// Whether a slow answer makes the delay at least as long as the answer took.
    pub is_adaptive: bool,
}

/// The result of a request to a site, as far as it matters for politeness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The server answered, and demands neither a pause nor fewer requests.
    Served,
    /// The status is 503 or 529, or the answer is a block: the site is overloaded or wants no requests.
    Overloaded { retry_after: Option<Duration> },
    /// The status is 429, or the headers of another refusal say that no request is left: the server demands fewer
    /// requests.
    TooMany { retry_after: Option<Duration> },
    /// The request failed in another way, but with a `Retry-After`. Most such answers come from rate limiters, but some
    /// servers send the header with every refusal.
    Refused { retry_after: Duration },
    /// The server did not answer.
    Silent,
    /// A redirect of robots.txt: it says nothing about the site's state.
    Redirect,
    /// robots.txt is unavailable, so nothing may be fetched.
    NoRules,
}

impl Answer {
    /// Whether the server demands a pause or fewer requests.
    pub fn asks_to_wait(self) -> bool {
        matches!(
            self,
            Answer::Overloaded { .. } | Answer::TooMany { .. } | Answer::Refused { .. }
        )
    }
}

/// A request that has ended, with its result.
#[derive(Debug, Clone, Copy)]
pub struct Answered {
    /// When the request was started.
    pub started: Now,
    /// When the answer began, or when the attempt ended without one.
    pub at: Instant,
    pub answer: Answer,
    /// The page that was requested; `None` for robots.txt.
    pub page: Option<PageKey>,
}

impl Answered {
    /// The time from the start of the request to the beginning of the answer. It is zero without an answer: the site
    /// then backs off, but does not count as slow.
    pub(super) fn response_time(&self) -> Duration {
        match self.answer {
            Answer::Silent | Answer::NoRules => Duration::ZERO,
            Answer::Served
            | Answer::Overloaded { .. }
            | Answer::TooMany { .. }
            | Answer::Refused { .. }
            | Answer::Redirect => self.at.saturating_duration_since(self.started.instant),
        }
    }
}

#[cfg(test)]
mod tests;
