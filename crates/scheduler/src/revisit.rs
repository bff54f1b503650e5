//! Decides when the pages of a watch are checked again. [`Rate`] estimates how often a page changes. [`Plan`] orders a
//! run's checks of the pages of a site. The budget of the site is the run's window divided by the site's delay. No I/O
//! and no clocks.

mod plan;
mod rate;

pub use plan::{LONGEST_GAP_MS, Plan, SLOTS, SlotPages, slot_of};
pub use rate::{PageClass, Rate};
