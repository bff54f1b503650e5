//! A fleet whose dispatcher continues elsewhere: from a backup, from a copy, or with its moved folder.

use std::fs;
use std::path::{Path, PathBuf};

use webfill_tests::Signal;
use webfill_tests::run::Run;

use super::Fleet;

impl Fleet {
    /// Backs up the dispatcher's files and the store while they are in use. Returns the path of the backup.
    pub(crate) fn back_up(&self) -> PathBuf {
        let folder = self.work.path("backup");
        Run::new(["backup", "--store", &self.store_uri()])
            .arg("--state")
            .arg(&self.dispatcher_state)
            .arg(&folder)
            .finish()
            .expect_code(0);
        folder
    }

    /// Starts a dispatcher from a backup, with another address and another state folder. Also checks that a start
    /// without the option `--restored` is refused.
    pub(crate) fn start_restored(&mut self, backup: &Path) {
        self.start_restored_with(backup, |role| role);
    }

    /// Like [`Fleet::start_restored`], but `change` modifies the command of the dispatcher.
    pub(crate) fn start_restored_with(&mut self, backup: &Path, change: impl Fn(Run) -> Run) {
        self.copy_elsewhere(&backup.join("dispatcher.db"));
        let refused = self.dispatcher_role().finish().expect_code(2);
        assert!(refused.stderr.contains("--restored"), "{}", refused.stderr);
        let role = self.dispatcher_role().arg("--restored");
        let mut running = change(role).start();
        running.wait_for_stderr("ready");
        self.dispatcher = Some(running);
    }

    /// Copies a frontier into a new state folder for the next dispatcher, and gives the fleet another address.
    pub(crate) fn copy_elsewhere(&mut self, frontier: &Path) {
        self.host = self.other_address(240);
        let state = self.work.path("state/dispatcher-restored");
        fs::create_dir_all(&state).expect("a folder");
        fs::copy(frontier, state.join("dispatcher.db")).expect("a copy");
        self.dispatcher_state = state;
    }

    /// Starts the dispatcher on a copied frontier, but without the option `--restored` that declares a copy.
    pub(crate) fn start_dispatcher_of_a_copy(&mut self) {
        let mut running = self.dispatcher_role().start();
        running.wait_for_stderr("is a copy, or was moved here");
        running.wait_for_stderr("ready");
        self.dispatcher = Some(running);
    }

    /// A loopback address that stands for another machine. Its second part is between `part` and `part + 6`.
    fn other_address(&self, part: u8) -> String {
        let parts: Vec<&str> = self.host.split('.').collect();
        let number: u8 = parts[1].parse().expect("it is an address");
        let pid = std::process::id() % 250;
        format!("127.{}.{pid}.{}", part + number % 7, parts[3])
    }

    /// Ends the whole fleet. Then starts the dispatcher with the same state folder on another address.
    pub(crate) fn move_dispatcher(&mut self) {
        self.run(&["drain"]).expect_code(0);
        for (_, drained) in self.supervisors.drain(..) {
            drained.finish().expect_code(0);
        }
        self.dispatcher().signal(Signal::TERM);
        self.wait_until_dispatcher_ended(0);
        self.host = self.other_address(248);
        let state = self.work.path("state/dispatcher-moved");
        let copied = std::process::Command::new("cp")
            .arg("-a")
            .args([&self.dispatcher_state, &state])
            .status();
        assert!(copied.expect("there is cp").success());
        self.dispatcher_state = state;
        self.start_dispatcher_of_a_copy();
    }
}
