//! Runs a command, such as all tests, with one MongoDB server for all processes that the command starts. Each test has
//! its own database on this server, and no test waits until a server has started. Exits with the status of the command.
//!
//! ```text
//! with-mongod COMMAND [ARGUMENT]...
//! ```
//!
//! No server is started if `MONGODB_URI` names one, or if this machine has no server program. In the latter case, the
//! command itself reports the tests that it skips.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode};

use webfill_test_mongod::{Mongod, SHARED_SERVER, is_available};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let Some(program) = words.next() else {
        eprintln!("usage: with-mongod COMMAND [ARGUMENT]...");
        return ExitCode::from(2);
    };
    let mut command = Command::new(&program);
    command.args(words);
    let has_server = std::env::var_os("MONGODB_URI").is_some() || !is_available();
    let server = (!has_server).then(Mongod::start);
    if let Some(server) = &server {
        command.env(SHARED_SERVER, server.uri(""));
    }
    match command.status() {
        Ok(status) => {
            let killed_by = |signal| 128 + signal;
            let code = status.code().or(status.signal().map(killed_by));
            ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
        }
        Err(error) => {
            eprintln!("with-mongod cannot start {}: {error}", program.display());
            ExitCode::from(127)
        }
    }
}
