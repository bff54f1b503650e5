//! Why the frontier could not be measured.

pub type Failure = Box<dyn std::error::Error>;
