//! A name server on 127.0.0.1 that answers each query for an IPv4 address with 127.0.0.1, except for dead names: for
//! those it is silent.

use std::net::{Ipv4Addr, UdpSocket};

use crate::failure::Failure;

const HEADER_BYTES: usize = 12;
const TYPE_A: [u8; 2] = [0, 1];

/// Type A, class IN, no lifetime, four bytes: 127.0.0.1. The name is that of the question, by its position.
const RECORD: &[u8] = b"\xc0\x0c\0\x01\0\x01\0\0\0\0\0\x04\x7f\0\0\x01";

/// Names that begin like this are dead.
pub const DEAD: &str = "dead-";

/// Answers until the process ends.
pub fn serve() -> Result<(), Failure> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 53)).map_err(|error| {
        format!("cannot be the name server, as tests/bench/run.sh lets it: {error}")
    })?;
    std::thread::spawn(move || {
        let mut question = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut question) {
            if let Some(answer) = answer(&question[..length]) {
                // A client that no longer waits for the answer needs none.
                let _ = socket.send_to(&answer, from);
            }
        }
    });
    Ok(())
}

/// The answer to a question with one name in it (RFC 1035, 4.1).
fn answer(question: &[u8]) -> Option<Vec<u8>> {
    let name = question.get(HEADER_BYTES + 1..)?;
    if name.starts_with(DEAD.as_bytes()) {
        return None;
    }
    let end_of_name = HEADER_BYTES + 1 + name.iter().position(|byte| *byte == 0)?;
    let asked = question.get(HEADER_BYTES..end_of_name + 5)?;
    let is_for_ipv4 = question.get(end_of_name + 1..end_of_name + 3)? == TYPE_A;
    // The id, "a response, recursion desired and available, no error", and the counts.
    let mut answer = question[..2].to_vec();
    answer.extend([0x81, 0x80, 0, 1, 0, u8::from(is_for_ipv4), 0, 0, 0, 0]);
    answer.extend(asked);
    if is_for_ipv4 {
        answer.extend(RECORD);
    }
    Some(answer)
}
