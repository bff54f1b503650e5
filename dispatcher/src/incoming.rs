//! Frames of supervisors: they are read, their senders' names are checked against their keys, and what
//! cannot be read is told.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use webfill_wire::codec::OLDEST_VERSION;
use webfill_wire::greeting::{self, FromSupervisor, Greeting, Versions};
use webfill_wire::keys::{self, Entry};
use webfill_wire::socket::{Arrived, Outbox, Peer};
use webfill_wire::{Hello, SupervisorOutcomes, SupervisorToDispatcher, codec};

use crate::caller::Caller;
use crate::core::Core;
use crate::frontier::FrontierError;

/// At most this many greetings are remembered. Each is forgotten with its repetition, which follows at once.
const MOST_GREETINGS: usize = 4_096;

/// The greetings whose repetitions for older builds have not come yet (see [`greeting`]). One that came
/// too early to be answered, while the dispatcher was quiet or the name was taken, still says in which
/// version its repetition is to be answered.
#[derive(Debug, Default)]
pub(crate) struct Greetings {
    /// Session and version, by the connection.
    unrepeated: HashMap<Peer, (u64, u8)>,
}

impl Greetings {
    /// The version of the session that a hello asks for.
    fn version_of(&mut self, hello: &Hello, peer: &Peer, version: u8) -> u8 {
        if version > OLDEST_VERSION {
            if self.unrepeated.len() >= MOST_GREETINGS {
                self.unrepeated.clear();
            }
            self.unrepeated
                .insert(peer.clone(), (hello.session, version));
            return version;
        }
        match self.unrepeated.remove(peer) {
            Some((session, greeted)) if session == hello.session => greeted,
            _ => version,
        }
    }
}

/// Applies a frame that has arrived on the tasks socket.
pub(crate) fn apply_word(
    core: &mut Core,
    greetings: &mut Greetings,
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
            let (version, is_hello) = match &message {
                SupervisorToDispatcher::Hello(hello) => {
                    (greetings.version_of(hello, &peer, version), true)
                }
                _ => (version, false),
            };
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

/// The name of the sender's key; without keys, what distinguishes its connection.
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
    if core.refusals.record_if_new(&refusal) {
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

/// Whether a supervisor uses a name that its key does not allow.
fn is_impostor(core: &mut Core, sender: &Option<Arc<Entry>>, supervisor: &str) -> bool {
    let Some(name) = sender.as_ref().map(|entry| &*entry.name) else {
        return false;
    };
    let is_impostor = !keys::may_be_called(name, supervisor);
    if is_impostor
        && core
            .refusals
            .record_if_new(&format!("impostor {name} {supervisor}"))
    {
        tracing::warn!(
            event = "message_refused",
            name,
            supervisor,
            "a supervisor goes by a name that is not its key's: start it with --id NAME, or --id NAME:ANYTHING where several share the key"
        );
    }
    is_impostor
}

#[cfg(test)]
mod tests {
    use webfill_wire::{Credit, Lane};

    use super::*;

    fn hello(session: u64) -> Hello {
        Hello {
            supervisor: String::from("one"),
            instance: 1,
            session,
            sent_ms: 0,
            lane: Lane::Http,
            workers: 1,
            longest_request_ms: 1,
            credit: Credit {
                tasks: 1,
                url_bytes: 1,
            },
            held: Vec::new(),
        }
    }

    #[test]
    fn a_repeated_hello_is_answered_in_the_version_of_its_greeting() {
        let mut greetings = Greetings::default();
        let (one, other) = (Peer::from(*b"one"), Peer::from(*b"other"));
        assert_eq!(greetings.version_of(&hello(1), &one, 9), 9);
        assert_eq!(greetings.version_of(&hello(1), &other, OLDEST_VERSION), 6);
        assert_eq!(greetings.version_of(&hello(1), &one, OLDEST_VERSION), 9);
        assert_eq!(
            greetings.version_of(&hello(1), &one, OLDEST_VERSION),
            6,
            "it was repeated once"
        );
        greetings.version_of(&hello(2), &one, 9);
        assert_eq!(greetings.version_of(&hello(3), &one, OLDEST_VERSION), 6);
    }

    #[test]
    fn greetings_that_are_never_repeated_take_bounded_memory() {
        let mut greetings = Greetings::default();
        for nth in 0..3 * MOST_GREETINGS {
            greetings.version_of(&hello(1), &nth.to_le_bytes().to_vec(), 9);
        }
        assert!(greetings.unrepeated.len() <= MOST_GREETINGS);
    }
}
