//! The public language of webfill: the requests of applications to a dispatcher, in JSON.
//!
//! | what is sent | what it is | read by |
//! |---|---|---|
//! | `{"url", "appid", "crawlid", ...}` | a crawl request: one URL of one crawl, with settings of the crawl | [`RequestParser`] |
//! | `[{...}, {...}]` | a list of crawl requests, accepted or refused as a whole | [`Batch`] |
//! | a request per line | crawl requests, each accepted or refused by itself | [`parse_line`] |
//! | `{"action": "info" \| "stop" \| "pause" \| "resume", "appid", "crawlid", ...}` | an action on a crawl | [`Action`] |
//! | `{"action": "prune", "appid", "crawlid", "older_than"}` | finished crawls are dropped | [`PruneAction`] |
//! | `{"action": "retry", "appid", "crawlid", "outcome": [..], ...}` | finished tasks of a crawl are re-queued | [`RetryAction`] |
//! | `{"action": "status"}` | a question about the fleet | [`Action`] |
//! | `{"action": "site", "site", ...}` | rules and state of one site, set or shown | [`SiteAction`] |
//! | `{"action": "sites", ...}` | the states of sites | [`SitesQuestion`] |
//! | `{"action": "why", ...}` | where a URL is, and why | [`WhyQuestion`] |
//! | `{"action": "watch_add", "watch": {...}}`, and others | the watches of a fleet | [`WatchAction`] |
//! | `{"name", "schedule", "seeds", ...}` | a watch: a crawl that is run again and again | [`Watch`] |
//!
//! An accepted feed is answered `{"accepted": n}`, with the number of URLs that were not queued by reason in `skipped`.
//! A refusal is answered `{"error": {"path", "message"}}`: a [`Refusal`], the JSON path of the fault and one clause
//! about it. A refused message changes nothing.
//!
//! Units: times are seconds since the epoch, delays are seconds, both may have fractions. Priorities are whole numbers
//! from 1 to 100, the highest first. A depth is a number of links from a request's URL, which is at depth 0.
//!
//! There is one parser, so a request has the same keys, limits and refusals on every path. The paths are the
//! dispatcher's control socket, HTTP, `webfill feed`, and the crawl requests in a seeds file of `webfill crawl
//! --seeds`. The settings of a crawl in its requests become [`SpecChanges`], which the dispatcher applies to the
//! [`CrawlSpec`] that it keeps for the crawl.
//!
//! For people the language is described in `docs/how-to/demand.md`, key by key in `docs/how-to/scrapy-cluster.md` and
//! in the JSON Schema that [`schema`] makes. The names are those of Scrapy Cluster 1.0 and do not change.
//!
//! The crate parses and validates. It opens nothing, knows no dispatcher, and keeps only the compiled patterns in use.

mod action;
mod batch;
mod crawl_request;
mod crawl_spec;
mod duration;
mod json;
mod question;
mod refusal;
mod rule;
mod schedule;
mod schema;
pub mod scope;
mod spec_changes;
mod spider;
#[cfg(test)]
mod tests;
mod watch;

pub use self::action::{
    Action, InfoQuestion, PruneAction, RetryAction, SiteAction, SitesQuestion, Subject,
    WhyQuestion, action_names, parse_action,
};
pub use self::batch::{Batch, CrawlOrder, MAX_REQUESTS, Seed};
pub use self::crawl_request::{CrawlRequest, RequestParser, request_keys};
pub use self::crawl_spec::CrawlSpec;
pub use self::duration::duration_ms;
pub use self::json::{parse, parse_line};
pub use self::question::{Question, is_list, parse_object, parse_question};
pub use self::refusal::Refusal;
pub use self::rule::nearest_known_name;
pub use self::schedule::{LastRun, Schedule};
pub use self::schema::crawl_request_schema;
pub use self::spec_changes::SpecChanges;
pub use self::spider::Spider;
pub use self::watch::{
    About, CrawlFlag, NotificationTarget, NotificationTime, Notify, RunEnd, Watch, WatchAction,
    WatchOrder, WatchRecords, WatchRun, watch_schema,
};
