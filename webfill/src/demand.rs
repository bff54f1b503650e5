//! The commands that speak with a running dispatcher as its applications do: `feed`, `info`, `stop`,
//! `pause`, `resume`, `status`, `site`; and the one that listens to it, `dump`.
//!
//! Each asks in the public JSON of the control socket, so that whatever they can do any other client
//! can do as well.

mod actions;
mod batches;
mod connection;
mod dump;
mod feed;
mod site;
mod status;
mod table;

pub use actions::{ActionOptions, CrawlOptions, info, pause, resume, stop};
pub use connection::ConnectionOptions;
pub use dump::{DumpOptions, dump};
pub use feed::{FeedOptions, Tally, feed};
pub use site::{SiteOptions, site};
pub use status::{StatusOptions, status};
