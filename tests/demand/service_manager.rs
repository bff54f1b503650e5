//! Tests the notifications that webfill's processes send to a service manager such as systemd. The test plays the
//! service manager.

use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use webfill_tests::Signal;
use webfill_tests::run::{Run, Running};

use crate::fleet::Fleet;

/// A service manager with its socket, whose path a process gets as `NOTIFY_SOCKET`.
struct ServiceManager {
    socket: UnixDatagram,
    path: String,
    reported: Vec<String>,
}

impl ServiceManager {
    fn new(fleet: &Fleet, name: &str) -> ServiceManager {
        let path = fleet.work.path(name);
        let socket = UnixDatagram::bind(&path).expect("a socket");
        let soon = Some(Duration::from_millis(20));
        socket.set_read_timeout(soon).expect("a timeout");
        ServiceManager {
            socket,
            path: path.display().to_string(),
            reported: Vec::new(),
        }
    }

    /// Starts a process that must notify this service manager at least every three seconds.
    fn start(&self, role: Run) -> Running {
        let role = role.env("NOTIFY_SOCKET", &self.path);
        role.env("WATCHDOG_USEC", "3000000").start()
    }

    fn read_notifications(&mut self) {
        let mut buffer = [0; 4_096];
        while let Ok(length) = self.socket.recv(&mut buffer) {
            let words = String::from_utf8_lossy(&buffer[..length]);
            self.reported.extend(words.lines().map(str::to_owned));
        }
    }

    fn has_received(&mut self, word: &str) -> bool {
        self.read_notifications();
        self.reported.iter().any(|reported| reported == word)
    }

    /// Waits for a notification that `is_it` accepts, and discards all notifications before it.
    fn wait_for(&mut self, what: &str, is_it: impl Fn(&str) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            self.read_notifications();
            if let Some(at) = self.reported.iter().position(|reported| is_it(reported)) {
                self.reported.drain(..=at);
                return;
            }
            assert!(
                Instant::now() < deadline,
                "no {what} among {:?}",
                self.reported
            );
        }
    }

    fn wait_for_word(&mut self, word: &str) {
        self.wait_for(word, |reported| reported == word);
    }
}

fn terminate(mut running: Running, manager: &mut ServiceManager) {
    running.signal(Signal::TERM);
    manager.wait_for_word("STOPPING=1");
    running.wait_until("it has ended", |running| running.processes().is_empty());
    running.finish().expect_code(0);
}

#[test]
fn a_dispatcher_notifies_that_it_serves_turns_reloads_and_ends() {
    let fleet = Fleet::unstarted_fleet(&[]);
    let mut manager = ServiceManager::new(&fleet, "dispatcher.notify");
    let mut running = manager.start(fleet.dispatcher_role());
    manager.wait_for_word("STATUS=supervisors: 0");
    manager.wait_for_word("READY=1");
    running.wait_for_stderr("ready");
    for _ in 0..3 {
        manager.wait_for_word("WATCHDOG=1");
    }
    fleet.work.write("mappings/broken.json", "{");
    running.signal(Signal::HUP);
    manager.wait_for_word("RELOADING=1");
    manager.wait_for("clock", |reported| reported.starts_with("MONOTONIC_USEC="));
    manager.wait_for_word("READY=1");
    manager.wait_for("status of the refused reload", |reported| {
        reported.starts_with("STATUS=supervisors: 0; last reload refused")
            && reported.contains("broken.json")
    });
    terminate(running, &mut manager);
}

#[test]
fn a_supervisor_notifies_what_it_waits_for_and_serves_when_it_is_welcome() {
    let mut fleet = Fleet::unstarted_fleet(&[]);
    let mut manager = ServiceManager::new(&fleet, "supervisor.notify");
    let running = manager.start(fleet.supervisor_role("one", &[]));
    manager.wait_for("reason", |reported| {
        reported.starts_with("STATUS=waits: the dispatcher at")
    });
    manager.wait_for_word("WATCHDOG=1");
    assert!(!manager.has_received("READY=1"), "{:?}", manager.reported);
    fleet.start_dispatcher();
    manager.wait_for_word("READY=1");
    manager.wait_for_word("STATUS=workers: 1");
    // Only the dispatcher ends. The supervisor keeps running and waits for another dispatcher.
    fleet.dispatcher().signal(Signal::TERM);
    fleet.wait_until_dispatcher_ended(0);
    manager.wait_for_word("STATUS=waits: the dispatcher is silent");
    fleet.start_dispatcher();
    manager.wait_for_word("STATUS=workers: 1");
    assert!(
        !manager.has_received("STOPPING=1"),
        "{:?}",
        manager.reported
    );
    terminate(running, &mut manager);
}
