//! What the benchmark programs share: figures beside their limits, time on a core, how much is measured,
//! made redesigns of real pages, made sites, the program that is measured, and visits of its dashboard.

pub mod core_time;
pub mod made_sites;
pub mod program;
pub mod redesign;
pub mod repairs;
pub mod sites;
pub mod size;
pub mod verdict;
pub mod visit;

pub use size::Size;
pub use verdict::{Limit, Verdict, report};
