//! The limits on the cost of one extraction.

/// The limits of one extraction. What exceeds them is cut, with a warning.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Values that one processor may yield.
    pub values: usize,
    /// Bytes of one value; the page's own text is not a value.
    pub value_bytes: usize,
    /// Bytes of all values that one processor yields together.
    pub step_bytes: usize,
    /// Links that one page may yield.
    pub links: usize,
    /// Objects, lists and scalars in one JSON text; larger texts are not parsed.
    pub json_values: usize,
    /// Visits that one JSONPath may need on one JSON text, as estimated before it is tried.
    pub json_visits: usize,
    /// Warnings that are kept.
    pub warnings: usize,
    /// Bounds of parsing a page and of evaluating one XPath or CSS selector on it.
    pub document: webfill_document::Limits,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            values: 10_000,
            value_bytes: 1 << 20,
            step_bytes: 16 << 20,
            links: 50_000,
            json_values: 500_000,
            json_visits: 4_000_000,
            warnings: 20,
            document: webfill_document::Limits::default(),
        }
    }
}
