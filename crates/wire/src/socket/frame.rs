//! Frames, and the sender and receiver of a frame.

use std::sync::Arc;

use super::spec::SocketName;
use crate::keys::Entry;

/// Identifies one connection to a router socket, so that answers can be sent to it. All messages of a connection have
/// the same value.
pub type Peer = Vec<u8>;

/// What subscribers want, as read from a frame that arrives on a publishing socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subscription<'a> {
    /// At least one subscriber wants topics that begin with these bytes.
    Wanted(&'a [u8]),
    /// No subscriber wants topics that begin with these bytes any more.
    Unwanted(&'a [u8]),
    /// All subscribers were disconnected. Those whose keys are still admitted reconnect.
    AllGone,
}

impl<'a> Subscription<'a> {
    /// Parses a frame as a subscription; `None` if it is something else.
    pub fn parse(frame: &'a [u8]) -> Option<Subscription<'a>> {
        match frame.split_first() {
            None => Some(Subscription::AllGone),
            Some((1, topic)) => Some(Subscription::Wanted(topic)),
            Some((0, topic)) => Some(Subscription::Unwanted(topic)),
            Some(_) => None,
        }
    }
}

/// A value kept with an outgoing frame. It is dropped when libzmq has taken the frame, or when the frame can no longer
/// be delivered.
pub trait FrameAttachment: Send {
    /// Called if the frame's receiver is gone.
    fn on_receiver_gone(&self);
}

/// Receives the arriving frames, on the thread that owns the sockets. It must not block.
pub trait FrameHandler: Send + 'static {
    /// Decides how much of a frame from a router's peer is taken. The rest is dropped before it is copied. So reading
    /// a flood costs less than sending it, which matters because libzmq queues unread frames without a limit.
    fn how_much_to_take(
        &mut self,
        _socket: SocketName,
        _peer: &Peer,
        _sender: Option<&Entry>,
        _frame: &[u8],
    ) -> TakenPart {
        TakenPart::Whole
    }

    fn handle_frame(&mut self, arrived: ArrivedFrame);
}

/// How much of an arrived frame is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakenPart {
    Whole,
    /// The frame counts as arrived, but its content is left out.
    Arrival,
    Nothing,
    /// The frame belongs to a flood and is dropped. On a socket with keys, the connection is closed, and its peer is
    /// refused for a while. Without keys, all peers are processes of this machine, and only their frames are dropped.
    Flood,
}

/// A frame that has arrived.
#[derive(Debug)]
pub struct ArrivedFrame {
    pub socket: SocketName,
    /// The sender on a router socket. An answer can be sent to it.
    pub peer: Option<Peer>,
    /// The allow-list entry of the sender's key. It is set only on server sockets that check keys and receive messages.
    pub sender: Option<Arc<Entry>>,
    /// The sender's address, on a router socket; `None` for a peer at a Unix socket.
    pub address: Option<String>,
    /// The topic of the message, on a subscribing socket.
    pub topic: Option<Vec<u8>>,
    pub frame: Vec<u8>,
    /// Whether the frame's content was left out ([`TakenPart::Arrival`]).
    pub is_left_out: bool,
}

/// How many frames a socket has received and sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    pub received: u64,
    pub sent: u64,
}
