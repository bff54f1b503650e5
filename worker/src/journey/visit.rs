//! Fetches one page: has the facts that are known before its request, the request, and the reading of its answer.

use std::time::Duration;

use webfill_urls::Url;

use super::plan::FetchPlan;
use super::state::Journey;
use super::turns::TakenTurn;
use crate::fetch_permits::FetchPermit;
use crate::now::Now;
use crate::permits::Permit;
use crate::politeness::PageKey;

/// A page about to be fetched, after robots.txt has permitted it.
pub(super) struct Visit<'v> {
    pub(super) site: &'v str,
    pub(super) url: &'v Url,
    pub(super) permit: &'v Permit,
    pub(super) delay: Duration,
    pub(super) plan: FetchPlan<'v>,
}

/// A request to a site: its page, when it started, and the delay between two requests to the site.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub(super) started: Now,
    pub(super) delay: Duration,
    pub(super) page: PageKey,
}

impl Request {
    pub(super) fn begin(url: &Url, delay: Duration) -> Request {
        Request {
            started: Now::read(),
            delay,
            page: PageKey::from_url(url.as_str()),
        }
    }
}

/// Reads a page after its request: as it came, in a browser or as a document, if necessary with a second fetch. The
/// result goes to the extraction or to the saver.
pub(super) struct Reading<'v> {
    pub(super) journey: &'v Journey,
    pub(super) visit: &'v Visit<'v>,
    pub(super) request: Request,
}

/// The permits that a page holds until the extraction has its body. They bound the bodies in memory.
pub(super) struct HeldPermits<'v> {
    pub(super) turn: Option<TakenTurn<'v>>,
    /// The tab of the browser, if the page may need one.
    pub(super) tab: Option<FetchPermit<'v>>,
}
