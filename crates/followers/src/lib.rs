//! The followers of the store, each on a thread of its own beside the dispatcher's loop.
//!
//! [`ContentChanges`] and [`ExtractionHealth`] read the store's order of saves by one loop, `follow`. [`Firehose`]
//! reads the pages that are announced to it, and [`ChangeReader`] answers the core's questions about changes. Nothing
//! waits for any of them: what they leave undone, the next process does.

// Only `say!` and `terminal::printable_stdout` may print, because they escape control characters.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod change_reader;
mod content_changes;
mod extraction_health;
mod firehose;
mod follow;
mod followed_store;
pub mod row_lists;
pub mod run_changes;
pub mod thread;

pub use change_reader::ChangeReader;
pub use content_changes::{CheckListener, ContentChanges};
pub use extraction_health::ExtractionHealth;
pub use firehose::{Firehose, NotificationPublisher, Publish, Subscriptions};
