//! Tests of learning, on generated pages.
//!
//! All tests are one program, because linking a separate program for each would take long.

mod dates;
mod forms;
mod hostile;
mod kinds;
mod learning;
mod made;
mod odd_values;
mod repairs;
mod rows;
mod said;
mod stand_ins;
mod unlabelled;
