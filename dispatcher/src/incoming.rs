//! Decodes and applies the frames of supervisors, checks the senders' names against their keys, and reports
//! unreadable frames.

use std::fmt::Write;
use std::sync::Arc;

use webfill_scheduler::Caller;
use webfill_scheduler::Core;
use webfill_scheduler::frontier::FrontierError;
use webfill_wire::greeting::{self, FromSupervisor, Greeting, Versions};
use webfill_wire::keys::{self, Entry};
use webfill_wire::socket::{Arrived, Outbox, Peer};
use webfill_wire::{SupervisorOutcomes, SupervisorToDispatcher, codec};

/// Applies a frame that has arrived on the tasks socket.
pub(crate) fn apply_tasks_frame(
    core: &mut Core,
    outbox: &Outbox,
    arrived: Arrived,
    now_ms: i64,
) -> Result<(), FrontierError> {
    let peer = arrived.peer.unwrap_or_default();
    match greeting::read_from_supervisor(&arrived.frame) {
        Ok(FromSupervisor::Message(_, SupervisorToDispatcher::Hello(hello)))
            if is_impostor(core, &arrived.sender, &hello.supervisor) =>
        {
            Ok(())
        }
        Ok(FromSupervisor::Message(version, message)) => {
            let is_hello = matches!(message, SupervisorToDispatcher::Hello(_));
            let caller = Caller { peer, version };
            core.handle_supervisor_message(&caller, message, now_ms)?;
            if let Some(address) = arrived.address.filter(|_| is_hello) {
                core.note_address_of(&caller, address);
            }
            Ok(())
        }
        Ok(FromSupervisor::Foreign(greeting)) => {
            note_foreign(core, &greeting);
            let refusal = greeting::frame_of_refusal(greeting.hello.session);
            outbox.send_to(arrived.socket, &peer, refusal);
            Ok(())
        }
        Err(error) => {
            note_unreadable(core, &sender_of(&arrived.sender, &peer), &error);
            Ok(())
        }
    }
}

/// Applies a frame that has arrived on the outcomes socket.
pub(crate) fn apply_outcomes(
    core: &mut Core,
    arrived: Arrived,
    now_ms: i64,
) -> Result<(), FrontierError> {
    match codec::decode::<SupervisorOutcomes>(&arrived.frame) {
        Ok(outcomes) if is_impostor(core, &arrived.sender, &outcomes.supervisor) => Ok(()),
        Ok(outcomes) => core.handle_outcomes(outcomes, now_ms),
        Err(error) => {
            note_unreadable(core, &sender_of(&arrived.sender, &Peer::new()), &error);
            Ok(())
        }
    }
}

/// The name of the sender's key. Without keys: the identity of the connection.
fn sender_of(sender: &Option<Arc<Entry>>, peer: &Peer) -> String {
    if let Some(entry) = sender {
        return entry.name.to_string();
    }
    let mut hex = String::new();
    for byte in peer {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

fn note_unreadable(core: &mut Core, sender: &str, error: &codec::CodecError) {
    if core
        .surroundings()
        .refusals
        .record_if_new(&format!("unreadable {sender} {error}"))
    {
        tracing::error!(
            event = "unreadable_message", sender, %error,
            "a message was dropped"
        );
    }
}

fn note_foreign(core: &mut Core, greeting: &Greeting) {
    let supervisor = &greeting.hello.supervisor;
    let refusal = format!("foreign {supervisor}");
    if core.surroundings().refusals.record_if_new(&refusal) {
        let (ours, theirs) = (Versions::OURS, greeting.versions);
        let older = Versions::older_role(ours, theirs);
        tracing::error!(
            event = "no_common_version",
            supervisor,
            oldest = theirs.oldest,
            newest = theirs.newest,
            "a supervisor shares no wire version with this dispatcher, which speaks {} to {}: upgrade webfill at the {older}",
            ours.oldest,
            ours.newest,
        );
    }
}

/// Whether a supervisor uses a name that its key does not allow. If so, that is reported.
fn is_impostor(core: &mut Core, sender: &Option<Arc<Entry>>, supervisor: &str) -> bool {
    let Some(name) = sender.as_ref().map(|entry| &*entry.name) else {
        return false;
    };
    let is_impostor = !keys::may_be_called(name, supervisor);
    if is_impostor
        && core
            .surroundings()
            .refusals
            .record_if_new(&format!("impostor {name} {supervisor}"))
    {
        tracing::warn!(
            event = "message_refused",
            name,
            supervisor,
            "a supervisor's name does not match its key: start it with --id NAME, or --id NAME:ANYTHING if several share the key"
        );
    }
    is_impostor
}
