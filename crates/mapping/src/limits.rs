//! The limits on the cost of one extraction.

/// The limits of one extraction. Anything beyond them is cut, with a warning.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The most values that one processor may yield.
    pub values: usize,
    /// The most rows that one page may have for each rule.
    pub rows: usize,
    /// The most bytes of one row.
    pub row_bytes: usize,
    /// The most bytes of one value. The page's own text is not a value.
    pub value_bytes: usize,
    /// The most bytes of all values that one processor yields together.
    pub step_bytes: usize,
    /// The most bytes of the values of all fields of one page together.
    pub fields_bytes: usize,
    /// The most memory of all trees and all JSON of one page, by an upper estimate, in bytes.
    pub memory_bytes: usize,
    /// The most links that one page may yield.
    pub links: usize,
    /// The most objects, lists and scalars in one JSON text. Larger texts are not parsed.
    pub json_values: usize,
    /// The most visits of values that one JSONPath may need on one JSON text, as estimated before it runs.
    pub json_visits: usize,
    /// The most warnings that are kept.
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
    /// Limits of an extraction that may use this much memory. Three quarters are for trees and JSON. The rest is for
    /// the fields and for the values that processors yield: two steps are in memory at the same time.
    pub fn with_memory(memory_bytes: usize) -> Limits {
        let most = Limits::default();
        let memory = memory_bytes / 4 * 3;
        let document = webfill_document::Limits {
            // The tree of a text takes three times its length.
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
