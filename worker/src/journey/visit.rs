//! One visit of a page: the facts known before its request, the request, and the reading of its answer.

use std::time::Duration;

use webfill_urls::Url;

use super::plan::FetchPlan;
use super::state::Journey;
use super::turns::TakenTurn;
use crate::fetch_permits::FetchPermit;
use crate::now::Now;
use crate::permits::Permit;
use crate::politeness::PageKey;

/// A visit of a page, after robots.txt has permitted it.
pub(super) struct Visit<'v> {
    pub(super) site: &'v str,
    pub(super) url: &'v Url,
    pub(super) permit: &'v Permit,
    pub(super) delay: Duration,
    pub(super) plan: FetchPlan<'v>,
}

/// A request: when it started, and the delay it keeps.
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

/// The reading of a page that was requested: as it came, in a browser or as a document, once or compared with a
/// second fetch. Its result continues to the extraction or to the saver.
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
