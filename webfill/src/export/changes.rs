//! `webfill export pages --since CURSOR [--follow]`: the pages that were saved since, and those that
//! are saved from now on, for whoever must not miss any.
//!
//! Each line is a stored page with one more key, `cursor`: where to go on behind it. Whoever keeps
//! the cursor of the last line that he has taken over, and begins with it the next time, misses
//! nothing; a page that was saved again since comes again, as it is then.

use std::io::{self, Write};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use webfill_startup::signals::{self, Asked};
use webfill_store::{Cursor, ExportError, ExportFilter, Store};

/// How often a follower looks for more.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// How often someone who waits looks whether he is to stop.
const TICK: Duration = Duration::from_millis(20);

/// Lines are written together up to so many bytes, and at once when there are no more.
const WRITTEN_AT_ONCE: usize = 64 << 10;

/// How often a follower tells that the store is away.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// Writes what was saved since `after`. A follower goes on until it is interrupted; a store that is
/// away for a while is waited for.
pub(super) async fn export(
    store: &dyn Store,
    after: Cursor,
    filter: &ExportFilter,
    follow: bool,
    out: impl Write + Send,
) -> Result<(), ExportError> {
    let mut lines = Lines {
        out,
        waiting: Vec::new(),
        cursor: after,
        follow,
    };
    let mut told: Option<Instant> = None;
    loop {
        let after = lines.cursor.clone();
        let mut each = |cursor, page| lines.take(cursor, page);
        match store.changes(&after, filter, &mut each).await {
            Ok(end) => {
                lines.cursor = end;
                told = None;
            }
            Err(ExportError::Output(error)) if is_interrupt(&error) => {}
            Err(ExportError::Store(error)) if follow && error.is_retry() => {
                if told.is_none_or(|told| told.elapsed() > TOLD_EVERY) {
                    eprintln!("webfill: {error}, waiting for it");
                    told = Some(Instant::now());
                }
            }
            Err(error) => return Err(error),
        }
        lines.write()?;
        if !follow || !waits() {
            return Ok(());
        }
    }
}

/// Waits for the next look; false if there is to be none.
fn waits() -> bool {
    let until = Instant::now() + LOOK_EVERY;
    while signals::asked() == Asked::Nothing {
        if Instant::now() >= until {
            return true;
        }
        // Nothing else is to be done by this thread meanwhile.
        thread::sleep(TICK);
    }
    false
}

/// How the reading is left when a signal has come.
fn is_interrupt(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Interrupted
}

/// Whole lines on their way.
struct Lines<W> {
    out: W,
    waiting: Vec<u8>,
    /// Behind the last line.
    cursor: Cursor,
    follow: bool,
}

impl<W: Write> Lines<W> {
    fn take(&mut self, cursor: Cursor, mut page: Value) -> io::Result<()> {
        if self.follow && signals::asked() != Asked::Nothing {
            return Err(io::ErrorKind::Interrupted.into());
        }
        page["cursor"] = Value::from(cursor.to_string());
        serde_json::to_writer(&mut self.waiting, &page)?;
        self.waiting.push(b'\n');
        self.cursor = cursor;
        if self.waiting.len() >= WRITTEN_AT_ONCE {
            return self.write();
        }
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        let lines = std::mem::take(&mut self.waiting);
        self.out.write_all(&lines)?;
        self.out.flush()
    }
}
