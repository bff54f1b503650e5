//! The encoding of messages: one version byte, then the message in postcard's format. A frame that is malformed, or of
//! a version that this build does not speak, is an error for the receiver to log. It is never misread.
//! `crates/wire/tests/frozen_bytes.rs` fails if the bytes change while the version stays.
//!
//! A build speaks all versions from [`OLDEST_VERSION`] to [`WIRE_VERSION`], so the machines of a fleet can be upgraded
//! one after another. The shape of a message therefore never changes. A newer version only has further variants at the
//! ends of the enums, and these are not sent to peers with an older version. [`crate::handshake`] describes how two
//! builds agree on a version.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The newest version of messages that this build speaks. Once this version is released, raise it with every new
/// message.
pub const WIRE_VERSION: u8 = 1;

/// The oldest version of messages that this build speaks: the version of the previous release.
pub const OLDEST_VERSION: u8 = 1;

/// The first byte of frames that are the same in all versions.
pub(crate) const NO_VERSION: u8 = 0;

/// Why a frame could not be decoded. The receiver logs and drops such a frame.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CodecError {
    #[error("empty frame")]
    Empty,
    #[error(
        "wire version {found}, this build speaks {OLDEST_VERSION} to {WIRE_VERSION}: upgrade webfill {}",
        end_to_upgrade(*found)
    )]
    Version { found: u8 },
    #[error("malformed message: {reason}")]
    Malformed { reason: String },
}

/// Which of the two processes to upgrade if a frame of the version `found` cannot be read, in words for an error
/// message.
fn end_to_upgrade(found: u8) -> &'static str {
    match found > WIRE_VERSION {
        true => "here, it is the older one",
        false => "at the sender, it is the older one",
    }
}

/// Encodes a message for a process of the same build.
pub fn encode<M: Serialize>(message: &M) -> Vec<u8> {
    encode_in_version(WIRE_VERSION, message)
}

/// Encodes a message in the given version. The caller must ensure that the version contains this message.
pub fn encode_in_version<M: Serialize>(version: u8, message: &M) -> Vec<u8> {
    postcard::to_extend(message, vec![version])
        .expect("messages hold only types that postcard can encode")
}

/// Decodes a message. Bytes left over after it are an error.
pub fn decode<M: DeserializeOwned>(frame: &[u8]) -> Result<M, CodecError> {
    decode_with_version(frame).map(|(_, message)| message)
}

/// Decodes a message, and returns its version.
pub fn decode_with_version<M: DeserializeOwned>(frame: &[u8]) -> Result<(u8, M), CodecError> {
    let (&version, body) = frame.split_first().ok_or(CodecError::Empty)?;
    if !(OLDEST_VERSION..=WIRE_VERSION).contains(&version) {
        return Err(CodecError::Version { found: version });
    }
    decode_body(body).map(|message| (version, message))
}

pub(crate) fn decode_body<M: DeserializeOwned>(body: &[u8]) -> Result<M, CodecError> {
    match postcard::take_from_bytes(body) {
        Ok((message, [])) => Ok(message),
        Ok((_, rest)) => Err(CodecError::Malformed {
            reason: format!("{} bytes left over", rest.len()),
        }),
        Err(error) => Err(CodecError::Malformed {
            reason: error.to_string(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{AddressBounds, Delivery, DispatcherToSupervisor, Task};

    fn task(url: &str) -> Task {
        Task {
            attrs: None,
            task: u64::MAX,
            delivery: Delivery::new(1_795_000_000_000, 3),
            crawl: 1,
            url: url.into(),
            site: "example.com".into(),
            depth: 1,
            wait_ms: 15_000,
            last_request_ago_ms: None,
            parent: Some("https://example.com/people".into()),
            records: vec!["42".into()],
            priority: 50,
            delay_ms: Some(1_000),
            failed_attempts: Vec::new(),
            unreachable: None,
            address_bounds: AddressBounds::None,
        }
    }

    #[test]
    fn a_message_survives_encoding_and_decoding() {
        let sent = DispatcherToSupervisor::Tasks {
            session: 1,
            number: 7,
            crawls: Vec::new(),
            tasks: vec![task("https://example.com/ada")],
        };
        assert_eq!(decode::<DispatcherToSupervisor>(&encode(&sent)), Ok(sent));
    }

    #[test]
    fn an_error_says_which_process_to_upgrade() {
        let reported = |found| CodecError::Version { found }.to_string();
        let older = reported(OLDEST_VERSION - 1);
        assert!(older.ends_with("upgrade webfill at the sender, it is the older one"));
        let newer = reported(WIRE_VERSION + 1);
        assert!(newer.ends_with("upgrade webfill here, it is the older one"));
    }

    #[test]
    fn an_encoded_task_is_small() {
        let url = "https://example.com/ada";
        assert!(encode(&task(url)).len() < 400 + url.len());
    }

    #[test]
    fn frames_that_cannot_be_read_are_errors() {
        assert_eq!(decode::<Task>(&[]), Err(CodecError::Empty));
        assert_eq!(
            decode::<Task>(&[99, 1, 2]),
            Err(CodecError::Version { found: 99 })
        );
        let mut frame = encode(&task("https://example.com/"));
        frame.push(0);
        assert!(matches!(
            decode::<Task>(&frame),
            Err(CodecError::Malformed { .. })
        ));
        for cut in 1..frame.len() - 1 {
            assert!(decode::<Task>(&frame[..cut]).is_err());
        }
    }
}
