//! The part of the summary about URLs that have finally failed. It also suggests values of `--retry` for URLs that may
//! recover. Results of `writeln!` are ignored, because writing to a string cannot fail.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};

use serde_json::{Value, json};
use webfill_wire::Outcome;

/// The most sites that the summary names.
const SITES_NAMED: usize = 5;

/// How a URL failed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Failure {
    outcome: &'static str,
    /// The status of an `http_error`.
    status_code: Option<u16>,
}

impl Failure {
    pub fn new(outcome: Outcome, status_code: Option<u16>) -> Failure {
        Failure {
            outcome: outcome.as_str(),
            status_code: status_code.filter(|_| outcome == Outcome::HttpError),
        }
    }

    /// The value of `--retry` for this failure, if it may be temporary. A page that does not exist has none, because it
    /// will hardly appear.
    fn retry_name(&self) -> Option<String> {
        match self.status_code {
            Some(403 | 408 | 425 | 429 | 500..) => Some(format!("{self}")),
            Some(_) => None,
            None => Some(self.outcome.to_owned()),
        }
    }
}

/// Formats the failure in the same way as `--retry` expects it.
impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status_code {
            Some(status) => write!(out, "{status}"),
            None => out.write_str(self.outcome),
        }
    }
}

/// The final failures of a crawl.
#[derive(Debug, Clone, Default)]
pub struct Failures {
    /// The number of failed URLs, by how they failed.
    pub by_kind: BTreeMap<Failure, u64>,
    /// The number of records without a reachable URL.
    pub dead_records: u64,
    sites: u64,
    /// The sites with the most failed URLs.
    first: Vec<(String, Failure, u64)>,
}

impl Failures {
    /// Counts the sites, and keeps those with the most failed URLs.
    pub fn count_sites(&mut self, urls: BTreeMap<(String, Failure), u64>) {
        let names: BTreeSet<&str> = urls.keys().map(|(site, _)| site.as_str()).collect();
        self.sites = names.len() as u64;
        let mut most: Vec<_> = urls.into_iter().collect();
        most.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        most.truncate(SITES_NAMED);
        let named = most.into_iter();
        self.first = named
            .map(|((site, failure), urls)| (site, failure, urls))
            .collect();
    }

    /// The values of `--retry` for URLs that may recover.
    pub fn retry_values(&self) -> Vec<String> {
        self.by_kind
            .keys()
            .filter_map(Failure::retry_name)
            .collect()
    }

    fn count_urls(&self) -> u64 {
        self.by_kind.values().sum()
    }

    pub fn write(&self, text: &mut String) {
        if self.by_kind.is_empty() {
            return;
        }
        let mut kinds: Vec<_> = self.by_kind.iter().collect();
        kinds.sort_by_key(|(failure, urls)| (std::cmp::Reverse(**urls), (*failure).clone()));
        let kinds: Vec<String> = kinds
            .into_iter()
            .map(|(failure, urls)| format!("{urls} {failure}"))
            .collect();
        let _ = writeln!(
            text,
            "  failed    {} {} at {} {}: {}",
            self.count_urls(),
            if self.count_urls() == 1 {
                "URL"
            } else {
                "URLs"
            },
            self.sites,
            if self.sites == 1 { "site" } else { "sites" },
            kinds.join(", ")
        );
        for (site, failure, urls) in &self.first {
            let _ = writeln!(text, "            {site}: {urls} {failure}");
        }
    }

    pub fn json(&self) -> Value {
        let by_kind = self.by_kind.iter();
        let by_kind: BTreeMap<String, u64> = by_kind
            .map(|(failure, urls)| (failure.to_string(), *urls))
            .collect();
        json!({
            "urls": self.count_urls(),
            "sites": self.sites,
            "by": by_kind,
            "retry": self.retry_values(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_failures_are_suggested_as_values_of_retry() {
        let mut failures = Failures::default();
        for (outcome, status, urls) in [
            (Outcome::DnsError, None, 3),
            (Outcome::HttpError, Some(404), 9),
            (Outcome::HttpError, Some(503), 1),
            (Outcome::Blocked, Some(403), 2),
        ] {
            failures.by_kind.insert(Failure::new(outcome, status), urls);
        }
        assert_eq!(failures.retry_values(), ["blocked", "dns_error", "503"]);
        let sites = [("a.org", 404, 9), ("b.org", 503, 1)];
        failures.count_sites(
            sites
                .map(|(site, status, urls)| {
                    let failure = Failure::new(Outcome::HttpError, Some(status));
                    ((site.to_owned(), failure), urls)
                })
                .into(),
        );
        let mut text = String::new();
        failures.write(&mut text);
        assert_eq!(
            text,
            "  failed    15 URLs at 2 sites: 9 404, 3 dns_error, 2 blocked, 1 503\n            \
             a.org: 9 404\n            b.org: 1 503\n"
        );
    }
}
