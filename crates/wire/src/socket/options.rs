//! Sets the libzmq options of sockets. Important options are set even if they have their default values.

use super::{Guard, Pattern, Place, SocketSpec, curve};

/// The largest frame in bytes; libzmq closes a connection that announces a larger one. The limit is far above the
/// largest message (a set of mappings) and far below the memory of a machine. Without it, one hostile length field
/// could allocate any amount of memory.
const MAX_FRAME_BYTES: i64 = 64 << 20;

/// The largest message in bytes on a socket for clients: it holds a list of 100,000 requests of 160 bytes each. The
/// owner of a key may have one message in flight on each of its connections.
const MAX_CLIENT_FRAME_BYTES: i64 = 16 << 20;

/// How many answers libzmq keeps for a client that does not read them. Further answers wait in this process, where they
/// are counted ([`super::FrameAttachment`]).
///
/// The number of frames that libzmq reads ahead is not limited, because this side reads immediately. A limit could even
/// end the process: libzmq 4.3.4 fails an assertion (`!_io_error`) if a peer leaves while its input is held up and the
/// next heartbeat is due.
const CLIENT_UNREAD: i32 = 32;

/// The time limit of a handshake, which takes a few round trips. A refused peer gets no answer, so it also tries again
/// at this interval.
const HANDSHAKE_MS: i32 = 5_000;

/// The interval of pings, and how long either side waits for a sign of life. A connection may break without notice (a
/// cable, a firewall, a stopped process). Pings every two seconds detect that within ten seconds on both sides.
const HEARTBEAT_MS: i32 = 2_000;
const SILENCE_MS: i32 = 10_000;

/// The high-water mark for each subscriber: how many messages are kept for it, besides those in the kernel's buffers.
/// A slower subscriber loses the messages above the mark, and delays neither the publisher nor other subscribers.
pub const PUBLISHED_AHEAD: i32 = 1_000;

/// The largest message from a subscriber. Subscribers send only handshakes and topics.
const MAX_SUBSCRIPTION_BYTES: i64 = 4 << 10;

/// The shortest and the longest pause before a reconnect, in milliseconds. They are short enough that a restart of the
/// dispatcher is hardly noticed, and long enough that a fleet does not overload a machine that is starting.
const RECONNECT_MS: i32 = 50;
const RECONNECT_MAX_MS: i32 = 2_000;

pub(super) fn configure(socket: &mut zmq::Socket, spec: &SocketSpec) -> zmq::Result<()> {
    // There is no high-water mark, because credit-based flow control limits the messages in flight. Clients have no
    // credit, so their sockets get a mark below.
    socket.set_sndhwm(0)?;
    socket.set_rcvhwm(0)?;
    if matches!(spec.pattern, Pattern::Publish | Pattern::Subscribe) {
        socket.set_sndhwm(PUBLISHED_AHEAD)?;
        socket.set_rcvhwm(PUBLISHED_AHEAD)?;
    }
    if spec.is_for_clients {
        socket.set_sndhwm(CLIENT_UNREAD)?;
    }
    // Closing a socket does not wait for unsent frames. Only `close_all`, at the end of the process, waits.
    socket.set_linger(0)?;
    socket.set_maxmsgsize(match spec.pattern {
        Pattern::Publish => MAX_SUBSCRIPTION_BYTES,
        _ if spec.is_for_clients => MAX_CLIENT_FRAME_BYTES,
        _ => MAX_FRAME_BYTES,
    })?;
    set_routing_options(socket, spec)?;
    if spec.place.endpoint().starts_with("tcp://") {
        set_network_options(socket, spec)?;
    }
    match &spec.guard {
        Guard::None => Ok(()),
        Guard::Serve(keys, role) => curve::set_server_keys(socket, keys, *role, spec.pattern),
        Guard::Call(keys) => curve::set_client_keys(socket, keys),
    }
}

fn set_routing_options(socket: &zmq::Socket, spec: &SocketSpec) -> zmq::Result<()> {
    if spec.pattern == Pattern::Router {
        // With this option, libzmq returns an error for frames whose receiver is gone, instead of dropping them
        // silently.
        socket.set_router_mandatory(true)?;
        // Without handover, a peer cannot take over another peer's connection by claiming its routing id. Our own peers
        // claim none: libzmq numbers the connections. So a new connection is a new peer, which sends a hello with the
        // leases that it still holds.
        socket.set_router_handover(false)?;
    }
    if spec.pattern == Pattern::Subscribe {
        for topic in &spec.topics {
            socket.set_subscribe(topic.as_bytes())?;
        }
    } else if matches!(spec.place, Place::Connect(_)) || spec.pattern == Pattern::Push {
        // Frames must wait in the queue of `OpenSocket` until there is a connection, not in libzmq's queue for a
        // connection that may never be established.
        socket.set_immediate(true)?;
    }
    Ok(())
}

fn set_network_options(socket: &zmq::Socket, spec: &SocketSpec) -> zmq::Result<()> {
    socket.set_handshake_ivl(HANDSHAKE_MS)?;
    socket.set_heartbeat_ivl(HEARTBEAT_MS)?;
    socket.set_heartbeat_timeout(SILENCE_MS)?;
    socket.set_heartbeat_ttl(SILENCE_MS)?;
    socket.set_reconnect_ivl(RECONNECT_MS)?;
    socket.set_reconnect_ivl_max(RECONNECT_MAX_MS)?;
    // IPv6 is off by default in libzmq. An IPv6 socket bound to `*` serves IPv4 as well.
    socket.set_ipv6(spec.place.endpoint().contains('['))
}
