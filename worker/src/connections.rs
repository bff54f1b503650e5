//! Which connections stay open for the next request: few, because each holds its read buffer, of up
//! to some hundred kilobytes, for as long as it is idle.
//!
//! A crawl of few sites keeps all of its connections. A crawl of many asks the servers beyond the
//! first [`MOST_KEPT`] to close after the answer, which saves them idle connections too.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// An idle connection is closed after this long.
pub const IDLE: Duration = Duration::from_secs(20);

/// Connections that a worker keeps open between requests.
const MOST_KEPT: usize = 16;

/// Whose connection may stay open, and until when nobody else gets its place.
#[derive(Debug, Default)]
pub struct KeptConnections {
    until: HashMap<String, Instant>,
}

impl KeptConnections {
    /// Whether the connection to `origin` may stay open after a request that starts `now` and takes
    /// at most `longest_request`. If so, it has its place until it is idle for too long.
    pub fn may_stay(&mut self, origin: &str, now: Instant, longest_request: Duration) -> bool {
        let until = now + longest_request + IDLE;
        if let Some(kept) = self.until.get_mut(origin) {
            *kept = until;
            return true;
        }
        if self.until.len() == MOST_KEPT {
            self.until.retain(|_, until| *until > now);
        }
        let has_room = self.until.len() < MOST_KEPT;
        if has_room {
            self.until.insert(origin.to_owned(), until);
        }
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_origins_keep_their_connections_until_they_are_idle() {
        let mut connections = KeptConnections::default();
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let mut may_stay =
            |origin: &str, after| connections.may_stay(origin, start + second * after, second);
        for number in 0..MOST_KEPT {
            assert!(may_stay(&format!("http://{number}"), 0));
        }
        assert!(!may_stay("http://late", 1));
        assert!(may_stay("http://0", 15), "it has its place already");
        assert!(!may_stay("http://late", 20));
        assert!(may_stay("http://late", 22), "most have been idle by now");
        assert!(may_stay("http://0", 23), "it was asked since");
    }
}
