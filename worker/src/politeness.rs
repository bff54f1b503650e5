//! How polite the crawler is ([`PolitenessConfig`]), the clock of one site ([`Clock`]), and the pace that a site
//! accepts ([`AcceptedPace`]). This file has the type they share: how a request went.

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

/// The delay in force, and the longest wait that a server's request for a pause may cause.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    pub delay: Duration,
    pub longest_wait: Duration,
    /// A slow answer makes the delay at least as long as the answer took.
    pub is_adaptive: bool,
}

/// How a request to the site went, as far as politeness needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The server answered, and asks neither for a pause nor for fewer requests.
    Served,
    /// The status is 503 or 529, or the answer is a block: the site asks to be left alone.
    Overloaded { retry_after: Option<Duration> },
    /// The status is 429, or the headers of another refusal say that no request is left: the server asks for fewer
    /// requests.
    TooMany { retry_after: Option<Duration> },
    /// The request failed in another way, but with a `Retry-After`. Most such answers come from limiters; some servers
    /// send it with every refusal.
    Refused { retry_after: Duration },
    /// No answer at all.
    Silent,
    /// A redirect of robots.txt: it says nothing about the site's state.
    Redirect,
    /// robots.txt is unavailable, so nothing may be fetched.
    NoRules,
}

impl Answer {
    /// The server asks for a pause or for fewer requests.
    pub fn asks_to_wait(self) -> bool {
        matches!(
            self,
            Answer::Overloaded { .. } | Answer::TooMany { .. } | Answer::Refused { .. }
        )
    }
}

/// A request that is over.
#[derive(Debug, Clone, Copy)]
pub struct Answered {
    /// When the request was started.
    pub started: Now,
    /// When the answer began, or the attempt ended without one.
    pub at: Instant,
    pub answer: Answer,
    /// The page that was requested; `None` for robots.txt.
    pub page: Option<PageKey>,
}

impl Answered {
    /// How long the server took to answer, its connect included; the length of the body does not count. A request
    /// without an answer does not count as slow; the site backs off instead.
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
