//! What the benchmark programs share: figures beside their limits, and how much is measured.

pub mod size;
pub mod verdict;

pub use size::Size;
pub use verdict::{Limit, Verdict, report};
