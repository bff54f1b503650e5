//! Tests of learning, from made pages.
//!
//! One program, because each links all that it tests.

mod dates;
mod hostile;
mod kinds;
mod learning;
mod made;
mod rows;
mod said;
mod unlabelled;
