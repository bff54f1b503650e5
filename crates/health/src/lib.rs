//! The health of extractions: detects when the pages of a mapping no longer yield the values that they used to.
//!
//! Each mapping has a [`MappingHealth`] with a [`Series`] for each field: for all pages, for each template (layout),
//! and for values that records already had. It also has a [`Profile`] of each field's values. Only good pages are
//! judged, in the order they were saved. All of it is plain state that the caller stores. This crate does no I/O, reads
//! no clock and starts no threads. Each part is bounded, whatever the pages contain.
//!
//! Fields that fall (lose their values) together make one [`Alert`] that the layout has changed.
//! `crates/health/tests/simulation.rs` simulates how often alerts are false and how late they come;
//! `docs/explanation/health.md` has the results.
//! rate of false alerts and their delay; `docs/explanation/health.md` has the results.

mod alert;
mod alert_state;
mod alternatives;
mod deliveries;
mod good_page;
mod kept;
mod mapping_health;
mod profile;
mod recent;
mod rechecked_pages;
mod report;
mod rows;
mod scope;
mod series;
mod sources;
mod template;

pub use alert::{Alert, Event, FallenField, Sign, Warning, WarningKind};
pub use deliveries::Deliveries;
pub use good_page::GoodPage;
pub use kept::KeptPage;
pub use mapping_health::MappingHealth;
pub use profile::{Finding, Profile};
pub use rows::{RowsOfPage, split_rows_name};
pub use scope::{FieldHealth, Scope};
pub use series::{Fall, Series, Step, Witness, weight_of_nth_page};
pub use sources::Sources;
pub use template::{MOST_TEMPLATES, is_similar};

/// A hash that is the same in every process and release, because it is stored.
pub(crate) fn hash(text: &str) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash ^ (hash >> 32)
}

/// Whether an extracted value counts as a value. Records follow the same rule: null and an empty text do not count.
pub(crate) fn has_value(value: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::Null => false,
        serde_json::Value::String(text) => !text.is_empty(),
        serde_json::Value::Array(items) => !items.is_empty(),
        _ => true,
    }
}
