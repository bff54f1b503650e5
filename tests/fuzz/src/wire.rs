//! Fuzzes frames from other processes. The first byte selects the type of message. The rest is a frame without its
//! version.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use webfill_wire::codec::{WIRE_VERSION, decode, encode};
use webfill_wire::handshake;
use webfill_wire::{
    DispatcherToSupervisor, SupervisorOutcomes, SupervisorToDispatcher, SupervisorToWorker,
    WorkerToSupervisor,
};

pub(crate) fn run(input: &[u8]) {
    let (message, body) = crate::split_choice(input);
    // A handshake and the refusal of a handshake are frames without a version.
    let _ = handshake::decode_supervisor_frame(&[&[0], body].concat());
    let _ = handshake::decode_refusal(&[&[0], body].concat());
    let frame = [&[WIRE_VERSION], body].concat();
    match message % 5 {
        0 => assert_round_trip::<SupervisorToDispatcher>(&frame),
        1 => assert_round_trip::<DispatcherToSupervisor>(&frame),
        2 => assert_round_trip::<SupervisorOutcomes>(&frame),
        3 => assert_round_trip::<SupervisorToWorker>(&frame),
        _ => assert_round_trip::<WorkerToSupervisor>(&frame),
    }
}

/// Checks that a message stays the same when it is read, written and read again.
fn assert_round_trip<M: Serialize + DeserializeOwned + PartialEq + Debug>(frame: &[u8]) {
    let Ok(message) = decode::<M>(frame) else {
        return;
    };
    let again = decode::<M>(&encode(&message)).expect("what we encode can be read");
    assert_eq!(again, message);
}
