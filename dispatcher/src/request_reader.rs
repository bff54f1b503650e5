//! Reads the requests that arrive on the control socket, on a thread of its own, so that a list of
//! a hundred thousand requests, or a pattern that takes long to compile, does not delay the
//! dispatcher's loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use crate::clock::SteadyClock;
use crate::control::{self, Asked};
use crate::outgoing::Client;
use crate::requester::Requester;
use webfill_api::Refusal;
use webfill_startup::Fault;

/// While frames of more than this many bytes wait to be read or carried out, further ones are
/// refused.
const MOST_WAITING_BYTES: usize = 256 << 20;

/// A client's request as it was read: valid, or with the reason why it is refused.
pub(crate) struct ClientRequest {
    pub(crate) requester: Requester,
    pub(crate) asked: Result<Asked, Refusal>,
    /// Released when the request is dropped.
    _share: BufferShare,
}

/// A frame's share of [`MOST_WAITING_BYTES`].
struct BufferShare {
    bytes: usize,
    taken: Arc<AtomicUsize>,
}

impl BufferShare {
    fn take(taken: &Arc<AtomicUsize>, bytes: usize) -> BufferShare {
        taken.fetch_add(bytes, Ordering::Relaxed);
        BufferShare {
            bytes,
            taken: Arc::clone(taken),
        }
    }
}

impl Drop for BufferShare {
    fn drop(&mut self) {
        self.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl ClientRequest {
    /// A request that was read by another thread.
    pub(crate) fn read(requester: Requester, asked: Result<Asked, Refusal>) -> ClientRequest {
        let _share = BufferShare::take(&Arc::default(), 0);
        ClientRequest {
            requester,
            asked,
            _share,
        }
    }
}

/// The thread's handle; it ends when this is dropped.
pub(crate) struct RequestReader {
    frames: mpsc::Sender<(Requester, Vec<u8>, BufferShare)>,
    taken: Arc<AtomicUsize>,
}

impl RequestReader {
    /// `is_private`: only processes of this user reach the control socket.
    pub(crate) fn start(
        clock: SteadyClock,
        is_private: bool,
        on_read: impl Fn(ClientRequest) + Send + 'static,
    ) -> Result<RequestReader, Fault> {
        let (frames, arrived) = mpsc::channel();
        std::thread::Builder::new()
            .name("request-reader".into())
            .spawn(move || read_all(&arrived, clock, is_private, on_read))
            .map_err(|error| Fault::error(format!("cannot start the request reader: {error}")))?;
        let taken = Arc::default();
        Ok(RequestReader { frames, taken })
    }

    /// Queues a frame without blocking.
    pub(crate) fn enqueue(&self, requester: Requester, mut frame: Vec<u8>) {
        if self.taken.load(Ordering::Relaxed) > MOST_WAITING_BYTES {
            // An empty frame is refused when it is read, so the answers keep their order.
            frame.clear();
        }
        let share = BufferShare::take(&self.taken, frame.len());
        // The thread ends only with this handle.
        let _ = self.frames.send((requester, frame, share));
    }
}

fn read_all(
    arrived: &mpsc::Receiver<(Requester, Vec<u8>, BufferShare)>,
    clock: SteadyClock,
    is_private: bool,
    on_read: impl Fn(ClientRequest),
) {
    for (requester, frame, share) in arrived {
        let asked = match frame.is_empty() {
            true => Err(Refusal::new(
                "$",
                "nothing to read, or too much at once: wait for the answers before going on",
            )),
            false => control::read(&frame, clock.wall_ms())
                .and_then(|asked| permitted(asked, &requester.client, is_private)),
        };
        on_read(ClientRequest {
            requester,
            asked,
            _share: share,
        });
    }
}

/// The requests of `webfill crawl` to its own dispatcher end it, and change any crawl: a key of a client
/// does not permit them.
fn permitted(asked: Asked, client: &Client, is_private: bool) -> Result<Asked, Refusal> {
    let is_from_outside = matches!(client, Client::Socket(_)) && !is_private;
    match asked {
        Asked::Local(_) if is_from_outside => Err(Refusal::new(
            "$.action",
            "only `webfill crawl` may ask this, of the dispatcher that it has started",
        )),
        asked => Ok(asked),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_in_order_and_release_their_bytes() {
        let (read, requests) = mpsc::channel();
        let reader = RequestReader::start(SteadyClock::start(), true, move |request| {
            read.send(request).unwrap();
        });
        let reader = reader.unwrap();
        for (peer, frame) in [(1, &b"rubbish"[..]), (2, b"[]"), (3, b"")] {
            reader.enqueue(Client::Socket(vec![peer]).into(), frame.to_vec());
        }
        let taken = Arc::clone(&reader.taken);
        drop(reader);
        let requests: Vec<ClientRequest> = requests.iter().collect();
        let peers: Vec<Client> = requests
            .iter()
            .map(|one| one.requester.client.clone())
            .collect();
        assert_eq!(peers, [1, 2, 3].map(|peer| Client::Socket(vec![peer])));
        let read: Vec<bool> = requests.iter().map(|one| one.asked.is_ok()).collect();
        assert_eq!(read, [false, true, false]);
        assert_eq!(taken.load(Ordering::Relaxed), 9);
        drop(requests);
        assert_eq!(taken.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn requests_of_the_command_come_by_private_sockets_alone() {
        let end = br#"{"action": "end", "crawls": []}"#.to_vec();
        for (is_private, client, is_read) in [
            (true, Client::Socket(vec![1]), true),
            (false, Client::Socket(vec![1]), false),
            (false, Client::Feeder(vec![1]), true),
        ] {
            let (read, requests) = mpsc::channel();
            let on_read = move |request| read.send(request).unwrap();
            let reader = RequestReader::start(SteadyClock::start(), is_private, on_read).unwrap();
            reader.enqueue(client.into(), end.clone());
            assert_eq!(requests.recv().unwrap().asked.is_ok(), is_read);
        }
    }

    #[test]
    fn frames_beyond_the_byte_limit_are_refused() {
        let (read, requests) = mpsc::channel();
        let on_read = move |request| read.send(request).unwrap();
        let reader = RequestReader::start(SteadyClock::start(), true, on_read).unwrap();
        reader
            .taken
            .store(MOST_WAITING_BYTES + 1, Ordering::Relaxed);
        reader.enqueue(Client::Socket(vec![1]).into(), b"[]".to_vec());
        let refusal = requests.recv().unwrap().asked.unwrap_err();
        assert!(refusal.message.contains("too much"), "{}", refusal.message);
    }
}
