//! Pages in the order they were saved.

use std::io;

use async_trait::async_trait;
use serde_json::Value;

use crate::cursor::Cursor;
use crate::store::{ExportError, ExportFilter};

/// Reads all pages in the order they were saved, for programs that follow a store.
#[async_trait]
pub trait Changes: Send + Sync {
    /// Passes the pages that were saved after the cursor `after` to `each`, in the order they became visible, each with
    /// the cursor that continues after it. Returns the cursor that continues after all pages that were visible when the
    /// call began.
    ///
    /// A reader that continues from cursor to cursor misses no page that [`Pages::save`](crate::Pages::save) has
    /// acknowledged, whatever the number of concurrent writers, and whichever process dies. A page that is saved again
    /// is passed again, in its present version, so a reader may not see every version. The same version may be passed
    /// twice if its save was interrupted and repeated.
    ///
    /// A reader gets an error if pages that it has not read were [dropped](crate::Retention::drop_old), even while it
    /// is reading. The cursor at the beginning continues with the oldest page in the order.
    async fn changes(
        &self,
        after: &Cursor,
        filter: &ExportFilter,
        each: &mut (dyn FnMut(Cursor, Value) -> io::Result<()> + Send),
    ) -> Result<Cursor, ExportError>;
}
