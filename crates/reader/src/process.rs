//! The process that reads one document: it gets the document on standard input, and writes the report to standard
//! output.
//!
//! The process restricts its own rights before it reads the first byte. It catches a panic of a reader and reports it.
//! The parent detects an abort (no memory, no stack), and that the time limit was reached. The process reads only one
//! document, so no document can affect the next one.

use std::io::{self, Read};
use std::panic::{self, AssertUnwindSafe};
use std::thread;

use crate::confine::{self, Confinement};
use crate::formats;
use crate::kind::{Kind, coarse_kind};
use crate::limits::Limits;
use crate::memory;
use crate::report::{self, NotADocument, Report, Status};

/// The stack for reading a document. It is large because readers are recursive, and documents are nested.
pub const STACK_BYTES: usize = 64 << 20;

/// The beginning of the message that Rust writes to standard error before it aborts for lack of memory.
/// [`OUT_OF_STACK`] is a part of its message about a full stack.
pub const OUT_OF_MEMORY: &str = "memory allocation of";
pub const OUT_OF_STACK: &str = "has overflowed its stack";

/// Reads the document from standard input and writes the report to standard output.
///
/// # Errors
///
/// The process could not be confined, so nothing was read; or its parent has ended.
pub fn run(limits: Limits) -> io::Result<()> {
    // Do not print the messages of panics. The parent judges an abort by its message, and a document could choose the
    // text of a panic.
    panic::set_hook(Box::new(|_| {}));
    raise_oom_score();
    confine::limit_resources(&limits, STACK_BYTES as u64)?;
    let confinement = confine::restrict_files()?;
    let reader = thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(move || {
            confine::restrict_calls()?;
            read_and_report(&limits, confinement)
        })?;
    reader
        .join()
        .unwrap_or_else(|_| Err(io::Error::other("the reader panicked")))
}

/// Asks the kernel to end this process first if the machine runs out of memory. If this fails, the document is read all
/// the same.
fn raise_oom_score() {
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
}

fn read_and_report(limits: &Limits, confinement: Confinement) -> io::Result<()> {
    let mut bytes = Vec::new();
    bytes.reserve_exact(usize::try_from(limits.input_bytes).unwrap_or_default());
    io::stdin()
        .lock()
        .take(limits.input_bytes)
        .read_to_end(&mut bytes)?;
    let mut report = read(bytes, limits);
    if memory::has_allocation_failed() {
        report = report.map(correct_for_memory);
    }
    if let Ok(report) = &mut report {
        report.landlock = confinement.landlock;
    }
    report::write(&report, &mut io::stdout().lock())
}

/// Reads a document in this process, which should be confined, on a thread with a stack of [`STACK_BYTES`].
///
/// # Errors
///
/// The bytes are not a document.
pub fn read(bytes: Vec<u8>, limits: &Limits) -> Result<Report, NotADocument> {
    let kind = match panic::catch_unwind(|| formats::detect_kind(&bytes)) {
        Ok(Some(kind)) => kind,
        Ok(None) => return Err(NotADocument),
        Err(panic) => return Ok(report_of_panic(coarse_kind(&bytes), panic.as_ref())),
    };
    let reading = AssertUnwindSafe(|| formats::read(kind, bytes, limits));
    Ok(panic::catch_unwind(reading).unwrap_or_else(|panic| report_of_panic(kind, panic.as_ref())))
}

/// Corrects a report if memory ran out while the document was read: libraries then call it broken, or leave out parts.
fn correct_for_memory(report: Report) -> Report {
    match report.status {
        Status::Broken | Status::NoText => {
            Report::failed(report.kind, Status::TooLarge, TOO_MUCH_MEMORY)
        }
        Status::Text => Report {
            reason: Some("parts of it need more memory than a document may take".into()),
            ..report
        },
        Status::Encrypted | Status::TooLarge => report,
    }
}

const TOO_MUCH_MEMORY: &str = "it needs more memory than a document may take";

fn report_of_panic(kind: Kind, panic: &(dyn std::any::Any + Send)) -> Report {
    Report::failed(kind, Status::Broken, panic_message(panic))
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let words = panic.downcast_ref::<String>().map(String::as_str);
    let words = words.or_else(|| panic.downcast_ref::<&str>().copied());
    format!(
        "the reader gave up: {}",
        words.unwrap_or("it does not say why")
    )
}

/// Makes a report about a reader that ended without one, from its last message on standard error and the signal that
/// killed it.
pub fn report_of_death(kind: Kind, words: &str, signal: i32) -> Report {
    let lacks_memory = words.lines().any(|line| line.starts_with(OUT_OF_MEMORY));
    let (status, reason) = if lacks_memory {
        (Status::TooLarge, TOO_MUCH_MEMORY)
    } else if signal == libc::SIGXCPU {
        (
            Status::TooLarge,
            "it needs more time than a document may take",
        )
    } else if words.contains(OUT_OF_STACK) {
        (Status::Broken, "it nests too deep")
    } else {
        (Status::Broken, "its reader crashed")
    };
    Report::failed(kind, status, reason)
}
