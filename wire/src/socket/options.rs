//! The options of every socket, set deliberately: libzmq's defaults suit nobody here.

use super::{Guard, Pattern, Place, SocketSpec, curve};

/// Frames larger than this are refused by libzmq itself, which cuts the connection: far above any
/// message of ours (the largest are sets of mappings), and far below what a machine has. Without it
/// one hostile length field could ask for any amount of memory.
const MAX_FRAME_BYTES: i64 = 64 << 20;

/// A handshake takes a few round trips; who needs longer holds a connection for nothing. A peer that
/// is refused hears no answer at all, so this is also how often it knocks again.
const HANDSHAKE_MS: i32 = 5_000;

/// On a network a connection may die without a word (a cable, a firewall, a stopped process). A
/// ping every two seconds finds that out within ten, in both directions: TIMEOUT is how long we
/// wait for an answer, TTL what we ask the other side to wait for us.
const HEARTBEAT_MS: i32 = 2_000;
const SILENCE_MS: i32 = 10_000;

/// Messages kept for a subscriber that does not take them, beside what the kernel's buffers hold;
/// further ones are lost to it. So a slow one costs the memory of so many, and nobody any time.
pub const PUBLISHED_AHEAD: i32 = 1_000;

/// What a subscriber sends are handshakes and topics.
const MAX_SUBSCRIPTION_BYTES: i64 = 4 << 10;

/// Who has lost its dispatcher tries again at once, and then ever more rarely: fast enough for a
/// restart to go unnoticed, slow enough for a fleet not to hammer on a machine that starts.
const RECONNECT_MS: i32 = 50;
const RECONNECT_MAX_MS: i32 = 2_000;

pub(super) fn configure(socket: &mut zmq::Socket, spec: &SocketSpec) -> zmq::Result<()> {
    // The protocol bounds what is in flight (credit). With a high-water mark of its own, a router
    // would say EAGAIN for one slow peer, and its frames would stand before everybody else's.
    socket.set_sndhwm(0)?;
    socket.set_rcvhwm(0)?;
    if matches!(spec.pattern, Pattern::Publish | Pattern::Subscribe) {
        socket.set_sndhwm(PUBLISHED_AHEAD)?;
        socket.set_rcvhwm(PUBLISHED_AHEAD)?;
    }
    // Closing does not wait for peers; the end of the process does, see `close_all`.
    socket.set_linger(0)?;
    socket.set_maxmsgsize(match spec.pattern {
        Pattern::Publish => MAX_SUBSCRIPTION_BYTES,
        _ => MAX_FRAME_BYTES,
    })?;
    routing(socket, spec)?;
    if spec.place.endpoint().starts_with("tcp://") {
        network(socket, spec)?;
    }
    match &spec.guard {
        Guard::None => Ok(()),
        Guard::Serve(keys, role) => curve::serve(socket, keys, *role),
        Guard::Call(keys) => curve::call(socket, keys),
    }
}

fn routing(socket: &zmq::Socket, spec: &SocketSpec) -> zmq::Result<()> {
    if spec.pattern == Pattern::Router {
        // To be told of frames whose receiver is gone, instead of losing them in silence.
        socket.set_router_mandatory(true)?;
        // Nobody gets another one's place by claiming its routing id. Our own peers claim none:
        // libzmq numbers connections, so that a new connection is a new peer, says hello, and
        // names what it still holds.
        socket.set_router_handover(false)?;
    }
    if spec.pattern == Pattern::Subscribe {
        for topic in &spec.topics {
            socket.set_subscribe(topic.as_bytes())?;
        }
    } else if matches!(spec.place, Place::Connect(_)) || spec.pattern == Pattern::Push {
        // Frames wait with us, in order, until somebody is there, and not in the pipe of a
        // connection that may never come about or die with what it holds.
        socket.set_immediate(true)?;
    }
    Ok(())
}

fn network(socket: &zmq::Socket, spec: &SocketSpec) -> zmq::Result<()> {
    socket.set_handshake_ivl(HANDSHAKE_MS)?;
    socket.set_heartbeat_ivl(HEARTBEAT_MS)?;
    socket.set_heartbeat_timeout(SILENCE_MS)?;
    socket.set_heartbeat_ttl(SILENCE_MS)?;
    socket.set_reconnect_ivl(RECONNECT_MS)?;
    socket.set_reconnect_ivl_max(RECONNECT_MAX_MS)?;
    // libzmq speaks IPv4 only unless asked. An IPv6 socket bound to `*` serves both.
    socket.set_ipv6(spec.place.endpoint().contains('['))
}
