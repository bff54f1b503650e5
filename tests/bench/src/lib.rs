//! Shared parts of the benchmark programs: measurements with limits, the time on a core, the sizes of benchmarks, and
//! redesigns of real pages. Other parts generate sites, take a dispatcher's turns, run the measured program, and send
//! requests to its dashboard.

pub mod catalogue_pages;
pub mod core_time;
pub mod dispatcher_turns;
pub mod made_sites;
pub mod made_verticals;
pub mod program;
pub mod redesign;
pub mod repairs;
pub mod sites;
pub mod size;
pub mod verdict;
pub mod visit;

pub use size::Size;
pub use verdict::{Limit, Verdict, report};

/// The English names of the months, as generated pages write them.
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
