//! The door: decides which keys are let in, at the handshake and again at every message.
//!
//! libzmq asks a ZAP handler (RFC 27) during each CURVE handshake. Ours is served by the thread
//! that owns the sockets themselves, so that it cannot die alone and leave them open. Who has been
//! let in is known by the public key that libzmq attaches to each of its messages; neither a
//! routing id nor anything else that a peer says of itself counts. The list is looked at before
//! each batch of messages: a key taken out is cut off by its next message, and gets none.

use std::sync::Arc;
use std::time::Instant;

use super::refusals::Refusals;
use crate::keys::{AllowList, PublicKey, Role};

/// Where libzmq looks for a ZAP handler.
const ZAP_ENDPOINT: &str = "inproc://zeromq.zap.01";

const ZAP_VERSION: &[u8] = b"1.0";

/// Let in.
const WELCOME: &str = "200";

/// Not now: libzmq says nothing more to the peer, whose handshake times out, and who knocks again.
/// After a 400 it would never try again, and a supervisor whose key is added later would have to be
/// restarted.
const NOT_NOW: &str = "300";

pub(super) struct Door {
    zap: zmq::Socket,
    allowed: AllowList,
}

/// What libzmq asks the door.
struct Knock<'a> {
    request: &'a [u8],
    /// The name of the role that the socket is for.
    domain: &'a [u8],
    address: &'a [u8],
    mechanism: &'a [u8],
    key: Option<PublicKey>,
}

impl Door {
    /// Opens the ZAP handler. It must be there before a socket that depends on it is bound.
    pub(super) fn open(context: &zmq::Context, allowed: AllowList) -> zmq::Result<Door> {
        let zap = context.socket(zmq::ROUTER)?;
        zap.set_linger(0)?;
        zap.bind(ZAP_ENDPOINT)?;
        Ok(Door { zap, allowed })
    }

    pub(super) fn poll_item(&self) -> zmq::PollItem<'_> {
        self.zap.as_poll_item(zmq::POLLIN)
    }

    /// Takes the list anew if its file has changed; returns whether another one is in force.
    pub(super) fn refresh(&mut self) -> bool {
        match self.allowed.refresh() {
            Ok(false) => return false,
            Ok(true) => tracing::info!(
                event = "keys_changed",
                keys = self.allowed.len(),
                "the list of keys has changed and is in force"
            ),
            Err(error) => {
                tracing::error!(
                    event = "keys_not_taken",
                    %error,
                    "the list of keys cannot be taken, the former one stays in force"
                );
                return false;
            }
        }
        true
    }

    /// Answers everyone who knocks.
    pub(super) fn answer(&self, refusals: &mut Refusals) {
        while let Ok(frames) = self.zap.recv_multipart(zmq::DONTWAIT) {
            // Who asks, an empty delimiter, the question.
            let (Some(asker), Some(question)) = (frames.first(), frames.get(2..)) else {
                continue;
            };
            let Some(knock) = Knock::read(question) else {
                tracing::error!(event = "zap_unreadable", "libzmq asks what cannot be read");
                continue;
            };
            let key = self.judge(&knock, refusals);
            let status = if key.is_some() { WELCOME } else { NOT_NOW };
            let user = key.map(|key| key.to_string()).unwrap_or_default();
            let answer = [
                asker.as_slice(),
                b"",
                ZAP_VERSION,
                knock.request,
                status.as_bytes(),
                b"",
                user.as_bytes(),
                b"",
            ];
            if let Err(error) = self.zap.send_multipart(answer, zmq::DONTWAIT) {
                // The connection is gone meanwhile; a peer that wants in knocks again.
                tracing::debug!(event = "zap_unanswered", %error, "a handshake ended early");
            }
        }
    }

    fn judge(&self, knock: &Knock<'_>, refusals: &mut Refusals) -> Option<PublicKey> {
        let key = knock.key.filter(|_| knock.mechanism == b"CURVE");
        let entry = key.and_then(|key| self.allowed.entry(&key));
        let wanted = String::from_utf8_lossy(knock.domain);
        if let Some(entry) = entry
            && entry.role.as_str() == wanted
        {
            return Some(entry.key);
        }
        let key = key.map(|key| key.to_string()).unwrap_or_default();
        if refusals.is_news(&format!("knock {wanted} {key}"), Instant::now()) {
            let address = String::from_utf8_lossy(knock.address);
            match entry {
                Some(entry) => tracing::warn!(
                    event = "peer_refused", %address, key, name = &*entry.name,
                    role = %entry.role, wanted = %wanted,
                    "a peer was refused: its key has another role"
                ),
                None => tracing::warn!(
                    event = "peer_refused", %address, key, wanted = %wanted,
                    "a peer was refused: its key is not on the list"
                ),
            }
        }
        None
    }

    /// The name under which the sender of a message is listed, if it still is, and may use a
    /// socket for this role.
    pub(super) fn admit(
        &self,
        role: Role,
        message: &mut zmq::Message,
        refusals: &mut Refusals,
    ) -> Option<(PublicKey, Arc<str>)> {
        let user = message.gets("User-Id").unwrap_or_default();
        let key = user.parse::<PublicKey>().ok();
        let entry = key.and_then(|key| self.entry(role, &key));
        if let (Some(key), Some(name)) = (key, entry) {
            return Some((key, Arc::clone(name)));
        }
        let key = key.map(|key| key.to_string()).unwrap_or_default();
        if refusals.is_news(&format!("message {role} {key}"), Instant::now()) {
            let address = message.gets("Peer-Address").unwrap_or_default();
            tracing::warn!(
                event = "message_refused", address, key, wanted = %role,
                "a message was refused: its sender's key was taken off the list"
            );
        }
        None
    }

    /// Whether a key may still use a socket for this role.
    pub(super) fn entry(&self, role: Role, key: &PublicKey) -> Option<&Arc<str>> {
        let entry = self.allowed.entry(key)?;
        (entry.role == role).then_some(&entry.name)
    }
}

impl<'a> Knock<'a> {
    fn read(question: &'a [Vec<u8>]) -> Option<Knock<'a>> {
        let [
            version,
            request,
            domain,
            address,
            _,
            mechanism,
            credentials @ ..,
        ] = question
        else {
            return None;
        };
        (version == ZAP_VERSION).then_some(Knock {
            request,
            domain,
            address,
            mechanism,
            key: credentials
                .first()
                .and_then(|key| PublicKey::from_bytes(key)),
        })
    }
}
