//! Maps the errors of the HTTP client to outcomes.

use std::error::Error;

use webfill_wire::Outcome;

use crate::resolve::ResolveError;

/// The outcome for a client error, and the message of its innermost cause.
pub fn outcome_and_reason(error: &reqwest::Error) -> (Outcome, String) {
    let mut reason = error.to_string();
    let mut next: Option<&(dyn Error + 'static)> = error.source();
    while let Some(cause) = next {
        if let Some(found) = outcome_of(cause) {
            return (found, cause.to_string());
        }
        reason = cause.to_string();
        next = cause.source();
    }
    let outcome = if error.is_timeout() {
        Outcome::Timeout
    } else {
        Outcome::NetworkError
    };
    (outcome, reason)
}

fn outcome_of(cause: &(dyn Error + 'static)) -> Option<Outcome> {
    if let Some(refusal) = cause.downcast_ref::<ResolveError>() {
        return Some(refusal.outcome());
    }
    if cause.is::<rustls::Error>() {
        return Some(Outcome::TlsError);
    }
    if let Some(http) = cause.downcast_ref::<hyper::Error>()
        && http.is_parse_too_large()
    {
        return Some(Outcome::TooLarge);
    }
    // TLS and resolver errors travel inside I/O errors, which hide them from `source()`.
    let inner = cause.downcast_ref::<std::io::Error>()?.get_ref()?;
    outcome_of(inner)
}
