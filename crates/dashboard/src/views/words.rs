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

/// Explains why a page has not filled a record. `why` is the name of the reason in the store.
pub(crate) fn describe_doubt(why: &str) -> &'static str {
    match why {
        "other_values" => "contradicts known values of the record",
        "other_record" => "another record has this URL",
        "rivals" => "disagrees with other pages, and nothing decides between them",
        "gap" => "not read: a list of the record continues there",
        _ => "",
    }
}

/// Explains why a site is backing off. `reason` is the name of the reason in the fleet.
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

/// Explains why one or several sites are in trouble, for one line of the overview. Empty if nobody needs to act.
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

/// The group of an outcome. On all pages, each group has its own colour.
pub(crate) fn outcome_group(outcome: Outcome) -> &'static str {
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
