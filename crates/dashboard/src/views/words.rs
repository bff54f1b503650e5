//! Descriptions of the names in closed lists, for people.

use webfill_wire::{Outcome, Reason};

pub(crate) fn of_outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "fetched and read",
        Outcome::NotModified => "not changed since the last fetch",
        Outcome::Redirected => "redirected to another URL",
        Outcome::HttpError => "the server returned an error (4xx, 5xx)",
        Outcome::Disallowed => "disallowed by robots.txt, not fetched",
        Outcome::RobotsUnreachable => "robots.txt unavailable, nothing allowed",
        Outcome::DnsError => "the host name does not resolve",
        Outcome::NetworkError => "the connection was refused or broken",
        Outcome::TlsError => "no secure connection: certificate or handshake",
        Outcome::Timeout => "it took too long",
        Outcome::TooLarge => "larger than the limit",
        Outcome::UnsupportedType => "unsupported type",
        Outcome::Blocked => "the site refuses crawlers or shows a CAPTCHA",
        Outcome::UnsafeAddress => "private or reserved address",
        Outcome::ExtractError => "fetched, but the extraction failed",
        Outcome::Crashed => "crashed its worker three times",
        Outcome::Expired => "the crawl expired",
        Outcome::Stopped => "stopped, or no longer needed",
    }
}

/// Whether an operator may want to retry such pages.
pub(crate) fn is_failure(outcome: Outcome) -> bool {
    !matches!(
        outcome,
        Outcome::Ok
            | Outcome::NotModified
            | Outcome::Redirected
            | Outcome::Expired
            | Outcome::Stopped
    )
}

pub(crate) fn of_reason(reason: Reason) -> &'static str {
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

/// Why a page has not filled a record, by its name in the store.
pub(crate) fn of_doubt(why: &str) -> &'static str {
    match why {
        "other_values" => "contradicts known values of the record",
        "other_record" => "another record has this URL",
        "rivals" => "disagrees with other pages, and nothing decides between them",
        "gap" => "not read: a list of the record continues there",
        _ => "",
    }
}

/// Why a site backs off, by its name in the fleet.
pub(crate) fn of_backoff(reason: &str) -> &'static str {
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
