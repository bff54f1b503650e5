//! Postpones outcomes of tasks to later turns of the dispatcher's loop, so that no turn takes long.
//!
//! An outcome may bring the 50,000 URLs of a sitemap, and hundreds of such outcomes may wait. A turn takes
//! [`TURN_BYTES`] of outcomes and leaves the rest, in order, to later turns. All other events come first, above all
//! heartbeats: they are answered after the turn, and without the answers supervisors stop fetching. Outcomes have a
//! socket of their own, so their order relative to other messages does not matter.

use std::collections::VecDeque;

/// A turn takes outcomes until they have this many bytes: about those of one large sitemap, or of some ten thousand
/// ordinary pages.
const TURN_BYTES: usize = 2 << 20;

/// Events that wait for a later turn, with their sizes.
pub(crate) struct PostponedEvents<E>(VecDeque<(usize, E)>);

impl<E> Default for PostponedEvents<E> {
    fn default() -> PostponedEvents<E> {
        PostponedEvents(VecDeque::new())
    }
}

impl<E> PostponedEvents<E> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts back events that a turn had no time for. They come first in the next turn.
    pub(crate) fn put_back(&mut self, left: impl Iterator<Item = (usize, E)>) {
        let behind = std::mem::take(&mut self.0);
        self.0 = left.chain(behind).collect();
    }

    /// Begins a turn with as many postponed events as fit into it.
    pub(crate) fn begin_turn(&mut self) -> TurnEvents<'_, E> {
        let mut events = Vec::new();
        let mut bytes = 0;
        while bytes < TURN_BYTES
            && let Some((more, event)) = self.0.pop_front()
        {
            bytes += more;
            events.push(event);
        }
        TurnEvents {
            postponed: self,
            taken: events.len(),
            events,
            bytes,
        }
    }
}

/// The events that one turn applies.
pub(crate) struct TurnEvents<'p, E> {
    postponed: &'p mut PostponedEvents<E>,
    events: Vec<E>,
    taken: usize,
    bytes: usize,
}

impl<E> TurnEvents<'_, E> {
    /// Adds an event, or postpones it. Only outcomes are postponed; `outcome_bytes` is their length.
    pub(crate) fn add(&mut self, outcome_bytes: Option<usize>, event: E) {
        self.taken += 1;
        match outcome_bytes {
            Some(bytes) if self.bytes >= TURN_BYTES => self.postponed.0.push_back((bytes, event)),
            _ => {
                self.bytes += outcome_bytes.unwrap_or_default();
                self.events.push(event);
            }
        }
    }

    /// The number of events passed to this turn, including the postponed ones.
    pub(crate) fn event_count(&self) -> usize {
        self.taken
    }

    pub(crate) fn into_events(self) -> Vec<E> {
        self.events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_outcomes_wait_for_later_turns_and_hold_up_nothing_else() {
        let mut postponed = PostponedEvents::default();
        let mut turn = postponed.begin_turn();
        let long = Some(TURN_BYTES / 2 + 1);
        for (bytes, name) in [(long, "a"), (long, "b"), (long, "c"), (None, "heartbeat")] {
            turn.add(bytes, name);
        }
        turn.add(Some(1), "d");
        assert_eq!(turn.into_events(), ["a", "b", "heartbeat"]);
        let mut turn = postponed.begin_turn();
        turn.add(long, "e");
        turn.add(long, "f");
        turn.add(None, "hello");
        assert_eq!(turn.into_events(), ["c", "d", "e", "hello"]);
        let turn = postponed.begin_turn();
        assert_eq!(turn.into_events(), ["f"]);
        assert!(postponed.is_empty());
        postponed.put_back([(1, "g"), (0, "h")].into_iter());
        postponed.put_back([(0, "before")].into_iter());
        assert_eq!(postponed.begin_turn().into_events(), ["before", "g", "h"]);
    }
}
