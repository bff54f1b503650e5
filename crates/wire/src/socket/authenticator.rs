//! The authenticator: the ZAP handler (ZeroMQ's authentication protocol, RFC 27), which admits the keys of the
//! allow-list.
//!
//! libzmq calls it during each CURVE handshake. It runs on the thread that owns the sockets, so it cannot die alone and
//! leave them unguarded. Each message is checked again, by the public key that libzmq attaches to it. Routing ids and
//! other claims of a peer do not count. The allow-list is reloaded when its file changes. So a removed key is refused
//! from its next message on, and nothing more is sent to it.

use std::sync::Arc;
use std::time::Instant;

use super::Pattern;
use super::floods::{ADMITTED_AT, Floods, encode_property};
use super::handshakes::event_count;
use crate::keys::{AllowList, Entry, ListChange, PublicKey, Role};
use crate::refusal_log::RefusalLog;

/// The endpoint where libzmq expects the ZAP handler.
const ZAP_ENDPOINT: &str = "inproc://zeromq.zap.01";

const ZAP_VERSION: &[u8] = b"1.0";

/// The ZAP status "success".
const ADMITTED: &str = "200";

/// The ZAP status "temporary error". libzmq stays silent, the peer's handshake times out, and the peer tries again.
/// After a status 400 it would never try again, so a supervisor whose key is added later would have to be restarted.
const NOT_NOW: &str = "300";

pub(super) struct Authenticator {
    zap: zmq::Socket,
    allowed: AllowList,
    floods: Floods,
}

/// What a socket requires of a peer's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    Role(Role),
    /// The key must have the role, and must not be limited to some applications.
    Unbound(Role),
}

impl Admission {
    /// What a socket of this pattern requires of a peer's key.
    pub(super) fn for_socket(role: Role, pattern: Pattern) -> Admission {
        match pattern {
            Pattern::Publish => Admission::Unbound(role),
            _ => Admission::Role(role),
        }
    }

    /// The ZAP domain, which libzmq repeats at each handshake.
    pub(super) fn domain(self) -> &'static str {
        match self {
            Admission::Role(role) => role.as_str(),
            Admission::Unbound(Role::Client) => "client, unbound",
            Admission::Unbound(Role::Supervisor) => "supervisor, unbound",
        }
    }

    /// The requirements named by a ZAP domain; `None` if no socket of webfill has this domain, so that nobody is
    /// admitted.
    fn from_domain(domain: &[u8]) -> Option<Admission> {
        let of_role = |role| [Admission::Role(role), Admission::Unbound(role)];
        let mut all = Role::ALL.into_iter().flat_map(of_role);
        all.find(|admission| admission.domain().as_bytes() == domain)
    }

    /// Why a listed key is not admitted; `None` if it is.
    fn refusal_reason(self, entry: &Entry) -> Option<&'static str> {
        let (Admission::Role(role) | Admission::Unbound(role)) = self;
        if entry.role != role {
            return Some("its key has another role");
        }
        let is_excluded =
            matches!(self, Admission::Unbound(_)) && entry.rights.is_limited_to_apps();
        is_excluded.then_some("its key is bound to applications, and subscribers hear of all")
    }
}

/// One handshake that libzmq asks the ZAP handler to judge.
struct HandshakeRequest<'a> {
    request: &'a [u8],
    /// The ZAP domain of the socket; see [`Admission::domain`].
    domain: &'a [u8],
    address: &'a [u8],
    mechanism: &'a [u8],
    key: Option<PublicKey>,
}

impl Authenticator {
    /// Opens the ZAP handler. Must be called before a socket that depends on it is bound.
    pub(super) fn open(context: &zmq::Context, allowed: AllowList) -> zmq::Result<Authenticator> {
        let zap = context.socket(zmq::ROUTER)?;
        zap.set_linger(0)?;
        zap.bind(ZAP_ENDPOINT)?;
        Ok(Authenticator {
            zap,
            allowed,
            floods: Floods::default(),
        })
    }

    pub(super) fn poll_item(&self) -> zmq::PollItem<'_> {
        self.zap.as_poll_item(zmq::POLLIN)
    }

    /// Reloads the allow-list if its file has changed. Returns the changes of its entries, if there are any.
    pub(super) fn refresh(&mut self) -> Option<ListChange> {
        match self.allowed.refresh() {
            Ok(change) => {
                if change.is_some() {
                    tracing::info!(
                        event = "keys_changed",
                        keys = self.allowed.len(),
                        "the list of keys has changed and is in force"
                    );
                }
                change
            }
            Err(error) => {
                tracing::error!(
                    event = "keys_not_taken",
                    %error,
                    "the list of keys cannot be used; the former one stays in force"
                );
                None
            }
        }
    }

    /// Answers the waiting handshake requests. First, `read_events` reads the events of connections. So the number
    /// attached to the messages of a connection ([`ADMITTED_AT`]) includes the event that the connection began with.
    pub(super) fn answer_handshakes(
        &self,
        refusal_log: &mut RefusalLog,
        mut read_events: impl FnMut(&mut RefusalLog),
    ) {
        while let Ok(frames) = self.zap.recv_multipart(zmq::DONTWAIT) {
            read_events(refusal_log);
            // The frames are the routing id of the requester, an empty delimiter and the request.
            let (Some(asker), Some(question)) = (frames.first(), frames.get(2..)) else {
                continue;
            };
            let Some(request) = HandshakeRequest::parse(question) else {
                tracing::error!(event = "zap_unreadable", "libzmq asks what cannot be read");
                continue;
            };
            let key = self.admit_key(&request, refusal_log);
            let status = if key.is_some() { ADMITTED } else { NOT_NOW };
            let user = key.map(|key| key.to_string()).unwrap_or_default();
            let properties = encode_property(ADMITTED_AT, &event_count().to_string());
            let answer = [
                asker.as_slice(),
                b"",
                ZAP_VERSION,
                request.request,
                status.as_bytes(),
                b"",
                user.as_bytes(),
                &properties,
            ];
            if let Err(error) = self.zap.send_multipart(answer, zmq::DONTWAIT) {
                // The connection ended before it was answered. The peer tries again.
                tracing::debug!(event = "zap_unanswered", %error, "a handshake ended early");
            }
        }
    }

    fn admit_key(
        &self,
        request: &HandshakeRequest<'_>,
        refusal_log: &mut RefusalLog,
    ) -> Option<PublicKey> {
        let key = request.key.filter(|_| request.mechanism == b"CURVE");
        let entry = key.and_then(|key| self.allowed.entry(&key));
        let admission = Admission::from_domain(request.domain);
        let address = String::from_utf8_lossy(request.address);
        let why = match (entry, admission) {
            (Some(entry), Some(admission)) => match admission.refusal_reason(entry) {
                None if self.floods.refuses(&entry.key, &address, Instant::now()) => {
                    log_still_refused(entry, &address, refusal_log);
                    return None;
                }
                None => return Some(entry.key),
                Some(why) => why,
            },
            _ => "its key is not on the list",
        };
        let wanted = String::from_utf8_lossy(request.domain);
        let key = key.map(|key| key.to_string()).unwrap_or_default();
        if refusal_log.record_if_new(&format!("handshake {wanted} {key} {address}")) {
            let name = entry.map(|entry| &*entry.name);
            let role = entry.map(|entry| entry.role.as_str());
            tracing::warn!(
                event = "peer_refused", %address, key, name, role, wanted = %wanted,
                "a peer was refused: {why}"
            );
        }
        None
    }

    /// Returns the entry of a message's sender, if its key is still on the list with this role. Otherwise the refusal
    /// is logged.
    pub(super) fn check_sender(
        &self,
        role: Role,
        message: &mut zmq::Message,
        refusal_log: &mut RefusalLog,
    ) -> Option<Arc<Entry>> {
        let user = message.gets("User-Id").unwrap_or_default();
        let entry = self.allowed.entry_by_key_text(user);
        if let Some(entry) = entry.filter(|entry| entry.role == role) {
            return Some(Arc::clone(entry));
        }
        let key = user.parse::<PublicKey>().ok();
        let key = key.map(|key| key.to_string()).unwrap_or_default();
        let address = message.gets("Peer-Address").unwrap_or_default();
        if refusal_log.record_if_new(&format!("message {role} {key} {address}")) {
            tracing::warn!(
                event = "message_refused", address, key, wanted = %role,
                "a message was refused because its sender's key was removed from the list"
            );
        }
        None
    }

    /// Records that a client has flooded a socket. Its handshakes are refused for a while.
    pub(super) fn note_flood(
        &mut self,
        sender: &Entry,
        address: &str,
        refusal_log: &mut RefusalLog,
    ) {
        let refused = self.floods.note_flood(sender.key, address, Instant::now());
        let name = &*sender.name;
        if refusal_log.record_if_new(&format!("flood {name} {address}")) {
            tracing::warn!(
                event = "client_disconnected",
                name,
                address,
                refused_s = refused.as_secs(),
                "a client sends far more than it may and reads no refusals: its connection is closed, and it is refused for a while"
            );
        }
    }

    /// The entry of a key, if it is on the list with this role.
    pub(super) fn entry_with_role(&self, role: Role, key: &PublicKey) -> Option<&Arc<Entry>> {
        self.allowed.entry(key).filter(|entry| entry.role == role)
    }
}

/// Logs that a client is still refused after a flood. The event is `handshake_failed` and not `peer_refused`, because
/// operators may ban addresses for the latter. This client's key is known, and is admitted again later.
fn log_still_refused(entry: &Entry, address: &str, refusal_log: &mut RefusalLog) {
    let name = &*entry.name;
    if refusal_log.record_if_new(&format!("flooded {name} {address}")) {
        let why = "it has flooded a socket, and is let in again later";
        tracing::info!(
            event = "handshake_failed",
            name,
            address,
            why,
            "a handshake failed"
        );
    }
}

impl<'a> HandshakeRequest<'a> {
    fn parse(question: &'a [Vec<u8>]) -> Option<HandshakeRequest<'a>> {
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
