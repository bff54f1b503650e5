//! The limits on the cost of one extraction.

/// The limits of one extraction. Anything beyond them is cut, with a warning.
#[derive(Debug, Clone)]
pub struct Limits {
    /// How many values one processor may yield.
    pub values: usize,
    /// How many rows one page may have for each row rule.
    pub rows: usize,
    /// The largest row, in bytes.
    pub row_bytes: usize,
    /// The largest value, in bytes. The page's own text may be larger.
    pub value_bytes: usize,
    /// The most bytes that all values of one processor may have together.
    pub step_bytes: usize,
    /// The most bytes that the values of all fields of one page may have together.
    pub fields_bytes: usize,
    /// The most memory for all trees and all JSON of one page, in bytes, as estimated from above.
    pub memory_bytes: usize,
    /// How many links one page may yield.
    pub links: usize,
    /// How many objects, lists and scalars one JSON text may have. A text with more is not parsed.
    pub json_values: usize,
    /// How many values one JSONPath may visit in one JSON text, as estimated before it runs.
    pub json_visits: usize,
    /// How many warnings are kept.
    pub warnings: usize,
    /// The limits on parsing a page, and on evaluating one XPath or CSS selector on it.
    pub document: webfill_document::Limits,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            values: 10_000,
            rows: 100_000,
            row_bytes: 1 << 20,
            value_bytes: 1 << 20,
            step_bytes: 16 << 20,
            fields_bytes: 64 << 20,
            memory_bytes: 1 << 30,
            links: 50_000,
            json_values: 500_000,
            json_visits: 4_000_000,
            warnings: 20,
            document: webfill_document::Limits::default(),
        }
    }
}

impl Limits {
    /// The limits for an extraction that may use this much memory. Three quarters are for trees and JSON. The rest is
    /// for fields and for the values of processors, where the values of two steps are in memory at the same time.
    pub fn with_memory(memory_bytes: usize) -> Limits {
        let most = Limits::default();
        let memory = memory_bytes / 4 * 3;
        let document = webfill_document::Limits {
            // A tree takes about three times the memory of its text.
            input_bytes: most.document.input_bytes.min(memory / 4),
            memory_bytes: memory,
            ..most.document.clone()
        };
        Limits {
            step_bytes: most.step_bytes.min(memory_bytes / 12),
            fields_bytes: most.fields_bytes.min(memory_bytes / 12),
            memory_bytes: memory,
            document,
            ..most
        }
    }
}
