//! Counts what the frontier's file holds, for the metrics: crawls, sites, records and notifications, and why queued
//! tasks wait. Each function counts one slice of a table in a short transaction, so that the write-ahead log can be
//! checkpointed in between. The caller walks through the slices, with a read-only connection of its own.

mod tables;
mod waits;

pub use tables::{
    CrawlTotals, NotificationTotals, RecordTotals, SiteTotals, count_crawls, count_records,
    count_sites, count_waiting_notifications,
};
pub use waits::{WaitCounter, WaitReason, WaitStarts, WaitTotal, WaitTotals};
