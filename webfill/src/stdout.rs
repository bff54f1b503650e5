//! Prints results on standard output.

use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::path::Path;

use webfill_service::{Fault, terminal};

/// Prints a text or JSON with a line break. If the reader has closed the pipe, as `head` does, this is not an error.
pub fn print(result: impl Display) -> Result<(), Fault> {
    let mut stdout = terminal::printable_stdout();
    let written = writeln!(stdout, "{result}").and_then(|()| stdout.flush());
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Fault::unwritable(Path::new("standard output"), &error))
        }
        _ => Ok(()),
    }
}
