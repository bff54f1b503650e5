//! A DNS server for isolated tests, which can resolve a name to any address, or to another one each time.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::isolation::mount_file;

/// The address of the DNS server in an isolated system.
const ADDRESS: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 53);

const HEADER_BYTES: usize = 12;
const TYPE_A: u16 = 1;
const TYPE_AAAA: u16 = 28;

/// A running server; it answers until the process ends, and counts the questions.
pub struct NameServer {
    asked: Arc<AtomicU32>,
}

impl NameServer {
    /// Answers each question with `addresses(name, n)` for the nth question about the name, from 0 on. A
    /// question for the other address family gets no address and is not counted.
    ///
    /// Only in isolation, because it replaces the machine's own name server.
    pub fn start(
        folder: &std::path::Path,
        addresses: impl Fn(&str, u32) -> Vec<IpAddr> + Send + 'static,
    ) -> NameServer {
        let configuration = folder.join("resolv.conf");
        std::fs::write(&configuration, "nameserver 127.0.0.1\n").expect("a folder of our own");
        mount_file(&configuration, "/etc/resolv.conf");
        let socket = UdpSocket::bind(ADDRESS).expect("isolated tests are root");
        let asked = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&asked);
        std::thread::spawn(move || {
            let mut question = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut question) {
                let answer = answer(&question[..length], &counter, &addresses);
                // Who does not wait for it any more needs none.
                let _ = socket.send_to(&answer, from);
            }
        });
        NameServer { asked }
    }

    /// Questions that were answered with an address.
    pub fn asked(&self) -> u32 {
        self.asked.load(Ordering::SeqCst)
    }
}

/// The answer to a question with one name in it (RFC 1035, 4.1).
fn answer(
    question: &[u8],
    asked: &AtomicU32,
    addresses: &impl Fn(&str, u32) -> Vec<IpAddr>,
) -> Vec<u8> {
    let (name, after_name) = name_at(question, HEADER_BYTES);
    let wanted = u16::from_be_bytes([question[after_name], question[after_name + 1]]);
    let mut found = addresses(&name, asked.load(Ordering::SeqCst));
    found.retain(|address| wanted == if address.is_ipv4() { TYPE_A } else { TYPE_AAAA });
    if !found.is_empty() {
        asked.fetch_add(1, Ordering::SeqCst);
    }
    let count = u8::try_from(found.len()).expect("few addresses");
    // The id, "a response, recursion desired and available, no error", and the counts.
    let mut answer = question[..2].to_vec();
    answer.extend([0x81, 0x80, 0, 1, 0, count, 0, 0, 0, 0]);
    answer.extend(&question[HEADER_BYTES..after_name + 4]);
    for address in found {
        let octets = match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        // The name of the question, by its place; class IN; not to be kept for any time.
        answer.extend([0xc0, HEADER_BYTES as u8]);
        answer.extend(wanted.to_be_bytes());
        answer.extend([0, 1, 0, 0, 0, 0, 0, octets.len() as u8]);
        answer.extend(octets);
    }
    answer
}

/// The name that begins at `at`, and where it ends.
fn name_at(message: &[u8], mut at: usize) -> (String, usize) {
    let mut labels = Vec::new();
    while message[at] != 0 {
        let end = at + 1 + usize::from(message[at]);
        labels.push(String::from_utf8_lossy(&message[at + 1..end]).to_ascii_lowercase());
        at = end;
    }
    (labels.join("."), at + 1)
}
