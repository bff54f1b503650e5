//! A name server on 127.0.0.1. It answers each query for an IPv4 address with 127.0.0.1, but leaves queries for dead
//! names unanswered.

use std::net::{Ipv4Addr, UdpSocket};

use crate::failure::Failure;

const HEADER_BYTES: usize = 12;
const TYPE_A: [u8; 2] = [0, 1];

/// The record in an answer: the name (as a position in the question), type A, class IN, lifetime 0, and the four bytes
/// of 127.0.0.1.
const RECORD: &[u8] = b"\xc0\x0c\0\x01\0\x01\0\0\0\0\0\x04\x7f\0\0\x01";

/// A name that begins like this is dead: no query for it is answered.
pub const DEAD: &str = "dead-";

/// Answers queries until the process ends.
pub fn serve() -> Result<(), Failure> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 53)).map_err(|error| {
        format!("cannot be the name server, as tests/bench/run.sh lets it: {error}")
    })?;
    std::thread::spawn(move || {
        let mut question = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut question) {
            if let Some(answer) = build_reply(&question[..length]) {
                // The client may no longer wait for the answer, so an error is ignored.
                let _ = socket.send_to(&answer, from);
            }
        }
    });
    Ok(())
}

/// The answer to a query with exactly one question (RFC 1035, 4.1).
fn build_reply(question: &[u8]) -> Option<Vec<u8>> {
    let name = question.get(HEADER_BYTES + 1..)?;
    if name.starts_with(DEAD.as_bytes()) {
        return None;
    }
    let end_of_name = HEADER_BYTES + 1 + name.iter().position(|byte| *byte == 0)?;
    let asked = question.get(HEADER_BYTES..end_of_name + 5)?;
    let is_for_ipv4 = question.get(end_of_name + 1..end_of_name + 3)? == TYPE_A;
    // The answer begins with the id, the flags (a response without error, recursion available), and the counts.
    let mut answer = question[..2].to_vec();
    answer.extend([0x81, 0x80, 0, 1, 0, u8::from(is_for_ipv4), 0, 0, 0, 0]);
    answer.extend(asked);
    if is_for_ipv4 {
        answer.extend(RECORD);
    }
    Some(answer)
}
