//! The commands that act as an application of a running dispatcher: `feed`, `info`, `stop`, `pause`, `resume`, `retry`,
//! `prune`, `status`, `reload`, `drain`, `site`, `sites`, `why` and `watch` send requests; `dump` subscribes to the
//! firehose.
//!
//! Requests are the public JSON of the control socket, so any other client can do the same.

mod actions;
mod batches;
mod connection;
mod drain;
mod dump;
mod feed;
mod feed_input;
mod local_site;
mod progress;
mod prune;
mod prune_store;
mod reload;
mod retry;
mod site;
mod sites;
mod status;
pub mod table;
mod tally;
mod watches;
mod why;

pub use actions::{
    ActionOptions, CrawlOptions, new_action as crawl_action, pause, print_info, resume, stop,
};
pub use connection::{
    ConnectionOptions, control_socket_list, control_sockets, feed_list, send_action,
};
pub use drain::{DrainOptions, drain};
pub use dump::{DumpOptions, dump};
pub use feed::{FeedOptions, feed};
pub use prune::{PruneOptions, prune};
pub use reload::{ReloadOptions, reload};
pub use retry::{RetryOptions, retry, retry_action};
pub use site::{SiteOptions, run_site_action};
pub use sites::{SitesOptions, print_sites};
pub use status::{StatusOptions, print_status};
pub use tally::Tally;
pub use watches::{
    WatchAddOptions, WatchListOptions, WatchNameOptions, WatchShowOptions, watch_add, watch_list,
    watch_pause, watch_remove, watch_resume, watch_run, watch_show,
};
pub use why::{WhyOptions, print_why, request_why};
