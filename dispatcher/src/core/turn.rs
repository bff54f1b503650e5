//! How much of what waits is done in one turn of the loop. The core has no clock: what it does follows from the
//! times that it is given. This one alone it reads by itself, and only to leave the rest to the next turn.

use std::time::Instant;

/// When a step that may go on in the next turn is to stop. Each turn does some of it, however late it is.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TurnEnd(Option<Instant>);

impl TurnEnd {
    pub(crate) fn at(end: Instant) -> TurnEnd {
        TurnEnd(Some(end))
    }

    /// Whether the rest is for the next turn. Never, unless an end was set.
    pub(super) fn has_come(self) -> bool {
        self.0.is_some_and(|end| Instant::now() >= end)
    }
}
