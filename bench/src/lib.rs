//! What the benchmark programs share: figures beside their limits, how much is measured, and made redesigns
//! of real pages.

pub mod redesign;
pub mod repairs;
pub mod sites;
pub mod size;
pub mod verdict;

pub use size::Size;
pub use verdict::{Limit, Verdict, report};
