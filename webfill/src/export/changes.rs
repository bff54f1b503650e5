//! `webfill export pages --since CURSOR [--follow]`: the pages that were saved after a cursor, and, with `--follow`,
//! all pages that are saved while the command runs.
//!
//! Each line is a stored page with one more key, `cursor`. With this cursor, a later export continues after the page. A
//! reader that stores the cursor of the last line it has processed, and begins with it the next time, misses no page. A
//! page that was saved again is listed again, in its present version.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use serde_json::Value;
use webfill_service::signals::{self, SignalRequest};
use webfill_store::{Cursor, ExportError, ExportFilter, Store};

/// How often a follower queries the store for more pages.
const POLL_EVERY: Duration = Duration::from_millis(200);

/// How many bytes of lines are buffered. When no line is available, the buffer is written earlier.
const BUFFER_BYTES: usize = 64 << 10;

/// How often a follower reports an unavailable store.
const REPORT_EVERY: Duration = Duration::from_secs(60);

/// Writes the pages that were saved after the cursor `after`. A follower continues until it is
/// interrupted, and waits for an unavailable store.
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
    let mut reported_at: Option<Instant> = None;
    loop {
        let after = lines.cursor.clone();
        let mut each = |cursor, page| lines.write_line(cursor, page);
        match store.changes(&after, filter, &mut each).await {
            Ok(end) => {
                lines.cursor = end;
                reported_at = None;
            }
            Err(ExportError::Output(error)) if is_interrupt(&error) => {}
            Err(ExportError::Store(error)) if follow && error.is_retry() => {
                if reported_at.is_none_or(|reported_at| reported_at.elapsed() > REPORT_EVERY) {
                    webfill_service::say!("webfill: {error}, waiting for it");
                    reported_at = Some(Instant::now());
                }
            }
            Err(error) => return Err(error),
        }
        lines.write_waiting_lines()?;
        if !follow || !signals::sleep_unless_interrupted(POLL_EVERY) {
            return Ok(());
        }
    }
}

/// Whether reading ended because of a signal.
fn is_interrupt(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Interrupted
}

/// Buffers lines, and writes only whole ones to the output.
struct Lines<W> {
    out: W,
    waiting: Vec<u8>,
    /// The cursor after the last buffered or written line.
    cursor: Cursor,
    follow: bool,
}

impl<W: Write> Lines<W> {
    fn write_line(&mut self, cursor: Cursor, mut page: Value) -> io::Result<()> {
        if self.follow && signals::received_request() != SignalRequest::Nothing {
            return Err(io::ErrorKind::Interrupted.into());
        }
        page["cursor"] = Value::from(cursor.to_string());
        serde_json::to_writer(&mut self.waiting, &page)?;
        self.waiting.push(b'\n');
        self.cursor = cursor;
        if self.waiting.len() >= BUFFER_BYTES {
            return self.write_waiting_lines();
        }
        Ok(())
    }

    fn write_waiting_lines(&mut self) -> io::Result<()> {
        let lines = std::mem::take(&mut self.waiting);
        self.out.write_all(&lines)?;
        self.out.flush()
    }
}
