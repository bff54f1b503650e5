//! Routes the messages that arrive by the sockets, on the thread that owns the sockets: requests go to their reader,
//! subscriptions to the firehose, and everything else to the loop.

use webfill_followers::Subscriptions;
use webfill_scheduler::effects::Client;
use webfill_scheduler::requester::Requester;
use webfill_scheduler::rights;
use webfill_wire::keys::Entry;
use webfill_wire::socket::{ArrivedFrame, FrameHandler, Peer, SocketName, TakenPart};

use super::sockets::{CONTROL, FEEDERS, FIREHOSE};
use crate::permits::MessageAdmission;
use crate::request_reader::RequestReader;

pub(super) struct ArrivalHandler {
    pub(super) request_reader: RequestReader,
    pub(super) subscriptions: Subscriptions,
    pub(super) others: Box<dyn FnMut(ArrivedFrame) + Send>,
}

impl FrameHandler for ArrivalHandler {
    fn how_much_to_take(
        &mut self,
        socket: SocketName,
        peer: &Peer,
        sender: Option<&Entry>,
        frame: &[u8],
    ) -> TakenPart {
        if socket != CONTROL {
            return TakenPart::Whole;
        }
        match self.request_reader.judge_message(peer, frame.len()) {
            MessageAdmission::Heard => {}
            MessageAdmission::Unheard => return TakenPart::Nothing,
            MessageAdmission::Flood => return TakenPart::Flood,
        }
        let rights = sender.map(|sender| &sender.rights);
        match rights.is_some_and(|rights| rights::is_refused_unread(frame, rights)) {
            true => TakenPart::Arrival,
            false => TakenPart::Whole,
        }
    }

    fn handle_frame(&mut self, mut arrived: ArrivedFrame) {
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
        let requester = Requester::from_socket(client, sender, arrived.address);
        match arrived.is_left_out {
            true => self.request_reader.enqueue_unread(requester),
            false => self.request_reader.enqueue(requester, arrived.frame),
        }
    }
}
