//! Verticals: groups of sites about things of one kind. For each, the fields, their names on sites, and misleading
//! content of the same form.

/// The kind of a field's values, which determines how they are generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The name of a thing, made of one word from each list.
    Name(&'static [&'static str], &'static [&'static str]),
    Person,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Some of these words.
    SomeOf(&'static [&'static str]),
    /// An amount of money between two bounds, in hundredths.
    Money(u32, u32),
    Day,
    /// A number between two bounds, with its unit.
    Number(u32, u32, &'static str),
    Phone,
    Isbn,
    Address,
    Website,
    /// A height in feet and inches.
    Height,
    /// A duration in minutes.
    Duration,
}

/// A part of a page: a field, or misleading content of the same form.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// The table's column for this field. It is empty for misleading content, which belongs to no column.
    pub column: &'static str,
    /// The labels that sites use for this part.
    pub labels: &'static [&'static str],
    /// The property of schema.org for this part; empty if there is none.
    pub property: &'static str,
    pub kind: Kind,
}

pub struct Vertical {
    pub name: &'static str,
    /// The type of the things in schema.org.
    pub schema: &'static str,
    /// The fields of a thing. The first one is its name.
    pub fields: &'static [Part],
    pub beside: &'static [Part],
}

pub(super) const fn part(
    column: &'static str,
    labels: &'static [&'static str],
    property: &'static str,
    kind: Kind,
) -> Part {
    Part {
        column,
        labels,
        property,
        kind,
    }
}
