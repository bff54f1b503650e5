//! Ways in which a fetch ends that may be different the next time.

use webfill_service::Fault;

use crate::crawl::RetryEnd;

/// How pages end for reasons that may pass, as `--retry` of a crawl has them.
pub const ENDS: [&str; 9] = [
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
