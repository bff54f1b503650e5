//! Explanations, for people, of names from closed lists.

use webfill_wire::{Outcome, Reason};

pub(crate) fn describe_skip_reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Duplicate => "already known",
        Reason::TooDeep => "deeper than the crawl's depth",
        Reason::OutOfDomain => "outside the allowed domains",
        Reason::DeniedPattern => "its URL is denied by a pattern, or allowed by none",
        Reason::DeniedExtension => "excluded file extension",
        Reason::ExcludedSite => "excluded site",
        Reason::InvalidUrl => "invalid or too long URL",
        Reason::UnsupportedScheme => "neither http nor https",
        Reason::Budget => "page limit of the site reached",
        Reason::RepeatedPage => "on a page that repeats others",
        Reason::FragmentRoute => "needs a browser",
    }
}

/// The reason for a doubt: why a page has not filled a record. `why` is its name in the store.
pub(crate) fn describe_doubt(why: &str) -> &'static str {
    match why {
        "other_values" => "contradicts known values of the record",
        "other_record" => "another record has this URL",
        "rivals" => "disagrees with other pages, and nothing decides between them",
        "gap" => "not read: a list of the record continues there",
        _ => "",
    }
}

/// The reason for a site's backoff. `reason` is its name in the fleet.
pub(crate) fn describe_backoff(reason: &str) -> &'static str {
    match reason {
        "robots" => "its robots.txt is unavailable",
        "unreachable" => "it does not answer",
        "tls" => "its certificate is not valid for it",
        "dns" => "its name does not resolve",
        "busy" => "it refuses the rate of requests",
        "blocked" => "it blocks the crawler",
        "by_hand" => "an operator set it",
        _ => "",
    }
}

/// The reason for sites' backoffs, for a line about one or several sites; empty if nobody needs to act.
pub(crate) fn describe_trouble(reason: &str) -> &'static str {
    match reason {
        "robots" => "robots.txt unavailable",
        "unreachable" => "no answer",
        "tls" => "invalid certificate",
        "dns" => "name does not resolve",
        "busy" => "refuses the rate of requests",
        "blocked" => "blocks the crawler",
        _ => "",
    }
}

/// The group of an outcome. Each group has one colour on all pages.
pub(crate) fn group_of(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "ok",
        Outcome::NotModified | Outcome::Redirected => "unchanged",
        Outcome::HttpError => "error",
        Outcome::Blocked => "blocked",
        Outcome::RobotsUnreachable
        | Outcome::DnsError
        | Outcome::NetworkError
        | Outcome::TlsError
        | Outcome::Timeout => "unreachable",
        Outcome::ExtractError | Outcome::Crashed => "fault",
        Outcome::Disallowed
        | Outcome::TooLarge
        | Outcome::UnsupportedType
        | Outcome::UnsafeAddress
        | Outcome::Expired
        | Outcome::Stopped => "refused",
    }
}
