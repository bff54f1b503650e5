//! The members of a source: a page that gave a value, with the evidence for it and the parts of its list.

use serde_json::Value;

/// The member of a source with the URL of the page that gave the former value, which a refresh has replaced by this
/// one.
pub(super) const INSTEAD_OF: &str = "instead_of";

/// The member of a source that says how well its page matches the record. Only pages that were reached over links have
/// it.
pub(super) const EVIDENCE: &str = "evidence";

/// The member of a source with the parts of a list that continues over several pages, in the order of the pages.
pub(super) const PARTS: &str = "parts";

/// The member of a list's part with the URLs of the pages that the part links to. Only candidates that are parts of
/// lists have it.
const FURTHER: &str = "further";

/// The most pages of one list. A longer one stays incomplete.
pub(super) const MAX_PARTS: usize = 200;

/// The largest former value or candidate, in bytes of JSON, so that they do not make a record too large to store.
pub(super) const MAX_CANDIDATE_BYTES: usize = 16 << 10;

/// How much a page's value counts against others, from how well the page matches the record. Pages without such
/// evidence count most, because the user has named them.
pub(super) fn evidence_weight(evidence: Option<u32>) -> u32 {
    evidence.unwrap_or(u32::MAX)
}

/// The evidence in a source; see [`EVIDENCE`].
pub(super) fn evidence_in(source: &Value) -> Option<u32> {
    source[EVIDENCE].as_u64().map(|evidence| evidence as u32)
}

/// Whether a candidate is only a part of a list rather than a whole value.
pub(super) fn is_part(candidate: &Value) -> bool {
    !candidate[FURTHER].is_null()
}
