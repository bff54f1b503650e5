//! Limits the connections that stay open between two requests (HTTP keep-alive) to
//! [`MAX_KEPT_OPEN`], because an idle connection keeps its read buffer of up to some hundred
//! kilobytes.
//!
//! A crawl of few sites keeps all of its connections open. A crawl of many sites sends `Connection: close` to all
//! further origins, which saves their servers idle connections, too.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Idle connections are closed after this time. Common servers close them after 5 seconds or more; a request that is
/// sent at that moment would be lost.
pub const IDLE: Duration = Duration::from_secs(4);

/// Connections that a worker keeps open between requests.
const MAX_KEPT_OPEN: usize = 16;

/// The origins whose connections stay open, each with the time when that permission ends.
#[derive(Debug, Default)]
pub struct KeptOpenConnections {
    until: HashMap<String, Instant>,
}

impl KeptOpenConnections {
    /// Claims a permit to keep the connection to `origin` open, for a request that starts `now` and takes at most
    /// `longest_request`, and for the idle time after it. Returns false if no permit is left; the connection must then
    /// be closed after the request.
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

/// The most connections that are remembered. A worker has fewer open connections, so only closed ones are forgotten.
const MOST_REMEMBERED: usize = 256;

/// The two ends of a connection, unique among open connections.
pub type Ends = (SocketAddr, SocketAddr);

/// The connections that recently delivered an answer. A request sent on one of them may find that the server has
/// closed it.
#[derive(Debug, Default)]
pub struct UsedConnections {
    lately: VecDeque<Ends>,
}

impl UsedConnections {
    /// Notes that a connection delivered an answer. Returns whether it had done so before.
    pub fn note_answer(&mut self, ends: Ends) -> bool {
        let is_reused = self.is_known(ends);
        if !is_reused {
            self.lately.truncate(MOST_REMEMBERED - 1);
            self.lately.push_front(ends);
        }
        is_reused
    }

    pub fn is_known(&self, ends: Ends) -> bool {
        self.lately.contains(&ends)
    }

    /// Notes that a connection is closed: another one may get the same ends.
    pub fn forget(&mut self, ends: Ends) {
        self.lately.retain(|known| *known != ends);
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
        assert!(try_keep_open("http://0", 3), "it has its place already");
        assert!(!try_keep_open("http://late", 4));
        assert!(
            try_keep_open("http://late", 6),
            "most have been idle by now"
        );
        assert!(try_keep_open("http://0", 7), "it was asked since");
    }

    #[test]
    fn a_connection_is_used_once_it_has_brought_an_answer_and_until_it_is_closed() {
        let ends = |port| -> Ends { (([127, 0, 0, 1], port).into(), ([127, 0, 0, 1], 80).into()) };
        let mut used = UsedConnections::default();
        assert!(!used.is_known(ends(1)));
        assert!(!used.note_answer(ends(1)));
        assert!(used.note_answer(ends(1)) && used.is_known(ends(1)));
        used.forget(ends(1));
        assert!(!used.note_answer(ends(1)));
        for port in 2..1_000 {
            used.note_answer(ends(port));
        }
        assert!(!used.is_known(ends(1)) && used.is_known(ends(999)));
        assert_eq!(used.lately.len(), MOST_REMEMBERED);
    }
}
