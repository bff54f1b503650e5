//! Limits the dispatcher's work for clients. A client's work in progress is counted for its connection, for its key,
//! and for all clients together. Three things are counted: requests, until their answers were sent; the bytes of
//! requests, until they are answered; and the bytes of answers that the client has not read.
//!
//! A request beyond a limit is refused for now, before it is read. A short request ([`SMALL_BYTES`]) of a client with
//! nothing else in progress is always admitted. So a client that sends one short request at a time is never refused
//! because of others, unless its key has requests in progress on too many connections. A client that continues to send
//! without reading its refusals gets no more refusals until its work is within the limits again. If it still continues,
//! it floods: its connection is closed.
//!
//! A [`Permit`] accompanies a request and then its answer. Dropping it gives its share back, however the request was
//! answered.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use webfill_scheduler::effects::RequestPermit;
use webfill_wire::socket::{FrameAttachment, Peer};

/// The limits of work in progress.
struct Bounds {
    requests: usize,
    bytes: usize,
    answer_bytes: usize,
}

const OF_A_CONNECTION: Bounds = Bounds {
    requests: 1_000,
    bytes: 32 << 20,
    answer_bytes: 1 << 20,
};

const OF_A_KEY: Bounds = Bounds {
    requests: 4_000,
    bytes: 48 << 20,
    answer_bytes: 4 << 20,
};

const OF_ALL: Bounds = Bounds {
    requests: 100_000,
    bytes: 128 << 20,
    answer_bytes: 32 << 20,
};

/// The maximum number of connections with work in progress per key.
const MOST_CONNECTIONS_OF_A_KEY: usize = 256;

pub(crate) const TOO_MUCH: &str = "too many requests at once: read the pending answers first";
const TOO_MANY_CONNECTIONS: &str =
    "this key has requests pending on too many connections: use fewer, or wait for their answers";

/// A client whose work in progress exceeds its limits this many times gets no more refusals (it is unheard). If it then
/// sends as much again, it is disconnected.
const UNHEARD_BEYOND: usize = 4;

/// A request of at most this size is always admitted if its sender has nothing else in progress.
pub(crate) const SMALL_BYTES: usize = 64 << 10;

/// The approximate memory of an answer beside its bytes.
const BYTES_OF_AN_ANSWER: usize = 200;

/// The counts of work in progress.
#[derive(Debug, Default)]
struct Account {
    requests: AtomicUsize,
    bytes: AtomicUsize,
    answer_bytes: AtomicUsize,
    /// The number of connections with work in progress. It is only counted for keys.
    connections: AtomicUsize,
}

impl Account {
    fn exceeds(&self, bounds: &Bounds, more_bytes: usize, times: usize) -> bool {
        self.requests.load(Relaxed) >= bounds.requests * times
            || self.bytes.load(Relaxed) + more_bytes > bounds.bytes * times
            || self.answer_bytes.load(Relaxed) > bounds.answer_bytes * times
    }
}

/// A connection with its work in progress.
#[derive(Debug, Default)]
struct Connection {
    own: Account,
    /// The account of the connection's key; `None` if the socket has no keys.
    key: Option<Arc<Account>>,
    all: Arc<TotalAccount>,
    is_gone: AtomicBool,
    /// Whether the connection is unheard: it has sent so much that it does not even get refusals, until its work is
    /// within the limits again.
    is_unheard: AtomicBool,
    /// The messages that the connection has sent while it is unheard.
    unheard: Account,
}

#[derive(Debug, Default)]
struct TotalAccount {
    account: Account,
    /// The bytes of long requests that were read but not carried out yet.
    read: AtomicUsize,
}

impl Connection {
    fn accounts(&self) -> impl Iterator<Item = (&Account, &'static Bounds)> {
        let key = self.key.as_deref().map(|key| (key, &OF_A_KEY));
        let own = [(&self.own, &OF_A_CONNECTION), (&self.all.account, &OF_ALL)];
        own.into_iter().chain(key)
    }

    fn exceeds(&self, more_bytes: usize, times: usize) -> bool {
        let mut accounts = self.accounts();
        accounts.any(|(account, bounds)| account.exceeds(bounds, more_bytes, times))
    }

    /// Whether the connection would be one too many: it has nothing in progress, and its key has work in progress on as
    /// many other connections as allowed.
    fn exceeds_connection_limit(&self) -> bool {
        let key = self.key.as_deref();
        let busy = key.map_or(0, |key| key.connections.load(Relaxed));
        busy >= MOST_CONNECTIONS_OF_A_KEY && self.own.requests.load(Relaxed) == 0
    }

    fn begin_request(&self, bytes: usize) {
        let is_first = self.own.requests.fetch_add(1, Relaxed) == 0;
        self.all.account.requests.fetch_add(1, Relaxed);
        if let Some(key) = &self.key {
            key.requests.fetch_add(1, Relaxed);
            key.connections.fetch_add(usize::from(is_first), Relaxed);
        }
        self.for_each_account(|account| {
            account.bytes.fetch_add(bytes, Relaxed);
        });
    }

    fn end_request(&self) {
        let was_last = self.own.requests.fetch_sub(1, Relaxed) == 1;
        self.all.account.requests.fetch_sub(1, Relaxed);
        if let Some(key) = &self.key {
            key.requests.fetch_sub(1, Relaxed);
            key.connections.fetch_sub(usize::from(was_last), Relaxed);
        }
    }

    fn for_each_account(&self, count: impl Fn(&Account)) {
        self.accounts().for_each(|(account, _)| count(account));
    }
}

/// Admits requests within the limits.
#[derive(Default)]
pub(crate) struct Permits {
    all: Arc<TotalAccount>,
    keys: WeakMap<Arc<str>, Account>,
    connections: WeakMap<Peer, Connection>,
}

/// The permits, shared by the control socket and HTTP, so that a key cannot exceed its limits by using both.
#[derive(Clone, Default)]
pub(crate) struct SharedPermits(Arc<Mutex<Permits>>);

impl SharedPermits {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Permits> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a message of a connection is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageAdmission {
    Heard,
    Unheard,
    /// The connection has long been unheard (gets no more refusals) and still sends.
    Flood,
}

/// The decision about an arriving request.
#[derive(Debug)]
pub(crate) enum Admission {
    Taken(Permit),
    /// The sender has too much in progress; the text says why. The permit is for the answer that refuses the request.
    Refused(Permit, &'static str),
    /// The sender does not read its refusals, so it gets no more of them.
    Unheard,
}

impl Permits {
    /// Decides whether to admit a request of this size.
    pub(crate) fn admit(&mut self, peer: &Peer, key: Option<&Arc<str>>, bytes: usize) -> Admission {
        let all = Arc::clone(&self.all);
        let key = key.map(|key| self.keys.get_or_insert(key, Account::default));
        // The identity of a closed connection may be used again by a new one.
        self.connections
            .remove_if(peer, |one| one.is_gone.load(Relaxed));
        let connection = self.connections.get_or_insert(peer, || Connection {
            key,
            all,
            ..Connection::default()
        });
        let had_exceeded = connection.is_unheard.load(Relaxed);
        if had_exceeded && connection.exceeds(0, 1) {
            return Admission::Unheard;
        }
        connection.is_unheard.store(false, Relaxed);
        let nothing_else = connection.own.requests.load(Relaxed) == 0;
        let is_always_accepted = nothing_else && bytes <= SMALL_BYTES;
        let is_one_too_many = connection.exceeds_connection_limit();
        if !is_one_too_many && (is_always_accepted || !connection.exceeds(bytes, 1)) {
            return Admission::Taken(Permit::new(connection, bytes));
        }
        match connection.exceeds(0, UNHEARD_BEYOND) {
            true => {
                connection.unheard.requests.store(0, Relaxed);
                connection.unheard.bytes.store(0, Relaxed);
                connection.is_unheard.store(true, Relaxed);
                Admission::Unheard
            }
            false if is_one_too_many => {
                Admission::Refused(Permit::new(connection, 0), TOO_MANY_CONNECTIONS)
            }
            false => Admission::Refused(Permit::new(connection, 0), TOO_MUCH),
        }
    }

    /// Decides whether a message of a connection is handled at all. This is cheap, even for the messages of a flood.
    pub(crate) fn message_admission(&self, peer: &Peer, bytes: usize) -> MessageAdmission {
        let known = self.connections.held.get(peer).and_then(Weak::upgrade);
        let unheard = known.filter(|one| {
            let is_unheard = one.is_unheard.load(Relaxed) && !one.is_gone.load(Relaxed);
            is_unheard && one.exceeds(0, 1)
        });
        let Some(one) = unheard else {
            return MessageAdmission::Heard;
        };
        one.unheard.requests.fetch_add(1, Relaxed);
        one.unheard.bytes.fetch_add(bytes, Relaxed);
        match one.unheard.exceeds(&OF_A_CONNECTION, 0, UNHEARD_BEYOND) {
            true => MessageAdmission::Flood,
            false => MessageAdmission::Unheard,
        }
    }

    /// A handle that shows whether further long requests have to wait.
    pub(crate) fn gauge(&self) -> Gauge {
        Gauge(Arc::clone(&self.all))
    }
}

/// Shows how many bytes of long requests were read but not carried out yet.
#[derive(Clone)]
pub(crate) struct Gauge(Arc<TotalAccount>);

impl Gauge {
    pub(crate) fn read_bytes(&self) -> usize {
        self.0.read.load(Relaxed)
    }
}

/// A request's share of the limits, until it is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    connection: Arc<Connection>,
    bytes: AtomicUsize,
    read: AtomicUsize,
    answer_bytes: AtomicUsize,
}

impl Permit {
    fn new(connection: Arc<Connection>, bytes: usize) -> Permit {
        connection.begin_request(bytes);
        Permit {
            connection,
            bytes: AtomicUsize::new(bytes),
            read: AtomicUsize::new(0),
            answer_bytes: AtomicUsize::new(0),
        }
    }

    fn release_bytes(&self) {
        let bytes = self.bytes.swap(0, Relaxed);
        self.connection.for_each_account(|account| {
            account.bytes.fetch_sub(bytes, Relaxed);
        });
        let read = self.read.swap(0, Relaxed);
        self.connection.all.read.fetch_sub(read, Relaxed);
    }
}

impl RequestPermit for Permit {
    fn note_read(&self, bytes: usize) {
        self.release_bytes();
        self.bytes.store(bytes, Relaxed);
        self.connection.for_each_account(|account| {
            account.bytes.fetch_add(bytes, Relaxed);
        });
        if bytes > SMALL_BYTES {
            self.read.store(bytes, Relaxed);
            self.connection.all.read.fetch_add(bytes, Relaxed);
        }
    }

    fn note_answer(&self, bytes: usize) {
        self.release_bytes();
        let bytes = bytes + BYTES_OF_AN_ANSWER;
        self.answer_bytes.fetch_add(bytes, Relaxed);
        self.connection.for_each_account(|account| {
            account.answer_bytes.fetch_add(bytes, Relaxed);
        });
    }

    fn has_unread(&self) -> bool {
        let mut accounts = self.connection.accounts();
        let exceeds = |(account, bounds): (&Account, &Bounds)| {
            account.answer_bytes.load(Relaxed) > bounds.answer_bytes
        };
        self.connection.own.answer_bytes.load(Relaxed) > 0 && accounts.any(exceeds)
    }

    fn has_no_receiver(&self) -> bool {
        self.connection.is_gone.load(Relaxed)
    }

    fn mark_receiver_gone(&self) {
        self.connection.is_gone.store(true, Relaxed);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.release_bytes();
        let answer_bytes = *self.answer_bytes.get_mut();
        self.connection.for_each_account(|account| {
            account.answer_bytes.fetch_sub(answer_bytes, Relaxed);
        });
        self.connection.end_request();
    }
}

/// The permit of a request, held until its answer has left.
pub(crate) struct AnswerPermit(pub(crate) Arc<dyn RequestPermit>);

impl FrameAttachment for AnswerPermit {
    fn on_receiver_gone(&self) {
        self.0.mark_receiver_gone();
    }
}

/// A map of values that exist only as long as someone else holds them.
struct WeakMap<K, V> {
    held: HashMap<K, Weak<V>>,
    /// When the map has this many entries, unused ones are dropped.
    prune_at: usize,
}

impl<K, V> Default for WeakMap<K, V> {
    fn default() -> WeakMap<K, V> {
        WeakMap {
            held: HashMap::new(),
            prune_at: 64,
        }
    }
}

impl<K: Clone + Eq + std::hash::Hash, V> WeakMap<K, V> {
    fn remove_if(&mut self, key: &K, is_over: impl FnOnce(&V) -> bool) {
        let held = self.held.get(key).and_then(Weak::upgrade);
        if held.is_some_and(|held| is_over(&held)) {
            self.held.remove(key);
        }
    }

    fn get_or_insert(&mut self, key: &K, make: impl FnOnce() -> V) -> Arc<V> {
        if let Some(held) = self.held.get(key).and_then(Weak::upgrade) {
            return held;
        }
        if self.held.len() >= self.prune_at {
            self.held.retain(|_, held| held.strong_count() > 0);
            self.prune_at = (2 * self.held.len()).max(64);
        }
        let made = Arc::new(make());
        self.held.insert(key.clone(), Arc::downgrade(&made));
        made
    }
}

#[cfg(test)]
mod tests;
