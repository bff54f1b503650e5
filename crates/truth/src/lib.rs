//! Estimates how likely it is that a value is true.
//!
//! [`estimate`] gets the values that chains (extraction rules) have read on pages ([`Claim`]), and the values that
//! records already have ([`Known`]), some of them wrong. For each item (a field of a row), it computes the value or
//! values to choose, each with a confidence. It also computes how precise each layout is for each field, how often
//! records are wrong, and which known values are doubtful. `docs/explanation/truth.md` explains the method and its
//! accuracy.
//!
//! Pure arithmetic: no network, no files, no clock, no randomness. The same evidence in another order gives the same
//! judgement.
//! judgement.

mod cells;
mod copies;
mod elsewhere;
mod evidence;
mod foreign;
mod index;
mod interval;
mod judgement;
mod model;
mod profile;
mod rounds;
mod several;
mod single;

pub use evidence::{Chosen, Claim, Evidence, FieldShape, Known, Presence};
pub use interval::{Interval, wilson_interval};
pub use judgement::{
    Decision, DecisionReason, Doubt, ItemJudgement, JudgedValue, Judgement, Precision,
};

/// Judges all values of a table.
pub fn estimate(evidence: &Evidence<'_>) -> Judgement {
    let index = index::Index::new(evidence);
    let model = model::Model::learn(&index);
    Judgement::new(&index, &model)
}
