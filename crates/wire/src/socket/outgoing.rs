//! A queue of outgoing frames that wait, in order, until libzmq takes them.
//!
//! On a socket for clients, libzmq takes only a limited number of frames for each peer. Frames for a peer that does not
//! read wait separately, in order, and are retried after a while. So they do not delay frames for other peers.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use super::{FrameAttachment, Peer};

/// The shortest and the longest pause before frames for peers that do not read are sent again.
const SHORTEST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// An outgoing frame.
pub(super) struct OutgoingFrame {
    pub(super) peer: Option<Peer>,
    pub(super) frame: Vec<u8>,
    pub(super) held: Option<Box<dyn FrameAttachment>>,
}

/// The result of sending a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendResult {
    /// The frame was sent, or can never be sent.
    Done,
    NotYet,
}

#[derive(Default)]
pub(super) struct OutgoingQueue {
    frames: VecDeque<OutgoingFrame>,
    /// The frames for peers that do not read, by peer.
    stalled: BTreeMap<Peer, VecDeque<OutgoingFrame>>,
    /// When the stalled frames are retried, and the pause before that.
    retry: Option<(Instant, Duration)>,
}

impl OutgoingQueue {
    /// Whether no frames are waiting, except those for peers that do not read.
    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// When the frames for peers that do not read are retried next.
    pub(super) fn retry_at(&self) -> Option<Instant> {
        self.retry.map(|(at, _)| at)
    }

    pub(super) fn push(&mut self, one: OutgoingFrame) {
        self.frames.push_back(one);
    }

    /// Sends as many frames as possible. `parts_peers` says whether libzmq may still take frames for other peers when
    /// it takes no more for one.
    pub(super) fn send_all(
        &mut self,
        parts_peers: bool,
        mut send: impl FnMut(&OutgoingFrame) -> SendResult,
    ) {
        self.retry_stalled(&mut send);
        while let Some(one) = self.frames.pop_front() {
            let peer = one.peer.as_ref().filter(|_| parts_peers);
            if let Some(stalled) = peer.and_then(|peer| self.stalled.get_mut(peer)) {
                stalled.push_back(one);
                continue;
            }
            if send(&one) == SendResult::Done {
                continue;
            }
            let Some(peer) = peer.cloned() else {
                self.frames.push_front(one);
                return;
            };
            self.stalled.entry(peer).or_default().push_back(one);
            self.retry
                .get_or_insert((Instant::now() + SHORTEST_PAUSE, SHORTEST_PAUSE));
        }
    }

    fn retry_stalled(&mut self, send: &mut impl FnMut(&OutgoingFrame) -> SendResult) {
        let now = Instant::now();
        let Some((at, pause)) = self.retry else {
            return;
        };
        if now < at {
            return;
        }
        let mut reads = false;
        self.stalled.retain(|_, frames| {
            while let Some(one) = frames.front() {
                if send(one) == SendResult::NotYet {
                    return true;
                }
                reads = true;
                frames.pop_front();
            }
            false
        });
        let pause = match reads {
            true => SHORTEST_PAUSE,
            false => (pause * 2).min(LONGEST_PAUSE),
        };
        self.retry = (!self.stalled.is_empty()).then_some((now + pause, pause));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn outgoing_frame(peer: u8, frame: u8) -> OutgoingFrame {
        OutgoingFrame {
            peer: Some(vec![peer]),
            frame: vec![frame],
            held: None,
        }
    }

    #[test]
    fn a_peer_that_does_not_read_delays_no_other_peer() {
        let mut waiting = OutgoingQueue::default();
        for (peer, frame) in [(1, 1), (2, 2), (1, 3), (3, 4)] {
            waiting.push(outgoing_frame(peer, frame));
        }
        let sent = RefCell::new(Vec::new());
        let reads = RefCell::new(false);
        let send = |one: &OutgoingFrame| {
            if one.peer == Some(vec![1]) && !*reads.borrow() {
                return SendResult::NotYet;
            }
            sent.borrow_mut().push(one.frame[0]);
            SendResult::Done
        };
        waiting.send_all(true, send);
        assert_eq!(*sent.borrow(), [2, 4]);
        assert!(waiting.is_empty(), "nothing else waits");
        *reads.borrow_mut() = true;
        while waiting.retry_at().is_some() {
            waiting.push(outgoing_frame(1, 5));
            std::thread::sleep(SHORTEST_PAUSE);
            waiting.send_all(true, send);
        }
        assert_eq!(sent.borrow()[..5], [2, 4, 1, 3, 5], "in their order");
    }

    #[test]
    fn frames_of_other_sockets_wait_in_order() {
        let mut waiting = OutgoingQueue::default();
        for (peer, frame) in [(1, 1), (2, 2)] {
            waiting.push(outgoing_frame(peer, frame));
        }
        waiting.send_all(false, |one| match one.frame[0] {
            1 => SendResult::NotYet,
            _ => unreachable!("it waits behind the first"),
        });
        assert!(!waiting.is_empty());
    }
}
