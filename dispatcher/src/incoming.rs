//! Decodes the frames that supervisors send, and applies them. Checks that the supervisors' names belong to their keys,
//! and reports frames that cannot be read.

use std::fmt::Write;
use std::sync::Arc;

use webfill_scheduler::Caller;
use webfill_scheduler::Core;
use webfill_scheduler::frontier::FrontierError;
use webfill_wire::handshake::{self, Handshake, SupervisorFrame, Versions};
use webfill_wire::keys::{self, Entry};
use webfill_wire::socket::{ArrivedFrame, Outbox, Peer};
use webfill_wire::{SupervisorOutcomes, SupervisorToDispatcher, codec};

/// Applies a frame that has arrived on the tasks socket.
pub(crate) fn apply_tasks_frame(
    core: &mut Core,
    outbox: &Outbox,
    arrived: ArrivedFrame,
    now_ms: i64,
) -> Result<(), FrontierError> {
    let peer = arrived.peer.unwrap_or_default();
    match handshake::decode_supervisor_frame(&arrived.frame) {
        Ok(SupervisorFrame::Message(_, SupervisorToDispatcher::Hello(hello)))
            if report_if_impostor(core, &arrived.sender, &hello.supervisor) =>
        {
            Ok(())
        }
        Ok(SupervisorFrame::Message(version, message)) => {
            let is_hello = matches!(message, SupervisorToDispatcher::Hello(_));
            let caller = Caller { peer, version };
            core.handle_supervisor_message(&caller, message, now_ms)?;
            if let Some(address) = arrived.address.filter(|_| is_hello) {
                core.set_address_of(&caller, address);
            }
            Ok(())
        }
        Ok(SupervisorFrame::Foreign(handshake)) => {
            record_foreign_version(core, &handshake);
            let refusal = handshake::encode_refusal(handshake.hello.session);
            outbox.send_to(arrived.socket, &peer, refusal);
            Ok(())
        }
        Err(error) => {
            record_unreadable_frame(core, &sender_name(&arrived.sender, &peer), &error);
            Ok(())
        }
    }
}

/// Applies a frame that has arrived on the outcomes socket.
pub(crate) fn apply_outcomes(
    core: &mut Core,
    arrived: ArrivedFrame,
    now_ms: i64,
) -> Result<(), FrontierError> {
    match codec::decode::<SupervisorOutcomes>(&arrived.frame) {
        Ok(outcomes) if report_if_impostor(core, &arrived.sender, &outcomes.supervisor) => Ok(()),
        Ok(outcomes) => core.handle_outcomes(outcomes, now_ms),
        Err(error) => {
            record_unreadable_frame(core, &sender_name(&arrived.sender, &Peer::new()), &error);
            Ok(())
        }
    }
}

/// The name of the sender's key. Without keys, the identity of the connection in hex.
fn sender_name(sender: &Option<Arc<Entry>>, peer: &Peer) -> String {
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

fn record_unreadable_frame(core: &mut Core, sender: &str, error: &codec::CodecError) {
    if core
        .environment()
        .refusals
        .record_if_new(&format!("unreadable {sender} {error}"))
    {
        tracing::error!(
            event = "unreadable_message", sender, %error,
            "a message was dropped"
        );
    }
}

fn record_foreign_version(core: &mut Core, handshake: &Handshake) {
    let supervisor = &handshake.hello.supervisor;
    let refusal = format!("foreign {supervisor}");
    if core.environment().refusals.record_if_new(&refusal) {
        let (ours, theirs) = (Versions::OURS, handshake.versions);
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

/// Returns whether a supervisor uses a name that its key does not allow, and reports it.
fn report_if_impostor(core: &mut Core, sender: &Option<Arc<Entry>>, supervisor: &str) -> bool {
    let Some(name) = sender.as_ref().map(|entry| &*entry.name) else {
        return false;
    };
    let is_impostor = !keys::may_use_id(name, supervisor);
    if is_impostor
        && core
            .environment()
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
