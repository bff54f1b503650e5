//! Routes the messages that arrive by the sockets, on the thread that owns the sockets: requests go to their reader,
//! subscriptions to the firehose, and everything else to the loop.

use webfill_followers::Subscriptions;
use webfill_scheduler::effects::Client;
use webfill_scheduler::requester::Requester;
use webfill_scheduler::rights;
use webfill_wire::keys::Entry;
use webfill_wire::socket::{Arrivals, Arrived, Heard, Peer, SocketName};

use super::sockets::{CONTROL, FEEDERS, FIREHOSE};
use crate::permits::Hearing;
use crate::request_reader::RequestReader;

pub(super) struct Arriving {
    pub(super) request_reader: RequestReader,
    pub(super) subscriptions: Subscriptions,
    pub(super) others: Box<dyn FnMut(Arrived) + Send>,
}

impl Arrivals for Arriving {
    fn how_much_to_take(
        &mut self,
        socket: SocketName,
        peer: &Peer,
        sender: Option<&Entry>,
        frame: &[u8],
    ) -> Heard {
        if socket != CONTROL {
            return Heard::Whole;
        }
        match self.request_reader.judge_message(peer, frame.len()) {
            Hearing::Heard => {}
            Hearing::Unheard => return Heard::Nothing,
            Hearing::Flood => return Heard::Flood,
        }
        let rights = sender.map(|sender| &sender.rights);
        match rights.is_some_and(|rights| rights::refuse_unread(frame, rights)) {
            true => Heard::Arrival,
            false => Heard::Whole,
        }
    }

    fn arrive(&mut self, mut arrived: Arrived) {
        let client = match (arrived.socket, arrived.peer.take()) {
            (FIREHOSE, _) => return self.subscriptions.apply_frame(&arrived.frame),
            (CONTROL, Some(peer)) => Client::Socket(peer.into()),
            (FEEDERS, Some(peer)) => Client::Feeder(peer),
            (_, peer) => {
                arrived.peer = peer;
                return (self.others)(arrived);
            }
        };
        let sender = arrived.sender.as_deref();
        let requester = Requester::on_socket(client, sender, arrived.address);
        match arrived.is_left_out {
            true => self.request_reader.enqueue_unread(requester),
            false => self.request_reader.enqueue(requester, arrived.frame),
        }
    }
}
