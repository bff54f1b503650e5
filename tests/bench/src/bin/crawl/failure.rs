//! The error of a benchmark that could not be measured.

pub type Failure = Box<dyn std::error::Error + Send + Sync>;
