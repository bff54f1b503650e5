//! A proxy between a supervisor and its dispatcher. It closes, blocks or delays connections, as networks do. It
//! understands ZMTP 3 without encryption, so it can also duplicate and reorder messages.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const POLL: Duration = Duration::from_millis(20);

/// The delay of data on a slow connection.
const LATER: Duration = Duration::from_millis(120);

/// The number of bytes in the greeting at the start of every connection.
const GREETING: usize = 64;

/// How the proxy currently treats connections and messages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Weather {
    Fair,
    /// All connections are closed, and new ones are closed, too.
    Cut,
    /// Connections stay open, but transfer no data.
    Silent,
    Slow,
    /// Each message is passed on twice.
    Twice,
    /// Each message waits until the next one has been passed on.
    Swapped,
}

struct Shared {
    weather: Mutex<Weather>,
    over: AtomicBool,
}

impl Shared {
    fn weather(&self) -> Weather {
        *self.weather.lock().expect("nobody panics while holding it")
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

/// A proxy for the ports of tasks and outcomes. Dropping it closes all connections.
pub(crate) struct Proxy {
    shared: Arc<Shared>,
}

impl Proxy {
    /// Starts a proxy from each port of `own` to the same port of `dispatcher`.
    pub(crate) fn start(own: &str, dispatcher: &str, ports: [u16; 2]) -> Proxy {
        let shared = Arc::new(Shared {
            weather: Mutex::new(Weather::Fair),
            over: AtomicBool::new(false),
        });
        for port in ports {
            let listener = TcpListener::bind((own, port))
                .unwrap_or_else(|error| panic!("cannot listen on {own}:{port}: {error}"));
            listener.set_nonblocking(true).expect("a listener");
            let target = format!("{dispatcher}:{port}").parse().expect("an address");
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || accept_connections(&listener, target, &shared));
        }
        Proxy { shared }
    }

    pub(crate) fn set_weather(&self, weather: Weather) {
        let now = self.shared.weather.lock();
        *now.expect("nobody panics while holding it") = weather;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
    }
}

fn accept_connections(listener: &TcpListener, target: SocketAddr, shared: &Arc<Shared>) {
    while !shared.is_over() {
        let Ok((client, _)) = listener.accept() else {
            std::thread::sleep(POLL);
            continue;
        };
        if shared.weather() == Weather::Cut {
            continue;
        }
        // If the dispatcher refuses the connection because it is down, close the supervisor's connection, too.
        let Ok(server) = TcpStream::connect_timeout(&target, Duration::from_secs(1)) else {
            continue;
        };
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let _ = client.set_nonblocking(false);
        for (from, to) in [(&client, &server), (&server, &client)] {
            let pair = (from.try_clone(), to.try_clone());
            let (Ok(from), Ok(to)) = pair else { continue };
            let shared = Arc::clone(shared);
            std::thread::spawn(move || Pump::new(from, to).run(&shared));
        }
    }
}

/// One direction of a connection.
struct Pump {
    from: TcpStream,
    to: TcpStream,
    /// The bytes of a message that has not arrived completely.
    unread: Vec<u8>,
    /// The number of greeting bytes (the beginning of a connection) that are still to come. They are passed on at once,
    /// because each peer waits for parts of the other's greeting.
    greeting: usize,
    /// A message that waits until the next one has been passed on.
    waiting: Option<Vec<u8>>,
}

impl Pump {
    fn new(from: TcpStream, to: TcpStream) -> Pump {
        Pump {
            from,
            to,
            unread: Vec::new(),
            greeting: GREETING,
            waiting: None,
        }
    }

    fn run(mut self, shared: &Shared) {
        let _ = self.from.set_read_timeout(Some(POLL));
        let mut buffer = [0; 16 << 10];
        while !shared.is_over() && shared.weather() != Weather::Cut {
            if shared.weather() == Weather::Silent {
                std::thread::sleep(POLL);
                continue;
            }
            let passed = match self.from.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => self.forward(&buffer[..length], shared.weather()),
                Err(error) if is_timeout(&error) => self.send_held(),
                Err(_) => break,
            };
            if passed.is_err() {
                break;
            }
        }
        // Closing both sides also ends the thread for the other direction.
        let _ = self.from.shutdown(Shutdown::Both);
        let _ = self.to.shutdown(Shutdown::Both);
    }

    fn forward(&mut self, bytes: &[u8], weather: Weather) -> std::io::Result<()> {
        if weather == Weather::Slow {
            std::thread::sleep(LATER);
        }
        let (greeting, bytes) = bytes.split_at(self.greeting.min(bytes.len()));
        self.greeting -= greeting.len();
        self.to.write_all(greeting)?;
        self.unread.extend_from_slice(bytes);
        while let Some(length) = self.complete_message_length() {
            let message: Vec<u8> = self.unread.drain(..length).collect();
            let is_command = message[0] & 0b100 != 0;
            match weather {
                Weather::Swapped if !is_command && self.waiting.is_none() => {
                    self.waiting = Some(message);
                    continue;
                }
                Weather::Twice if !is_command => self.to.write_all(&message)?,
                _ => {}
            }
            self.to.write_all(&message)?;
            self.send_held()?;
        }
        Ok(())
    }

    fn send_held(&mut self) -> std::io::Result<()> {
        match self.waiting.take() {
            Some(message) => self.to.write_all(&message),
            None => Ok(()),
        }
    }

    /// The length of the first command or message, including all its frames. `None` if it has not arrived completely.
    fn complete_message_length(&self) -> Option<usize> {
        let mut end = 0;
        loop {
            let flags = *self.unread.get(end)?;
            let (head, body) = if flags & 0b10 != 0 {
                let size = self.unread.get(end + 1..end + 9)?;
                let size = u64::from_be_bytes(size.try_into().expect("eight bytes"));
                (9, usize::try_from(size).expect("a size in memory"))
            } else {
                (2, usize::from(*self.unread.get(end + 1)?))
            };
            end += head + body;
            if self.unread.len() < end {
                return None;
            }
            if flags & 1 == 0 {
                return Some(end);
            }
        }
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
