//! Actions: `info`, `stop`, `pause`, `resume`, `retry` and `prune` concern the crawls of one application. `status`,
//! `reload` and `drain` concern the fleet, `site` the rules and the state of one site, `sites` the states of all, `why`
//! one URL, `watch_...` the watches ([`WatchAction`]). The names of the first four come from Scrapy Cluster.

use webfill_wire::{CrawlKey, Lane, Outcome};

use crate::spider::Spider;
use crate::watch::WatchAction;

pub(crate) use self::keys::UUID;
pub use self::parsing::{action_names, parse_action};

mod keys;
mod parsing;

/// A valid action.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Shows the counters of an application, or of one of its crawls.
    Info(InfoQuestion),
    /// Ends a crawl for good; its id is refused afterwards.
    Stop(Subject),
    Pause(Subject),
    Resume(Subject),
    /// Queues ended tasks of a crawl again.
    Retry(RetryAction),
    /// Drops finished crawls, with everything known about their URLs.
    Prune(PruneAction),
    /// Shows supervisors, crawls and counters of the fleet.
    Status {
        uuid: Option<String>,
    },
    /// Reads the mappings and some settings again.
    Reload {
        uuid: Option<String>,
    },
    /// Drains the supervisor of this name, or all that are connected.
    Drain {
        supervisor: Option<String>,
        uuid: Option<String>,
    },
    Site(SiteAction),
    /// Lists the states of sites.
    Sites(SitesQuestion),
    /// Shows where a URL is in the crawls that know it, and why.
    Why(WhyQuestion),
    Watch(WatchAction),
}

/// The application or crawl that an action concerns, and the members repeated in its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Subject {
    pub app_id: String,
    /// Only `info` and `prune` may leave it out; they then concern all crawls of the application.
    pub crawl_id: Option<String>,
    pub uuid: Option<String>,
    /// The spider to repeat in an answer about a whole application. A crawl has its own spider.
    pub spider: Option<Spider>,
}

/// Whose counters to show: those of an application or of one crawl.
#[derive(Debug, Clone, PartialEq)]
pub struct InfoQuestion {
    pub subject: Subject,
    /// For an application, shows only crawls after this one: the `next` of the previous answer.
    pub after: Option<String>,
}

/// The ended tasks of a crawl to queue again.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryAction {
    pub subject: Subject,
    /// The outcomes of the tasks to queue; not empty.
    pub outcomes: Vec<Outcome>,
    /// Selects only tasks with one of these HTTP statuses.
    pub status_codes: Option<Vec<u16>>,
    /// Selects only tasks of this site: a host name or an address, as the client wrote it.
    pub site: Option<String>,
}

/// The crawls of an application to drop: one, or all without recent activity.
#[derive(Debug, Clone, PartialEq)]
pub struct PruneAction {
    pub subject: Subject,
    /// Drops only crawls without activity for this many seconds.
    pub older_than_s: u64,
}

/// Rules for one site. `None`: the rule was left out and stays as it is. `Some(None)`: null, which
/// removes the rule. An action that changes nothing shows the rules in force.
#[derive(Debug, Clone, PartialEq)]
pub struct SiteAction {
    /// A host name or an address, as the client wrote it.
    pub site: String,
    pub uuid: Option<String>,
    /// The time between two requests, in milliseconds.
    pub delay_ms: Option<Option<u32>>,
    /// No request is sent before this time, in milliseconds since the epoch.
    pub block_until_ms: Option<Option<i64>>,
    /// How many more pages may be fetched, over all crawls.
    pub limit: Option<Option<u64>>,
    /// The lane for the site's pages in crawls of the lane `http`. `Some(None)` removes the rule: each page then gets
    /// the lane that it needs.
    pub lane: Option<Option<Lane>>,
    /// Removes all rules, and everything learned about the site.
    pub forget: bool,
    /// Ends the site's backoff now.
    pub wake: bool,
}

/// Which sites to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SitesQuestion {
    pub uuid: Option<String>,
    /// Only sites that are backing off or unreachable.
    pub backing_off: bool,
    /// Where to continue: the `next` of the previous answer.
    pub after: u64,
}

/// The URL to explain, and the crawls to look in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WhyQuestion {
    pub uuid: Option<String>,
    /// The URL as the client wrote it.
    pub url: String,
    /// Looks only in crawls of this application.
    pub app_id: Option<String>,
    /// Looks only in crawls with this id.
    pub crawl_id: Option<String>,
    /// Where to continue: the `next` of the previous answer. `None` starts at the crawl that was opened last.
    pub after: Option<CrawlKey>,
}

impl SiteAction {
    pub fn changes_something(&self) -> bool {
        let keys = [
            self.delay_ms.is_some(),
            self.block_until_ms.is_some(),
            self.limit.is_some(),
            self.lane.is_some(),
            self.forget,
            self.wake,
        ];
        keys.contains(&true)
    }
}
