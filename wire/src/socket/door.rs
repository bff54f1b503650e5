//! The door: the ZAP authentication handler (ZeroMQ RFC 27), which admits keys of the allow-list.
//!
//! libzmq asks it during each CURVE handshake. It runs on the thread that owns the sockets, so it
//! cannot die alone and leave them unguarded. Each message is checked again, by the public key that
//! libzmq attaches to it; routing ids and other claims of a peer do not count. The allow-list is
//! reloaded when its file changes, so a removed key is refused from its next message on and is sent
//! nothing any more.

use std::sync::Arc;

use crate::keys::{AllowList, PublicKey, Role};
use crate::refusal_log::RefusalLog;

/// The endpoint at which libzmq expects the ZAP handler.
const ZAP_ENDPOINT: &str = "inproc://zeromq.zap.01";

const ZAP_VERSION: &[u8] = b"1.0";

/// The ZAP status "success".
const ADMITTED: &str = "200";

/// The ZAP status "temporary error": libzmq stays silent, the peer's handshake times out, and the peer
/// tries again. After a 400 it would never try again, and a supervisor whose key is added later would
/// have to be restarted.
const NOT_NOW: &str = "300";

pub(super) struct Door {
    zap: zmq::Socket,
    allowed: AllowList,
}

/// libzmq's ZAP request for one handshake.
struct HandshakeRequest<'a> {
    request: &'a [u8],
    /// The name of the role that the socket is for.
    domain: &'a [u8],
    address: &'a [u8],
    mechanism: &'a [u8],
    key: Option<PublicKey>,
}

impl Door {
    /// Opens the ZAP handler. Must be called before a socket that depends on it is bound.
    pub(super) fn open(context: &zmq::Context, allowed: AllowList) -> zmq::Result<Door> {
        let zap = context.socket(zmq::ROUTER)?;
        zap.set_linger(0)?;
        zap.bind(ZAP_ENDPOINT)?;
        Ok(Door { zap, allowed })
    }

    pub(super) fn poll_item(&self) -> zmq::PollItem<'_> {
        self.zap.as_poll_item(zmq::POLLIN)
    }

    /// Reloads the allow-list if its file has changed; returns whether a new list is in force.
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

    /// Answers the waiting handshake requests.
    pub(super) fn answer(&self, refusal_log: &mut RefusalLog) {
        while let Ok(frames) = self.zap.recv_multipart(zmq::DONTWAIT) {
            // The frames: the routing id of the asker, an empty delimiter, the request.
            let (Some(asker), Some(question)) = (frames.first(), frames.get(2..)) else {
                continue;
            };
            let Some(request) = HandshakeRequest::read(question) else {
                tracing::error!(event = "zap_unreadable", "libzmq asks what cannot be read");
                continue;
            };
            let key = self.admitted_key(&request, refusal_log);
            let status = if key.is_some() { ADMITTED } else { NOT_NOW };
            let user = key.map(|key| key.to_string()).unwrap_or_default();
            let answer = [
                asker.as_slice(),
                b"",
                ZAP_VERSION,
                request.request,
                status.as_bytes(),
                b"",
                user.as_bytes(),
                b"",
            ];
            if let Err(error) = self.zap.send_multipart(answer, zmq::DONTWAIT) {
                // The connection has ended meanwhile; the peer tries again.
                tracing::debug!(event = "zap_unanswered", %error, "a handshake ended early");
            }
        }
    }

    fn admitted_key(
        &self,
        request: &HandshakeRequest<'_>,
        refusal_log: &mut RefusalLog,
    ) -> Option<PublicKey> {
        let key = request.key.filter(|_| request.mechanism == b"CURVE");
        let entry = key.and_then(|key| self.allowed.entry(&key));
        let wanted = String::from_utf8_lossy(request.domain);
        if let Some(entry) = entry
            && entry.role.as_str() == wanted
        {
            return Some(entry.key);
        }
        let key = key.map(|key| key.to_string()).unwrap_or_default();
        let address = String::from_utf8_lossy(request.address);
        if refusal_log.record_if_new(&format!("handshake {wanted} {key} {address}")) {
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

    /// The key and the listed name of a message's sender, if the key is still on the list with this
    /// role. Otherwise the refusal is logged.
    pub(super) fn sender_of(
        &self,
        role: Role,
        message: &mut zmq::Message,
        refusal_log: &mut RefusalLog,
    ) -> Option<(PublicKey, Arc<str>)> {
        let user = message.gets("User-Id").unwrap_or_default();
        let key = user.parse::<PublicKey>().ok();
        let entry = key.and_then(|key| self.listed_name(role, &key));
        if let (Some(key), Some(name)) = (key, entry) {
            return Some((key, Arc::clone(name)));
        }
        let key = key.map(|key| key.to_string()).unwrap_or_default();
        let address = message.gets("Peer-Address").unwrap_or_default();
        if refusal_log.record_if_new(&format!("message {role} {key} {address}")) {
            tracing::warn!(
                event = "message_refused", address, key, wanted = %role,
                "a message was refused: its sender's key was taken off the list"
            );
        }
        None
    }

    /// The listed name of a key, if it is on the list with this role.
    pub(super) fn listed_name(&self, role: Role, key: &PublicKey) -> Option<&Arc<str>> {
        let entry = self.allowed.entry(key)?;
        (entry.role == role).then_some(&entry.name)
    }
}

impl<'a> HandshakeRequest<'a> {
    fn read(question: &'a [Vec<u8>]) -> Option<HandshakeRequest<'a>> {
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
        (version == ZAP_VERSION).then_some(HandshakeRequest {
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
