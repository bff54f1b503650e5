//! Maps the errors of the HTTP client to outcomes.

use std::error::Error;
use std::io;

use webfill_wire::Outcome;

use crate::resolve::ResolveError;

/// Why a request has failed.
#[derive(Debug)]
pub struct FetchError {
    pub outcome: Outcome,
    /// The reason in words, for logs and users.
    pub reason: String,
    /// Whether this machine has no route to the host, or its name servers do not answer.
    pub no_route: bool,
}

impl FetchError {
    /// Creates an error that is not caused by a missing route or a silent name server.
    pub fn new(outcome: Outcome, reason: impl Into<String>) -> FetchError {
        FetchError {
            outcome,
            reason: reason.into(),
            no_route: false,
        }
    }
}

impl From<reqwest::Error> for FetchError {
    fn from(error: reqwest::Error) -> FetchError {
        let otherwise = match error.is_timeout() {
            true => Outcome::Timeout,
            false => Outcome::NetworkError,
        };
        from_causes(error.source(), error.to_string(), otherwise)
    }
}

/// Returns the outcome and the reason of the first cause that has an outcome, or else of the innermost cause.
fn from_causes(
    mut next: Option<&(dyn Error + 'static)>,
    mut reason: String,
    otherwise: Outcome,
) -> FetchError {
    let mut no_route = false;
    while let Some(cause) = next {
        no_route |= has_no_route(cause);
        if let Some(outcome) = outcome_of(cause) {
            return FetchError {
                outcome,
                reason: cause.to_string(),
                no_route: no_route || is_name_server_silent(cause),
            };
        }
        reason = cause.to_string();
        next = cause.source();
    }
    FetchError {
        outcome: otherwise,
        reason,
        no_route,
    }
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
    // I/O errors may contain TLS and resolver errors, but `source()` does not return those.
    outcome_of(inner_cause(cause)?)
}

fn inner_cause<'a>(cause: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    let inner = cause.downcast_ref::<io::Error>()?.get_ref()?;
    Some(inner)
}

fn has_no_route(cause: &(dyn Error + 'static)) -> bool {
    let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind);
    matches!(
        kind,
        Some(
            io::ErrorKind::NetworkUnreachable
                | io::ErrorKind::NetworkDown
                | io::ErrorKind::AddrNotAvailable
        )
    )
}

fn is_name_server_silent(cause: &(dyn Error + 'static)) -> bool {
    match cause.downcast_ref::<ResolveError>() {
        Some(error) => error.is_inconclusive_lookup(),
        None => inner_cause(cause).is_some_and(is_name_server_silent),
    }
}
