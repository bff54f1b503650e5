//! Interns the names of tags and attributes: each name becomes a `LocalName`, which is cheap to compare.

use std::cell::RefCell;
use std::hash::Hasher;

use html5ever::LocalName;
use rustc_hash::FxHasher;

use super::class;
use super::run::REPLACEMENT;

/// A name as it is written in the page.
pub(super) struct Name<'i> {
    pub(super) written: &'i str,
    /// The classes of all bytes of the name together; see `class.rs`.
    pub(super) classes: u8,
}

/// Names up to this length are stored in the `LocalName` itself, which is cheap.
const PACKED_BYTES: usize = 7;
/// Names of more bytes are not kept, so that the cache stays small whatever pages contain.
const KEPT_BYTES: usize = 64;
const SLOTS: usize = 256;

thread_local! {
    /// The cache of the thread's last page.
    static OF_LAST_PAGE: RefCell<Vec<LocalName>> = const { RefCell::new(Vec::new()) };
}

/// A cache of the longer names of pages. Interning a long name takes a slow hash, and also a lock if HTML does not
/// define the name. Pages have few such names, but repeat them, and so do the next pages that the thread reads.
pub(super) struct Names {
    known: Vec<LocalName>,
}

impl Default for Names {
    fn default() -> Self {
        let mut known = OF_LAST_PAGE.take();
        known.resize(SLOTS, LocalName::default());
        Names { known }
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        OF_LAST_PAGE.set(std::mem::take(&mut self.known));
    }
}

impl Names {
    pub(super) fn intern_normalized(&mut self, name: Name<'_>) -> LocalName {
        if name.classes & class::CHANGES_IN_NAME == 0 {
            return self.intern(name.written);
        }
        let lower_case = name.written.to_ascii_lowercase();
        self.intern(&lower_case.replace('\0', REPLACEMENT))
    }

    fn intern(&mut self, name: &str) -> LocalName {
        if name.len() <= PACKED_BYTES || name.len() > KEPT_BYTES {
            return LocalName::from(name);
        }
        let mut hasher = FxHasher::default();
        hasher.write(name.as_bytes());
        let slot = &mut self.known[hasher.finish() as usize % SLOTS];
        if **slot != *name {
            *slot = LocalName::from(name);
        }
        slot.clone()
    }
}
