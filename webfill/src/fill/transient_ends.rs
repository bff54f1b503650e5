//! The ends of a fetch that may be temporary, so that a later fetch may succeed.

use webfill_service::Fault;

use crate::crawl::RetryEnd;

/// The outcomes and statuses that may be temporary, as values of the flag `--retry` of a crawl. An address is refused as
/// private until `--allow-private-networks` is given, or while a login page of the network answers for every name.
pub const ENDS: [&str; 10] = [
    "unsafe_address",
    "robots_unreachable",
    "dns_error",
    "network_error",
    "timeout",
    "429",
    "500",
    "502",
    "503",
    "504",
];

pub fn ends() -> Result<Vec<RetryEnd>, Fault> {
    let ends = ENDS.iter().map(|end| end.parse());
    ends.collect::<Result<_, String>>().map_err(Fault::error)
}
