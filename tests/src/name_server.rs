//! A DNS server for isolated tests. It can resolve a name to any address, to a different address each time, late, or
//! not at all.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::isolation::mount_file;

/// The address of the DNS server in an isolated system.
const ADDRESS: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 53);

const HEADER_BYTES: usize = 12;
const TYPE_A: u16 = 1;
const TYPE_AAAA: u16 = 28;

/// The reply to a question.
#[derive(Debug, Clone)]
pub enum Reply {
    /// The addresses of the family (IPv4 or IPv6) that the question asks for. Other addresses in the list are left out.
    Addresses(Vec<IpAddr>),
    /// Like `Addresses`, but after this delay.
    Late(Duration, Vec<IpAddr>),
    NoSuchName,
    /// No answer is sent.
    Silence,
}

/// A running DNS server. It answers until the process ends, and counts the questions.
pub struct NameServer {
    counts: Arc<Counts>,
}

/// The id in a DNS question. It stays the same when a client repeats the question.
type Question = [u8; 2];

#[derive(Default)]
struct Counts {
    /// The number of questions that were answered with an address.
    answered: AtomicU32,
    /// The ids of all questions about each name.
    questions: Mutex<HashMap<String, HashSet<Question>>>,
}

impl NameServer {
    /// Starts a server that answers a question about a name with `addresses(name, n)`. Here `n` is the number of
    /// earlier questions, about any name, that were answered with an address. Questions without an address of their
    /// family are not counted.
    ///
    /// Works only in isolation, because it replaces the machine's name server.
    pub fn start(
        folder: &std::path::Path,
        addresses: impl Fn(&str, u32) -> Vec<IpAddr> + Send + 'static,
    ) -> NameServer {
        NameServer::start_replying(folder, move |name, asked| {
            Reply::Addresses(addresses(name, asked))
        })
    }

    /// Like [`NameServer::start`], but the server can also reply in other ways.
    pub fn start_replying(
        folder: &std::path::Path,
        reply: impl Fn(&str, u32) -> Reply + Send + 'static,
    ) -> NameServer {
        let configuration = folder.join("resolv.conf");
        std::fs::write(&configuration, "nameserver 127.0.0.1\n").expect("a folder of our own");
        mount_file(&configuration, "/etc/resolv.conf");
        let socket = UdpSocket::bind(ADDRESS).expect("isolated tests are root");
        let counts = Arc::new(Counts::default());
        let counting = Arc::clone(&counts);
        std::thread::spawn(move || {
            let mut question = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut question) {
                let question = &question[..length];
                let (name, _) = read_name(question, HEADER_BYTES);
                counting.note_question(&name, [question[0], question[1]]);
                let answered = counting.answered.load(Ordering::SeqCst);
                send_reply(&socket, question, from, &counting, reply(&name, answered));
            }
        });
        NameServer { counts }
    }

    /// The number of questions that were answered with an address.
    pub fn answered_count(&self) -> u32 {
        self.counts.answered.load(Ordering::SeqCst)
    }

    /// The number of questions about this name, of both families, with or without an answer. A repeated question counts
    /// once.
    pub fn question_count(&self, name: &str) -> usize {
        let questions = self.counts.questions.lock();
        let questions = questions.unwrap_or_else(PoisonError::into_inner);
        questions.get(name).map_or(0, HashSet::len)
    }
}

impl Counts {
    fn note_question(&self, name: &str, question: Question) {
        let questions = self.questions.lock();
        let mut questions = questions.unwrap_or_else(PoisonError::into_inner);
        questions.entry(name.into()).or_default().insert(question);
    }
}

/// Sends the reply to a question, immediately or after its delay.
fn send_reply(
    socket: &UdpSocket,
    question: &[u8],
    from: SocketAddr,
    counts: &Counts,
    reply: Reply,
) {
    const NO_ERROR: u8 = 0;
    const NO_SUCH_NAME: u8 = 3;
    let (code, mut found, after) = match reply {
        Reply::Addresses(found) => (NO_ERROR, found, Duration::ZERO),
        Reply::Late(after, found) => (NO_ERROR, found, after),
        Reply::NoSuchName => (NO_SUCH_NAME, Vec::new(), Duration::ZERO),
        Reply::Silence => return,
    };
    let (_, after_name) = read_name(question, HEADER_BYTES);
    let wanted = u16::from_be_bytes([question[after_name], question[after_name + 1]]);
    found.retain(|address| wanted == if address.is_ipv4() { TYPE_A } else { TYPE_AAAA });
    if !found.is_empty() {
        counts.answered.fetch_add(1, Ordering::SeqCst);
    }
    let answer = build_answer(&question[..after_name + 4], wanted, code, &found);
    // Errors are ignored, because a client that no longer waits needs no answer.
    if after.is_zero() {
        let _ = socket.send_to(&answer, from);
        return;
    }
    let socket = socket.try_clone().expect("few sockets");
    std::thread::spawn(move || {
        std::thread::sleep(after);
        let _ = socket.send_to(&answer, from);
    });
}

/// The bytes of the DNS answer to a question about one name (RFC 1035, 4.1).
fn build_answer(question: &[u8], wanted: u16, code: u8, found: &[IpAddr]) -> Vec<u8> {
    let count = u8::try_from(found.len()).expect("few addresses");
    // First the id of the question; then the flags of a response, with recursion desired and available; the code; and
    // the numbers of questions and answers.
    let mut answer = question[..2].to_vec();
    answer.extend([0x81, 0x80 | code, 0, 1, 0, count, 0, 0, 0, 0]);
    answer.extend(&question[HEADER_BYTES..]);
    for address in found {
        let octets = match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        // The name is a pointer to the name in the question. The type, the class IN, and a lifetime of 0 follow; this
        // lifetime prevents caching.
        answer.extend([0xc0, HEADER_BYTES as u8]);
        answer.extend(wanted.to_be_bytes());
        answer.extend([0, 1, 0, 0, 0, 0, 0, octets.len() as u8]);
        answer.extend(octets);
    }
    answer
}

/// Reads the name that begins at `at`. Returns the name, and the position after its end.
fn read_name(message: &[u8], mut at: usize) -> (String, usize) {
    let mut labels = Vec::new();
    while message[at] != 0 {
        let end = at + 1 + usize::from(message[at]);
        labels.push(String::from_utf8_lossy(&message[at + 1..end]).to_ascii_lowercase());
        at = end;
    }
    (labels.join("."), at + 1)
}
