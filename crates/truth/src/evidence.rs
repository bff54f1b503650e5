//! The input of the judgement: claims that chains read on pages, and known values of records.

/// Everything that is known about a table.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// The fields. A field's number is its index in this list.
    pub fields: &'a [FieldShape],
    pub claims: &'a [Claim],
    pub known: &'a [Known],
    /// The text of each value; a value's number is its index in this list. If the list is empty, values are not judged
    /// by their form.
    pub texts: &'a [&'a str],
    /// How the chain of each layout and field was chosen. Entries may be missing.
    pub chosen: &'a [Chosen],
}

/// How the first chain of a layout was chosen for a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chosen {
    pub layout: u32,
    pub field: u32,
    /// How many known values the chain reads, and for how many it reads something else or nothing.
    pub reads: u32,
    pub misses: u32,
    /// The share of pages on which a chain by another kind of anchor reads the same. That chain must also read known
    /// values.
    pub agreement: f64,
    /// The place that the chain reads, as a number. Places named by the same words have the same number in all layouts,
    /// because sites with the same tools or standards share places.
    pub place: Option<u32>,
}

/// How many true values an item (a field of a row) has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldShape {
    Single,
    /// A list. Each value is decided separately.
    Several,
}

/// One value that one chain read on one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Claim {
    /// The item: a field of a row. All claims of an item have the same field.
    pub item: u32,
    /// An index in [`Evidence::fields`].
    pub field: u32,
    /// The number of the value. Values that differ only in form have the same number.
    pub value: u32,
    pub page: u32,
    /// The site: a source with its own accuracy, from which other sites may copy.
    pub site: u32,
    /// The layout of the site, whose precision is measured separately. Layout numbers are unique across all sites. A
    /// site with one layout may use its own number.
    pub layout: u32,
    /// The number of the chain. A field's first chain in the mapping has a smaller number than its alternatives.
    pub rule: u32,
    /// The kind of the chain's anchor: a label, an id, linked data, a position. Chains of different kinds fail
    /// together less often than those of one kind.
    pub anchor: u8,
}

/// One value of a record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Known {
    pub item: u32,
    pub value: u32,
    /// Whether the chains were chosen without this value. Only held-out values measure the precision of sites. Others
    /// agree because the chains were chosen to read them.
    pub held_out: bool,
    pub presence: Presence,
    /// The share of other values of the column that are also on these pages. If it is high, finding this value there is
    /// weak evidence.
    pub chance: f32,
}

/// Whether a known value is anywhere on the pages of its row. This is the best evidence whether chain or record is
/// wrong. If the value is elsewhere on the page, the chain has missed it; if it is nowhere, the record is probably
/// wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Presence {
    /// The pages were not searched for the value.
    Unknown,
    OnPage,
    Absent,
    /// The value is nowhere on the pages, and differs from what was read by one typing error.
    Misspelt,
}
