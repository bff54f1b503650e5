//! How two builds agree on a version of messages. The frames of this handshake are the same in all versions, so that
//! any two builds can read them: their first byte is 0, and the rest never changes its form.
//!
//! A supervisor sends a hello with the [`Versions`] that it speaks. The dispatcher answers in the newest version that
//! both speak, which becomes the version of the session. If there is none, it answers with a [`Refusal`].

use serde::{Deserialize, Serialize};

use crate::codec::{self, CodecError, NO_VERSION, OLDEST_VERSION, WIRE_VERSION};
use crate::message::{Hello, SupervisorToDispatcher};

/// The range of message versions that a build speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    pub oldest: u8,
    pub newest: u8,
}

/// The first frame of a supervisor, its hello.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handshake {
    pub versions: Versions,
    pub hello: Hello,
}

/// The dispatcher's answer to a handshake if it speaks none of the supervisor's versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    pub session: u64,
    /// The versions that the dispatcher speaks.
    pub versions: Versions,
}

/// A frame of a supervisor on the tasks socket.
#[derive(Debug, Clone, PartialEq)]
pub enum SupervisorFrame {
    /// A message, with the version to answer it in.
    Message(u8, SupervisorToDispatcher),
    /// The hello of a supervisor that has no version in common with this build.
    Foreign(Handshake),
}

impl Versions {
    /// The versions of this build.
    pub const OURS: Versions = Versions {
        oldest: OLDEST_VERSION,
        newest: WIRE_VERSION,
    };

    /// The newest version that both ends speak.
    pub fn newest_common(self, other: Versions) -> Option<u8> {
        let newest = self.newest.min(other.newest);
        (newest >= self.oldest.max(other.oldest)).then_some(newest)
    }

    /// Which of the two processes to upgrade if a dispatcher and a supervisor have no version in common.
    pub fn older_role(dispatcher: Versions, supervisor: Versions) -> &'static str {
        match dispatcher.newest < supervisor.newest {
            true => "dispatcher",
            false => "supervisor",
        }
    }
}

/// Encodes a hello as a frame.
pub fn encode_hello(hello: &Hello) -> Vec<u8> {
    let handshake = Handshake {
        versions: Versions::OURS,
        hello: hello.clone(),
    };
    codec::encode_in_version(NO_VERSION, &handshake)
}

pub fn decode_supervisor_frame(frame: &[u8]) -> Result<SupervisorFrame, CodecError> {
    let Some((&NO_VERSION, body)) = frame.split_first() else {
        let (version, message) = codec::decode_with_version(frame)?;
        return Ok(SupervisorFrame::Message(version, message));
    };
    let handshake: Handshake = codec::decode_body(body)?;
    Ok(match Versions::OURS.newest_common(handshake.versions) {
        Some(version) => {
            SupervisorFrame::Message(version, SupervisorToDispatcher::Hello(handshake.hello))
        }
        None => SupervisorFrame::Foreign(handshake),
    })
}

/// Encodes the refusal of a handshake as a frame.
pub fn encode_refusal(session: u64) -> Vec<u8> {
    let refusal = Refusal {
        session,
        versions: Versions::OURS,
    };
    codec::encode_in_version(NO_VERSION, &refusal)
}

/// Decodes a frame of the dispatcher as a refusal; `None` if it is not one.
pub fn decode_refusal(frame: &[u8]) -> Option<Refusal> {
    match frame.split_first() {
        Some((&NO_VERSION, body)) => codec::decode_body(body).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(oldest: u8, newest: u8) -> Versions {
        Versions { oldest, newest }
    }

    #[test]
    fn the_newest_version_that_both_speak_is_chosen() {
        let ours = versions(6, 7);
        for (theirs, chosen) in [
            (versions(6, 7), Some(7)),
            (versions(7, 8), Some(7)),
            (versions(5, 6), Some(6)),
            (versions(4, 5), None),
            (versions(8, 9), None),
        ] {
            assert_eq!(ours.newest_common(theirs), chosen, "{theirs:?}");
            assert_eq!(theirs.newest_common(ours), chosen, "{theirs:?}");
        }
        assert_eq!(Versions::older_role(ours, versions(8, 9)), "dispatcher");
        assert_eq!(Versions::older_role(ours, versions(4, 5)), "supervisor");
    }

    #[test]
    fn a_hello_of_any_build_is_understood_or_refused() {
        let hello = || Hello {
            supervisor: "s".into(),
            instance: 1,
            session: 2,
            sent_ms: 3,
            lane: crate::Lane::Http,
            workers: 1,
            longest_request_ms: 4,
            credit: crate::Credit::default(),
            held: Vec::new(),
        };
        let frame = encode_hello(&hello());
        let read = SupervisorToDispatcher::Hello(hello());
        assert_eq!(
            decode_supervisor_frame(&frame),
            Ok(SupervisorFrame::Message(WIRE_VERSION, read))
        );
        let foreign = Handshake {
            versions: versions(20, 21),
            hello: hello(),
        };
        assert_eq!(
            decode_supervisor_frame(&codec::encode_in_version(NO_VERSION, &foreign)),
            Ok(SupervisorFrame::Foreign(foreign))
        );
        let refusal = decode_refusal(&encode_refusal(2)).unwrap();
        assert_eq!((refusal.session, refusal.versions), (2, Versions::OURS));
        assert_eq!(decode_refusal(&codec::encode(&hello())), None);
    }
}
