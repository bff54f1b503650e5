//! Statements that replace a document only under a condition.

use mongodb::bson::{DateTime, RawDocumentBuf, rawdoc};

/// The condition that the stored document has no later time in `time_field` than this.
pub(super) fn not_older_condition(time_field: &str, time: DateTime) -> RawDocumentBuf {
    let stored_time = format!("${time_field}");
    rawdoc! {"$gte": [{"$literal": time}, stored_time]}
}

/// The statement that replaces a document if `condition` holds for the stored one. Values from outside are put below
/// `$literal`, where the server does not evaluate them.
pub(super) fn replace_if_statement(
    id: &str,
    condition: RawDocumentBuf,
    replacement: RawDocumentBuf,
) -> RawDocumentBuf {
    rawdoc! {
        "q": {"_id": id},
        "u": [{"$replaceWith": {"$cond": [
            condition,
            {"$literal": replacement},
            "$$ROOT",
        ]}}],
        "upsert": true,
    }
}
