//! Limits the connections that stay open between two requests (HTTP keep-alive) to
//! [`MAX_KEPT_OPEN`], because an idle connection keeps its read buffer of up to some hundred
//! kilobytes.
//!
//! A crawl of few sites keeps all of its connections open. A crawl of many sends `Connection: close`
//! to all further origins, which saves their servers idle connections, too.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// An idle connection is closed after this long.
pub const IDLE: Duration = Duration::from_secs(20);

/// Connections that a worker keeps open between requests.
const MAX_KEPT_OPEN: usize = 16;

/// The origins whose connections stay open, each with the end of its entitlement.
#[derive(Debug, Default)]
pub struct KeptOpenConnections {
    until: HashMap<String, Instant>,
}

impl KeptOpenConnections {
    /// Claims a place for the connection to `origin`, for a request that starts `now` and takes at most
    /// `longest_request`, and for the idle time after it. Returns false if all places are taken; the
    /// connection must be closed after the request then.
    pub fn try_keep_open(&mut self, origin: &str, now: Instant, longest_request: Duration) -> bool {
        let until = now + longest_request + IDLE;
        if let Some(kept) = self.until.get_mut(origin) {
            *kept = until;
            return true;
        }
        if self.until.len() == MAX_KEPT_OPEN {
            self.until.retain(|_, until| *until > now);
        }
        let has_room = self.until.len() < MAX_KEPT_OPEN;
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
        let mut connections = KeptOpenConnections::default();
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let mut try_keep_open =
            |origin: &str, after| connections.try_keep_open(origin, start + second * after, second);
        for number in 0..MAX_KEPT_OPEN {
            assert!(try_keep_open(&format!("http://{number}"), 0));
        }
        assert!(!try_keep_open("http://late", 1));
        assert!(try_keep_open("http://0", 15), "it has its place already");
        assert!(!try_keep_open("http://late", 20));
        assert!(
            try_keep_open("http://late", 22),
            "most have been idle by now"
        );
        assert!(try_keep_open("http://0", 23), "it was asked since");
    }
}
