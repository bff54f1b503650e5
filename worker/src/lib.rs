//! Processes tasks: robots.txt, politeness, fetch, decode, extract, save.
//!
//! [`run`] runs the worker process. [`journey`] takes one task through the steps; each step has a file of its own. A
//! worker keeps only caches in memory. When it dies, its tasks go back to the dispatcher.

mod archive;
mod block_outcome;
pub mod blocks;
mod browser;
pub mod charset;
mod client;
mod conditions;
mod config;
mod connections;
mod counts;
#[cfg(test)]
mod cpu_time;
mod crash_marker;
mod crawled_pages;
mod documents;
mod extract;
mod fetch;
mod fetch_error;
mod fetch_permits;
mod gate;
mod journey;
mod kept_body;
mod mapping_rules;
mod memory;
mod now;
mod permission;
mod permits;
mod politeness;
mod reread;
pub mod resolve;
mod response_headers;
mod robots;
pub mod robots_rules;
mod run;
mod sampler;
mod save;
mod scripts;
mod shared_cache;
mod shared_clock;
mod single;
mod site_headers;
mod sitemaps;
mod sites;
mod snapshot;
mod stored_pages;
mod supervisor_reporter;
mod task_result;

pub use archive::{
    ArchiveConfig, ArchivedAnswer, ArchivedBody, WarcReader, check as check_archive,
    prepare as prepare_archive, recover as recover_archive, warc_files,
};
pub use browser::{BrowserConfig, check as check_browser};
pub use client::check as check_fetch;
pub use config::{BrowserUse, WorkerConfig, WorkerSetup, outcomes_endpoint, tasks_endpoint};
pub use crash_marker::{marker_path as crash_marker_path, read as read_crash_marker};
pub use crawled_pages::CrawledPages;
pub use documents::{
    DocumentsConfig, ReadDocument, check as check_documents, is_document,
    prepare as prepare_documents, read_single_document as read_document,
};
pub use fetch::{FetchConfig, parse_retry_after};
pub use gate::longest_request;
pub use mapping_rules::MappingSetRules;
// These politeness decisions are exported for the simulation (`tests/simulation/`), which runs them in simulated time.
pub use journey::address_to_count;
pub use now::Now;
pub use permission::{Knowledge, Permission, PermissionCheck, Step};
pub use permits::{Denied, Permit, Permits};
pub use politeness::{Answer, Answered, ClockOwner, PageKey, PolitenessConfig};
pub use reread::{PageRead, PageReader, PageToRead};
pub use resolve::PLACES as MOST_LOOK_UPS;
pub use robots::{RobotsFiles, RobotsResponse};
pub use run::run;
pub use single::{NoPage, SingleFetcher, SinglePage};
pub use sites::{Sites, Turn, site_clock};
