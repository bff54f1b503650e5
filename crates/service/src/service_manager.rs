//! Notifies the service manager that started this process, by systemd's protocol (`Type=notify`): that the process
//! serves, what it does, that its loop runs, that it reloads its settings, and that it ends. Without a service manager
//! nothing is sent.
//!
//! The loop itself reports that it runs (`WATCHDOG=1`), so a process with a stuck loop is restarted. Nothing here
//! blocks: a notification that the service manager cannot take immediately is dropped, or sent again later if it still
//! applies.

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

use crate::boot_clock::monotonic_us;

/// The shortest time between two notifications of the status.
const WORD_EVERY: Duration = Duration::from_secs(1);

/// The environment variable with the name of the service manager's socket. A name that begins with `@` is an abstract
/// socket, not a file.
const SOCKET: &str = "NOTIFY_SOCKET";

/// The environment variable that says how long a process may be silent before it counts as stuck, in microseconds. The
/// second variable has the id of the process that must send notifications.
const WATCHDOG_US: &str = "WATCHDOG_USEC";
const WATCHDOG_PID: &str = "WATCHDOG_PID";

/// The connection to the service manager; see the documentation of the module.
#[derive(Debug)]
pub struct ServiceManager {
    socket: Option<UnixDatagram>,
    word_every: Duration,
    next_word: Instant,
    status: String,
    ready_is_owed: bool,
    is_stopping: bool,
}

impl ServiceManager {
    /// The service manager that the environment names.
    pub fn from_environment() -> ServiceManager {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let is_other =
            variable(WATCHDOG_PID).is_some_and(|pid| *pid != *std::process::id().to_string());
        let silence_us = variable(WATCHDOG_US)
            .and_then(|text| text.to_str()?.parse().ok())
            .filter(|_| !is_other);
        ServiceManager::at_socket(
            variable(SOCKET).as_deref(),
            silence_us.map(Duration::from_micros),
        )
    }

    /// Creates a value that notifies nobody. It is for the processes of `webfill crawl`, which their parent watches.
    pub fn disabled() -> ServiceManager {
        ServiceManager::at_socket(None, None)
    }

    fn at_socket(name: Option<&OsStr>, silence: Option<Duration>) -> ServiceManager {
        let socket = name.and_then(|name| {
            connect(name)
                .map_err(|error| tracing::warn!(event = "no_service_manager", %error, socket = ?name, "cannot notify the service manager"))
                .ok()
        });
        ServiceManager {
            socket,
            // Notify twice within the allowed time, as systemd advises, so that one late notification does no harm.
            word_every: silence.map_or(WORD_EVERY, |silence| WORD_EVERY.min(silence / 2)),
            next_word: Instant::now(),
            status: String::new(),
            ready_is_owed: false,
            is_stopping: false,
        }
    }

    /// Notifies that the process is ready to serve.
    pub fn notify_ready(&mut self) {
        self.ready_is_owed = !self.notify("READY=1");
    }

    /// Notifies that the loop runs. `status` describes for people, in one line, what the process does.
    pub fn notify_alive(&mut self, status: impl FnOnce() -> String) {
        let now = Instant::now();
        if self.socket.is_none() || now < self.next_word {
            return;
        }
        self.next_word = now + self.word_every;
        // If `READY=1` was not delivered yet, send it again. Without it, the process would count as starting forever,
        // and would not be watched.
        if self.ready_is_owed {
            self.notify_ready();
        }
        self.notify("WATCHDOG=1");
        self.notify_status(status());
    }

    /// Notifies what the process does. It may also be called before the loop runs.
    pub fn notify_status(&mut self, status: String) {
        if status != self.status && self.notify(&format!("STATUS={}", status.replace('\n', " "))) {
            self.status = status;
        }
    }

    /// Notifies that settings are being reloaded, until [`ServiceManager::notify_ready`].
    pub fn notify_reloading(&mut self) {
        self.ready_is_owed = false;
        self.notify(&format!("RELOADING=1\nMONOTONIC_USEC={}", monotonic_us()));
    }

    /// Notifies that the process is ending. This may take a while.
    pub fn notify_stopping(&mut self) {
        if !self.is_stopping {
            self.is_stopping = true;
            self.ready_is_owed = false;
            self.notify("STOPPING=1");
        }
    }

    /// Sends a notification. Returns false if it was not delivered and should be sent again.
    fn notify(&self, state: &str) -> bool {
        let Some(socket) = &self.socket else {
            return true;
        };
        let sent = socket.send(state.as_bytes());
        if let Err(error) = &sent {
            tracing::debug!(event = "service_manager_not_notified", %error, state, "dropped");
        }
        sent.is_ok()
    }
}

fn connect(name: &OsStr) -> std::io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    let address = match name.as_bytes().split_first() {
        Some((b'@', abstract_name)) => SocketAddr::from_abstract_name(abstract_name)?,
        _ => SocketAddr::from_pathname(name)?,
    };
    socket.connect_addr(&address)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Listens at an abstract socket name, in place of a service manager.
    fn bind_listener(name: &str) -> (UnixDatagram, String) {
        let name = format!("webfill-{name}-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        socket.set_nonblocking(true).unwrap();
        (socket, format!("@{name}"))
    }

    fn received_notifications(socket: &UnixDatagram) -> Vec<String> {
        let mut buffer = [0; 4_096];
        let received =
            std::iter::from_fn(|| socket.recv(&mut buffer).ok().map(|n| buffer[..n].to_vec()));
        received
            .map(|word| String::from_utf8(word).unwrap())
            .collect()
    }

    #[test]
    fn each_state_is_sent_and_a_status_only_when_it_is_new() {
        let (socket, name) = bind_listener("states");
        let mut manager = ServiceManager::at_socket(Some(OsStr::new(&name)), Some(Duration::ZERO));
        manager.notify_ready();
        manager.notify_alive(|| "one\ntwo".to_owned());
        manager.notify_alive(|| "one\ntwo".to_owned());
        manager.notify_stopping();
        manager.notify_stopping();
        let expected = [
            "READY=1",
            "WATCHDOG=1",
            "STATUS=one two",
            "WATCHDOG=1",
            "STOPPING=1",
        ];
        assert_eq!(received_notifications(&socket), expected);
        manager.notify_reloading();
        let reloading = received_notifications(&socket).concat();
        assert!(
            reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="),
            "{reloading}"
        );
    }

    #[test]
    fn the_loop_notifies_at_half_of_the_watchdog_time() {
        let (_socket, name) = bind_listener("watchdog");
        let every =
            |silence| ServiceManager::at_socket(Some(OsStr::new(&name)), silence).word_every;
        assert_eq!(
            every(Some(Duration::from_millis(500))),
            Duration::from_millis(250)
        );
        assert_eq!(every(Some(Duration::from_secs(60))), WORD_EVERY);
        assert_eq!(every(None), WORD_EVERY);
    }

    #[test]
    fn a_service_manager_that_does_not_read_blocks_nothing_and_is_notified_later() {
        let (socket, name) = bind_listener("full");
        let mut manager = ServiceManager::at_socket(Some(OsStr::new(&name)), Some(Duration::ZERO));
        for turn in 0..10_000 {
            manager.notify_alive(|| turn.to_string());
        }
        manager.notify_ready();
        manager.notify_status("serves".to_owned());
        let before = received_notifications(&socket);
        assert!(!before.contains(&"READY=1".to_owned()), "{before:?}");
        manager.notify_alive(|| "serves".to_owned());
        manager.notify_alive(|| "serves".to_owned());
        let expected = ["READY=1", "WATCHDOG=1", "STATUS=serves", "WATCHDOG=1"];
        assert_eq!(received_notifications(&socket), expected);
        ServiceManager::disabled().notify_ready();
        ServiceManager::at_socket(Some(OsStr::new("@nobody-listens-there")), None).notify_ready();
    }
}
