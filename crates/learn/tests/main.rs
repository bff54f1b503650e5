//! Tests of learning, from made pages.
//!
//! All of them are one program, because each program links everything that it tests.

mod dates;
mod forms;
mod hostile;
mod kinds;
mod learning;
mod made;
mod repairs;
mod rows;
mod said;
mod stand_ins;
mod unlabelled;
