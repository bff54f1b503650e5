//! Detects changes of pages.
//!
//! A check reads the text of a page as [`Block`]s, or the fields that a mapping extracts. [`PageVersions`] keeps the
//! last versions of the page and judges the check. [`SiteBlocks`] finds text that appears or disappears on all pages of
//! a site together, which is not a change of a page. Differences between two fetches moments apart are ignored
//! ([`PageContent::merge_second_fetch`]). So are times that only show when the page was served.
//!
//! Everything is plain state that the caller stores: no I/O, no clock, no threads. Each part is limited in size,
//! whatever the pages contain. The rates of false alerts and of missed changes are measured in
//! `crates/changes/tests/made_pages` and documented in `docs/explanation/changes.md`.

mod blocks;
mod compare;
mod difference;
mod fields;
mod masks;
mod page;
mod page_check;
mod rows;
mod seen;
mod site;
mod template;
mod times;
mod unsteady;

pub use blocks::Block;
pub use page::{Answer, CheckKey, CheckOutcome, CheckedPage, PageVersions};
pub use page_check::{PageCheck, Verdict};
pub use seen::{PageContent, UnpackError};
pub use site::SiteBlocks;

/// The FNV hash of a text. It is stored, so it must be the same in every process and release.
pub(crate) fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    hash ^ (hash >> 32)
}
