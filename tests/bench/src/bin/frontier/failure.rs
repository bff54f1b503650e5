//! The error of a measurement of the frontier that failed.

pub type Failure = Box<dyn std::error::Error>;
