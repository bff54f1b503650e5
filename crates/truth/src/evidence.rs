//! The input of the judgement: claims (values that chains, the extraction rules, read on pages) and known values of
//! records.

/// Everything that is known about a table before it is judged.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// The fields. A field's number is its index in this list.
    pub fields: &'a [FieldShape],
    pub claims: &'a [Claim],
    pub known: &'a [Known],
    /// The text of each value; a value's number is its index in this list. If the list is empty, values are not judged
    /// by their form.
    pub texts: &'a [&'a str],
    /// How the chain (the extraction rule) of each layout and field was chosen. Entries may be missing.
    pub chosen: &'a [Chosen],
}

/// How the main chain (the extraction rule) of a layout was chosen for a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chosen {
    pub layout: u32,
    pub field: u32,
    /// How many known values the extraction chain reads (`reads`), and how often it reads something else or nothing
    /// instead (`misses`).
    pub reads: u32,
    pub misses: u32,
    /// The share of pages where a second extraction chain reads the same. The second chain has another kind of anchor,
    /// and reads known values too.
    pub agreement: f64,
    /// The place on the page that the extraction chain reads, as a number. Places named by the same words, such as a
    /// label, have the same number in all layouts, because sites with the same tools or standards name places alike.
    pub place: Option<u32>,
}

/// How many true values an item (a field of a row) has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldShape {
    Single,
    /// A list. Whether a value belongs to it is decided for each value separately.
    Several,
}

/// One value that one chain (an extraction rule) read on one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Claim {
    /// The item: a field of a row. All claims of an item have the same field.
    pub item: u32,
    /// An index in [`Evidence::fields`].
    pub field: u32,
    /// The number of the value; see [`Evidence::texts`]. Values that differ only in spelling have the same number.
    pub value: u32,
    pub page: u32,
    /// The site: a source with its own accuracy. Other sites may copy from it.
    pub site: u32,
    /// The layout of the site; the precision of each layout is measured separately. Layout numbers are unique across
    /// all sites. A site with one layout may use its own number.
    pub layout: u32,
    /// The number of the extraction chain. The main chain of a field has a smaller number than its alternatives.
    pub rule: u32,
    /// The kind of the extraction chain's anchor (how it finds its place): a label, an id, linked data, a position.
    /// Chains of different kinds fail together less often than chains of one kind.
    pub anchor: u8,
}

/// A value that a record had before the pages were read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Known {
    pub item: u32,
    pub value: u32,
    /// Whether the extraction chains were chosen without this value. Only such values measure the precision of sites:
    /// chains read the others because they were chosen to read them.
    pub held_out: bool,
    pub presence: Presence,
    /// The share of the column's other values that are also on the pages of this row. If it is high, the value is
    /// probably on the pages by chance, which is weak evidence.
    pub chance: f32,
}

/// Whether a known value is anywhere on the pages of its row. This shows whether the extraction chain or the record is
/// wrong: if the value is elsewhere on the page, the chain has missed it; if it is nowhere, the record is probably
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
