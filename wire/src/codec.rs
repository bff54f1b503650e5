//! The encoding of messages: one version byte ([`WIRE_VERSION`]), then the message in postcard's
//! format. A frame of another version, or one that is malformed, is an error for the receiver to log;
//! it is never misread. `wire/tests/frozen_bytes.rs` fails if the bytes change while the version stays.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The version of this build's messages. Raise it with every change of a message's shape.
pub const WIRE_VERSION: u8 = 6;

/// Why a frame could not be decoded. The receiver logs and drops such a frame.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CodecError {
    #[error("empty frame")]
    Empty,
    #[error(
        "wire version {found}, this build speaks {WIRE_VERSION}: run the same webfill version everywhere"
    )]
    Version { found: u8 },
    #[error("malformed message: {reason}")]
    Malformed { reason: String },
}

/// Encodes a message.
pub fn encode<M: Serialize>(message: &M) -> Vec<u8> {
    let frame = vec![WIRE_VERSION];
    postcard::to_extend(message, frame).expect("messages hold only types that postcard can encode")
}

/// Decodes a message. Bytes left over behind it are an error.
pub fn decode<M: DeserializeOwned>(frame: &[u8]) -> Result<M, CodecError> {
    let (&version, body) = frame.split_first().ok_or(CodecError::Empty)?;
    if version != WIRE_VERSION {
        return Err(CodecError::Version { found: version });
    }
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
            given_up: None,
            address_bounds: AddressBounds::None,
        }
    }

    #[test]
    fn a_message_comes_back_as_it_was_sent() {
        let sent = DispatcherToSupervisor::Tasks {
            session: 1,
            number: 7,
            crawls: Vec::new(),
            tasks: vec![task("https://example.com/ada")],
        };
        assert_eq!(decode::<DispatcherToSupervisor>(&encode(&sent)), Ok(sent));
    }

    #[test]
    fn a_task_is_light() {
        let url = "https://example.com/ada";
        assert!(encode(&task(url)).len() < 400 + url.len());
    }

    #[test]
    fn frames_that_cannot_be_read_are_errors() {
        assert_eq!(decode::<Task>(&[]), Err(CodecError::Empty));
        assert_eq!(
            decode::<Task>(&[9, 1, 2]),
            Err(CodecError::Version { found: 9 })
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
