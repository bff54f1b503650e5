//! What the names of the closed lists mean, for people.

use webfill_wire::{Outcome, Reason};

pub(crate) fn of_outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "fetched, and read in full",
        Outcome::NotModified => "the server says that it has not changed",
        Outcome::Redirected => "the server names another URL",
        Outcome::HttpError => "the server answers with an error (4xx, 5xx)",
        Outcome::Disallowed => "robots.txt forbids it: it was not fetched",
        Outcome::RobotsUnreachable => "robots.txt cannot be had, which forbids all for now",
        Outcome::DnsError => "the name of the host does not resolve",
        Outcome::NetworkError => "the connection was refused or broken",
        Outcome::TlsError => "there is no secure connection: certificate or handshake",
        Outcome::Timeout => "it took too long",
        Outcome::TooLarge => "it is larger than what is read",
        Outcome::UnsupportedType => "its type is none that is read",
        Outcome::Blocked => "the site refuses crawlers, or asks whether one is human",
        Outcome::UnsafeAddress => "its address is one that must not be connected to",
        Outcome::ExtractError => "it was fetched, and reading it failed",
        Outcome::Crashed => "it has ended its worker three times",
        Outcome::Expired => "the crawl had expired",
        Outcome::Stopped => "nobody wanted it any more",
    }
}

/// Whether an operator may want such pages tried again.
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
        Reason::Duplicate => "known already",
        Reason::TooDeep => "deeper than the crawl goes",
        Reason::OutOfDomain => "outside of the allowed domains",
        Reason::DeniedPattern => "its URL is denied by a pattern, or allowed by none",
        Reason::DeniedExtension => "its ending is of a kind that is not fetched",
        Reason::ExcludedSite => "its site is on the list of excluded ones",
        Reason::InvalidUrl => "no URL, or one that is too long",
        Reason::UnsupportedScheme => "neither http nor https",
        Reason::Budget => "the site's share of the crawl is used up",
        Reason::RepeatedPage => "on a page that only repeats others",
        Reason::FragmentRoute => "needs a browser",
    }
}

/// Why a page has not filled a record, as the store names it.
pub(crate) fn of_doubt(why: &str) -> &'static str {
    match why {
        "other_values" => "contradicts what is known of the record",
        "other_record" => "another record has this URL",
        "rivals" => "disagrees with other pages, and nothing decides between them",
        "gap" => "not read: a list of the record continues there",
        _ => "",
    }
}

/// Why a site rests, as the fleet names it.
pub(crate) fn of_rest(reason: &str) -> &'static str {
    match reason {
        "robots" => "its robots.txt cannot be had",
        "unreachable" => "it does not answer",
        "tls" => "its certificate is not valid for it",
        "dns" => "its name does not resolve",
        "busy" => "it asks for fewer requests",
        "blocked" => "it blocks",
        "by_hand" => "an operator wants it",
        _ => "",
    }
}
