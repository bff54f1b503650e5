//! Chooses which of several dispatchers the supervisor talks to. One of them serves; the others do not answer. If the
//! current one does not answer for too long, the supervisor tries the next one.

/// The shortest silence before the next dispatcher is tried, in milliseconds.
const LEAST_PATIENCE_MS: u64 = 2_000;

/// Which of several dispatchers the supervisor talks to now.
#[derive(Debug)]
pub(crate) struct Following {
    count: usize,
    current: usize,
    /// The time of the last message from the dispatcher, or of the first attempt to reach it.
    heard_ms: u64,
}

impl Following {
    pub(crate) fn new(count: usize, now_ms: u64) -> Following {
        Following {
            count,
            current: 0,
            heard_ms: now_ms,
        }
    }

    pub(crate) fn current_dispatcher(&self) -> usize {
        self.current
    }

    /// Notes that a message of the dispatcher has arrived.
    pub(crate) fn note_heard(&mut self, now_ms: u64) {
        self.heard_ms = now_ms;
    }

    /// Moves on to the next dispatcher if the current one has been silent for a quarter of a lease. So a supervisor
    /// usually finds the serving dispatcher before its lease ends. Returns the index of the next dispatcher, if it
    /// moves on.
    pub(crate) fn advance_if_silent(&mut self, lease_ms: u64, now_ms: u64) -> Option<usize> {
        let patience_ms = (lease_ms / 4).max(LEAST_PATIENCE_MS);
        if self.count < 2 || now_ms < self.heard_ms + patience_ms {
            return None;
        }
        self.heard_ms = now_ms;
        self.current = (self.current + 1) % self.count;
        Some(self.current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_dispatcher_is_tried_once_the_current_one_is_silent() {
        let mut following = Following::new(3, 1_000);
        assert_eq!(following.advance_if_silent(20_000, 5_999), None);
        following.note_heard(5_999);
        assert_eq!(following.advance_if_silent(20_000, 10_998), None);
        assert_eq!(following.advance_if_silent(20_000, 10_999), Some(1));
        assert_eq!(following.advance_if_silent(20_000, 11_000), None);
        assert_eq!(following.advance_if_silent(0, 12_999), Some(2));
        assert_eq!(following.advance_if_silent(0, 14_999), Some(0));
        let mut only_one = Following::new(1, 1_000);
        assert_eq!(only_one.advance_if_silent(0, 1_000_000), None);
    }
}
