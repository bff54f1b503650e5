//! When the pages of a watch are to be looked at again: what is believed of how often a page changes
//! ([`Rate`]), and in which order a run looks at the pages of a site, whose budget is its window divided
//! by its delay ([`Plan`]). Free of I/O and clocks.

mod plan;
mod rate;

pub use plan::{LONGEST_GAP_MS, Plan, SLOTS, SlotPages, slot_of};
pub use rate::{PageClass, Rate};
