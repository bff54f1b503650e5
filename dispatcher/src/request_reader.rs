//! Parses the requests that arrive on the control socket, on separate threads. So a list of a hundred thousand
//! requests, or a pattern that takes long to compile, does not delay the dispatcher's loop.
//!
//! Requests beyond a sender's limits are refused unread ([`crate::permits`]), and so are requests that its rights
//! certainly forbid. Senders take turns. One of the two threads reads only short requests, so that these never wait for
//! long requests of others. A long request is read only when most of the earlier ones have been carried out. The
//! requests of one sender are read in their order, one after another.

use std::collections::HashSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use webfill_api::Refusal;
use webfill_scheduler::control::{self, ControlRequest};
use webfill_scheduler::effects::Client;
use webfill_scheduler::requester::{Requester, Sender, SenderInfo};
use webfill_service::Fault;
use webfill_wire::RefusalLog;
use webfill_wire::socket::Peer;

use crate::clock::SteadyClock;
use crate::fair_queue::FairQueue;
use crate::permits::{Admission, Gauge, MessageAdmission, SMALL_BYTES, SharedPermits};

/// While this many bytes of long requests are read but not carried out yet, no further one is read.
const MOST_READ_BYTES: usize = 24 << 20;

/// How often to check whether a long request may be read.
const POLL_EVERY: Duration = Duration::from_millis(5);

/// The approximate memory of a parsed short request, in bytes.
const BYTES_OF_A_REQUEST: usize = 1_024;

/// A client's request after parsing: valid, or with the reason for its refusal.
pub(crate) struct ClientRequest {
    pub(crate) requester: Requester,
    pub(crate) asked: Result<ControlRequest, Refusal>,
}

/// A request that waits to be read.
struct Frame {
    requester: Requester,
    content: FrameContent,
}

enum FrameContent {
    Unread(Vec<u8>),
    /// A refusal. It waits for the sender's turn, so that answers keep their order.
    Refused(Refusal),
    UnreadFeed,
}

impl Frame {
    fn is_short(&self) -> bool {
        match &self.content {
            FrameContent::Unread(frame) => frame.len() <= SMALL_BYTES,
            FrameContent::Refused(_) | FrameContent::UnreadFeed => true,
        }
    }
}

/// The handle of the reading threads. They end when this is dropped and everything is read.
pub(crate) struct RequestReader {
    permits: SharedPermits,
    /// Limits the log lines about senders that are not heard to one a minute for each.
    unheard: RefusalLog,
    /// Whether only processes of this user reach the control socket. Then requests are not limited.
    is_private: bool,
    shared: Arc<Shared>,
}

struct Shared {
    waiting: Mutex<WaitingFrames>,
    changed: Condvar,
    gauge: Gauge,
}

#[derive(Default)]
struct WaitingFrames {
    frames: FairQueue<Frame>,
    /// Senders whose requests are being read at present.
    busy: HashSet<Sender>,
    is_closed: bool,
}

impl RequestReader {
    /// Starts the reading threads. `is_private` says that only processes of this user reach the control socket.
    pub(crate) fn start(
        clock: SteadyClock,
        is_private: bool,
        permits: SharedPermits,
        on_read: impl Fn(ClientRequest) + Send + Sync + 'static,
    ) -> Result<RequestReader, Fault> {
        let shared = Arc::new(Shared {
            waiting: Mutex::default(),
            changed: Condvar::new(),
            gauge: permits.lock().gauge(),
        });
        let on_read = Arc::new(on_read);
        for (name, reads_long) in [("request-reader", true), ("short-requests", false)] {
            let (shared, on_read) = (Arc::clone(&shared), Arc::clone(&on_read));
            let read = move || {
                while let Some((sender, frame)) = shared.wait_for_next(reads_long) {
                    on_read(parse_frame(frame, clock, is_private));
                    shared.lock().busy.remove(&sender);
                    shared.changed.notify_all();
                }
            };
            std::thread::Builder::new()
                .name(name.into())
                .spawn(read)
                .map_err(|error| {
                    Fault::error(format!("cannot start the request reader: {error}"))
                })?;
        }
        Ok(RequestReader {
            permits,
            unheard: RefusalLog::default(),
            is_private,
            shared,
        })
    }

    /// Decides whether messages of this connection are handled at all.
    pub(crate) fn judge_message(&self, peer: &Peer, bytes: usize) -> MessageAdmission {
        match self.is_private {
            true => MessageAdmission::Heard,
            false => self.permits.lock().message_admission(peer, bytes),
        }
    }

    /// Queues a frame to be read, or its refusal. Does not block.
    pub(crate) fn enqueue(&mut self, requester: Requester, frame: Vec<u8>) {
        self.enqueue_content(requester, FrameContent::Unread(frame));
    }

    /// Queues the refusal of crawl requests without reading them, because their sender has only read access
    /// ([`rights::is_refused_unread`]).
    pub(crate) fn enqueue_unread(&mut self, requester: Requester) {
        self.enqueue_content(requester, FrameContent::UnreadFeed);
    }

    fn enqueue_content(&mut self, mut requester: Requester, mut content: FrameContent) {
        let bytes = match &content {
            FrameContent::Unread(frame) => frame.len(),
            FrameContent::Refused(_) | FrameContent::UnreadFeed => 0,
        };
        if let Client::Socket(one) = &mut requester.client
            && !self.is_private
        {
            let key = requester.who.name.as_ref();
            let admission = self.permits.lock().admit(&one.peer, key, bytes);
            let permit = match admission {
                Admission::Taken(permit) => permit,
                Admission::Refused(permit, why) => {
                    content = FrameContent::Refused(Refusal::temporary("$", why));
                    permit
                }
                Admission::Unheard => return self.log_ignored_sender(&requester.who),
            };
            one.permit = Some(Arc::new(permit));
        }
        let sender = requester.sender();
        let frame = Frame { requester, content };
        self.shared.lock().frames.push(sender, frame);
        self.shared.changed.notify_all();
    }
}

impl RequestReader {
    fn log_ignored_sender(&mut self, who: &SenderInfo) {
        let (name, address) = (who.name.as_deref(), who.address.as_deref());
        let what = format!("unheard {name:?} {address:?}");
        if self.unheard.record_if_new(&what) {
            tracing::warn!(
                event = "client_unheard",
                name,
                address,
                "a client exceeds its limits and does not read the refusals: no more are sent"
            );
        }
    }
}

impl Drop for RequestReader {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, WaitingFrames> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next request to read, and marks its sender as busy. `None` at the end.
    fn wait_for_next(&self, reads_long: bool) -> Option<(Sender, Frame)> {
        let mut waiting = self.lock();
        loop {
            let has_room = self.gauge.read_bytes() < MOST_READ_BYTES;
            let WaitingFrames { frames, busy, .. } = &mut *waiting;
            let next = frames.pop_next(|sender, frame| {
                !busy.contains(sender) && (frame.is_short() || (reads_long && has_room))
            });
            if let Some((sender, frame)) = next {
                busy.insert(sender.clone());
                return Some((sender, frame));
            }
            if waiting.is_closed && waiting.frames.is_empty() {
                return None;
            }
            // Nothing signals that there is room for a long request again, so this is polled for.
            waiting = match has_room {
                true => self
                    .changed
                    .wait(waiting)
                    .unwrap_or_else(PoisonError::into_inner),
                false => {
                    let waited = self.changed.wait_timeout(waiting, POLL_EVERY);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

fn parse_frame(frame: Frame, clock: SteadyClock, is_private: bool) -> ClientRequest {
    let Frame { requester, content } = frame;
    let mut bytes = BYTES_OF_A_REQUEST;
    let asked = match content {
        FrameContent::Refused(refusal) => Err(refusal),
        FrameContent::UnreadFeed => Ok(ControlRequest::UnreadFeed),
        FrameContent::Unread(frame) => {
            let asked = control::parse_request(&frame, clock.wall_ms());
            if let Ok(ControlRequest::Feed { batch, .. }) = &asked {
                bytes += frame.len() + batch.memory_bytes();
            }
            asked.and_then(|asked| check_origin(asked, &requester.client, is_private))
        }
    };
    if let Some(permit) = requester.client.permit() {
        permit.note_read(bytes);
    }
    ClientRequest { requester, asked }
}

/// Refuses requests that `webfill crawl` sends to its own dispatcher if they come from outside. Such requests can end
/// the dispatcher and change any crawl, which no client's key permits.
fn check_origin(
    asked: ControlRequest,
    client: &Client,
    is_private: bool,
) -> Result<ControlRequest, Refusal> {
    let is_from_outside = matches!(client, Client::Socket(_)) && !is_private;
    match asked {
        ControlRequest::Local(_) if is_from_outside => Err(Refusal::new(
            "$.action",
            "only `webfill crawl` may send this, to the dispatcher that it started",
        )),
        asked => Ok(asked),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn requester(peer: u8) -> Requester {
        Client::Socket(vec![peer].into()).into()
    }

    fn reader(is_private: bool) -> (RequestReader, mpsc::Receiver<ClientRequest>) {
        let (read, requests) = mpsc::channel();
        let on_read = move |request| read.send(request).unwrap();
        let permits = SharedPermits::default();
        let reader = RequestReader::start(SteadyClock::start(), is_private, permits, on_read);
        (reader.unwrap(), requests)
    }

    #[test]
    fn frames_of_a_sender_are_read_in_order() {
        let (mut reader, requests) = reader(false);
        let long = format!("[{}]", " ".repeat(2 * SMALL_BYTES));
        for frame in [&b"rubbish"[..], long.as_bytes(), b"", b"[]"] {
            reader.enqueue(requester(1), frame.to_vec());
        }
        drop(reader);
        let read = requests.iter().map(|one| one.asked.is_ok());
        assert_eq!(read.collect::<Vec<bool>>(), [false, true, false, true]);
    }

    #[test]
    fn requests_of_the_command_come_by_private_sockets_alone() {
        let end = br#"{"action": "end", "crawls": []}"#.to_vec();
        for (is_private, client, is_read) in [
            (true, Client::Socket(vec![1].into()), true),
            (false, Client::Socket(vec![1].into()), false),
            (false, Client::Feeder(vec![1]), true),
        ] {
            let (mut reader, requests) = reader(is_private);
            reader.enqueue(client.into(), end.clone());
            assert_eq!(requests.recv().unwrap().asked.is_ok(), is_read);
        }
    }

    #[test]
    fn a_long_list_waits_until_those_before_it_are_carried_out_and_holds_up_no_short_request() {
        let (mut reader, requests) = reader(false);
        let request = r#"{"url": "http://a.org/", "appid": "a", "crawlid": "c"}"#;
        let list = format!("[{}]", vec![request; 100_000].join(","));
        for peer in 1..=3 {
            reader.enqueue(requester(peer), list.clone().into_bytes());
        }
        let first: Vec<ClientRequest> = requests.iter().take(2).collect();
        reader.enqueue(requester(4), b"[]".to_vec());
        let peer = |one: &ClientRequest| one.requester.client.clone();
        assert_eq!(peer(&requests.recv().unwrap()), requester(4).client);
        assert!(requests.try_recv().is_err(), "the third list waits");
        drop(first);
        assert_eq!(peer(&requests.recv().unwrap()), requester(3).client);
    }

    #[test]
    fn what_is_too_much_of_a_connection_is_refused_for_now() {
        let (mut reader, requests) = reader(false);
        for _ in 0..1_001 {
            reader.enqueue(requester(1), b"[]".to_vec());
        }
        let read: Vec<ClientRequest> = requests.iter().take(1_001).collect();
        let refusal = read.last().unwrap().asked.as_ref().unwrap_err();
        assert!(refusal.retry);
        assert_eq!(refusal.message, crate::permits::TOO_MUCH);
        assert!(read[999].asked.is_ok());
    }
}
