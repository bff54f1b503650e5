//! The orders of the operator.

use std::collections::{BTreeMap, BTreeSet};

use webfill_wire::CrawlKey;

/// An order about a crawl or a site.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Order {
    Pause {
        crawl: usize,
        for_ms: u64,
    },
    Resume {
        crawl: usize,
    },
    Stop {
        crawl: usize,
    },
    Delay {
        site: usize,
        delay_ms: u64,
    },
    Block {
        site: usize,
        for_ms: u64,
    },
    Unblock {
        site: usize,
    },
    Limit {
        site: usize,
        pages: u64,
        for_ms: u64,
    },
    NoLimit {
        site: usize,
    },
    Forget {
        site: usize,
    },
}

impl Order {
    /// The crawl that the order is about; `None` for an order about a site.
    pub(crate) fn crawl(self) -> Option<usize> {
        match self {
            Order::Pause { crawl, .. } | Order::Resume { crawl } | Order::Stop { crawl } => {
                Some(crawl)
            }
            _ => None,
        }
    }

    /// Whether the order reverts the order before it, as `Resume` reverts `Pause`. It is then given after the answer to
    /// that order.
    pub(crate) fn reverts_previous(self) -> bool {
        matches!(
            self,
            Order::Resume { .. } | Order::Unblock { .. } | Order::NoLimit { .. }
        )
    }
}

/// The orders given so far, and which requests they forbid.
#[derive(Debug, Default)]
pub(crate) struct Operator {
    pub(crate) answered: BTreeSet<usize>,
    /// When each order was first given, by the number of the order.
    pub(crate) given_ms: BTreeMap<usize, u64>,
    /// Orders whose answers prove nothing, because a later order may have changed their effect.
    pub(crate) overtaken: BTreeSet<usize>,
    pub(crate) paused: BTreeSet<CrawlKey>,
    pub(crate) stopped: BTreeSet<CrawlKey>,
    /// The blocked sites, each with the time when its block ends.
    pub(crate) blocked: BTreeMap<usize, u64>,
}

impl Operator {
    /// Whether the orders answered so far permit a request for a page.
    pub(crate) fn permits(&self, crawl: CrawlKey, site: usize, now_ms: u64) -> bool {
        let is_blocked = self.blocked.get(&site).is_some_and(|until| now_ms < *until);
        !is_blocked && !self.paused.contains(&crawl) && !self.stopped.contains(&crawl)
    }

    /// Whether an order was answered, so that the operator does not repeat it.
    pub(crate) fn is_answered(&self, number: u64) -> bool {
        self.answered.contains(&(number as usize))
    }
}
