//! Limits the work in one turn of the loop. The core has no clock: the process decides when a turn must end, and the
//! rest of the work is left to the next one.

/// Decides when a step must stop and leave the rest to the next turn of the loop. Each turn does at least some of each
/// step, however late it is.
#[derive(Default)]
pub struct TurnDeadline(Option<Box<dyn Fn() -> bool + Send>>);

impl TurnDeadline {
    pub fn from_check(has_come: impl Fn() -> bool + Send + 'static) -> TurnDeadline {
        TurnDeadline(Some(Box::new(has_come)))
    }

    /// Whether the rest must wait for the next turn of the loop. Always false if no end was set.
    pub(super) fn is_over(&self) -> bool {
        self.0.as_ref().is_some_and(|has_come| has_come())
    }
}
