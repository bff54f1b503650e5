//! The evidence: claims of pages and known values of records.

/// Everything that is known of a table.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// The fields; their numbers are the places in this list.
    pub fields: &'a [FieldShape],
    pub claims: &'a [Claim],
    pub known: &'a [Known],
    /// The text of each value, whose number is its place here. May be empty: then no value is judged by its form.
    pub texts: &'a [&'a str],
    /// How chains were chosen. May lack some.
    pub chosen: &'a [Chosen],
}

/// How the first chain of a layout was chosen for a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chosen {
    pub layout: u32,
    pub field: u32,
    /// Known values that it reads, and known values in whose place it reads something else or nothing.
    pub reads: u32,
    pub misses: u32,
    /// The share of pages on which a chain by an anchor of another kind reads the same. It reads known values, too.
    pub agreement: f64,
    /// The place that the chain reads, the same number for the same words in all layouts: sites that are made with the
    /// same tools, or follow one standard, have the same.
    pub place: Option<u32>,
}

/// How many truths an item of a field has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldShape {
    Single,
    /// A list: each value is decided by itself.
    Several,
}

/// One value that one chain read on one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Claim {
    /// The field of a row. All claims of an item have the same field.
    pub item: u32,
    /// A place in [`Evidence::fields`].
    pub field: u32,
    /// Values that are equal but for their form have the same number.
    pub value: u32,
    pub page: u32,
    /// A source with an accuracy, which others may copy.
    pub site: u32,
    /// A layout of the site, whose precision is measured by itself. Its number is its own over all sites; a site
    /// with one layout may give the number of the site.
    pub layout: u32,
    /// The chain. A field's first chain in the mapping has a smaller number than its alternatives.
    pub rule: u32,
    /// The kind of the chain's anchor: a label, an id, linked data, a position. Chains of different kinds do not
    /// go wrong together as often as those of one kind.
    pub anchor: u8,
}

/// One value of a record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Known {
    pub item: u32,
    pub value: u32,
    /// Whether the chains were chosen without this value. Only such values measure the precision of sites; the
    /// others agree because the chains were chosen to agree.
    pub held_out: bool,
    pub presence: Presence,
    /// The share of other values of the column that stand on these pages as well. Where most do, that this one does says
    /// little.
    pub chance: f32,
}

/// Whether a known value stands anywhere on the pages of its row. This decides best who is wrong: a value that
/// stands elsewhere on the page was missed by the chain, and one that stands nowhere is probably wrong itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Presence {
    /// Nobody has searched for it.
    Unknown,
    OnPage,
    Absent,
    /// It stands nowhere, and what was read differs from it by one slip of the keyboard.
    Misspelt,
}
