//! Actions: `info`, `stop`, `pause`, `resume`, `retry` and `prune` concern the crawls of one application,
//! `status`, `reload` and `drain` the fleet, `site` the rules and the state of one site, `sites` the states
//! of all, `why` one URL, `watch_...` the watches ([`WatchAction`]). The
//! names of the first four are Scrapy Cluster's.

use webfill_wire::{CrawlKey, Lane, Outcome};

use crate::spider::Spider;
use crate::watch::WatchAction;

pub(crate) use self::keys::UUID;
pub use self::parsing::{action_names, parse_action};

mod keys;
mod parsing;

/// An action that was found to be in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Shows the counters of an application, or of one of its crawls.
    Info(InfoQuestion),
    /// Ends a crawl for good; its id is refused afterwards.
    Stop(Subject),
    Pause(Subject),
    Resume(Subject),
    /// Queues tasks of a crawl again that have ended.
    Retry(RetryAction),
    /// Drops finished crawls, with all that is known of their URLs.
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
    /// Tells where a URL is in the crawls that know it, and why.
    Why(WhyQuestion),
    Watch(WatchAction),
}

/// The application or crawl that an action concerns, and what is repeated in its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Subject {
    pub app_id: String,
    /// Only `info` may leave it out, and then concerns all crawls of the application.
    pub crawl_id: Option<String>,
    pub uuid: Option<String>,
    /// Repeated in an answer about a whole application; a crawl has a spider of its own.
    pub spider: Option<Spider>,
}

/// Which counters are shown.
#[derive(Debug, Clone, PartialEq)]
pub struct InfoQuestion {
    pub subject: Subject,
    /// Of an application, only crawls behind this one: the `next` of the answer before.
    pub after: Option<String>,
}

/// Which of a crawl's ended tasks are to be queued again.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryAction {
    pub subject: Subject,
    /// Those that ended in one of these; not empty.
    pub outcomes: Vec<Outcome>,
    /// Only those with one of these HTTP statuses.
    pub status_codes: Option<Vec<u16>>,
    /// Only those of this site: a host name or an address, as the client wrote it.
    pub site: Option<String>,
}

/// Which crawls of an application are to be dropped: one, or all that have rested for long.
#[derive(Debug, Clone, PartialEq)]
pub struct PruneAction {
    pub subject: Subject,
    /// Only those in which nothing has happened for so many seconds.
    pub older_than_s: u64,
}

/// Rules for one site. `None`: the rule was left out and stays as it is. `Some(None)`: null, which
/// removes the rule. An action that changes nothing shows the rules in force.
#[derive(Debug, Clone, PartialEq)]
pub struct SiteAction {
    /// A host name or an address, as the client wrote it.
    pub site: String,
    pub uuid: Option<String>,
    /// Milliseconds between two requests.
    pub delay_ms: Option<Option<u32>>,
    /// No request before, in milliseconds since the epoch.
    pub block_until_ms: Option<Option<i64>>,
    /// At most this many further pages, over all crawls.
    pub limit: Option<Option<u64>>,
    /// The lane of its pages in crawls of the lane `http`; `Some(None)`: it follows the page, as without a rule.
    pub lane: Option<Option<Lane>>,
    /// Removes all rules, and what was learned about the site.
    pub forget: bool,
    /// Ends the site's rest now.
    pub wake: bool,
}

/// Which sites are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SitesQuestion {
    pub uuid: Option<String>,
    /// Only those that backoff, or were given up.
    pub backing_off: bool,
    /// The `next` of the answer before.
    pub after: u64,
}

/// Which URL is asked about, and in which crawls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WhyQuestion {
    pub uuid: Option<String>,
    /// As the client wrote it.
    pub url: String,
    /// Only crawls of this application.
    pub app_id: Option<String>,
    /// Only crawls of this id.
    pub crawl_id: Option<String>,
    /// The `next` of the answer before; `None`: from the crawl that was opened last.
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
