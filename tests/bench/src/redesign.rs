//! Generated redesigns of real pages: the same values in another layout, as when a site is rebuilt.
//!
//! A redesign is a composition of changes found in real redesigns, selected by a seed. Changes depend on the kind of an
//! element (its tag and class), never on its position, so all pages of a site are changed alike. The values stay on the
//! page as visible text. Only [`Change::Formats`] writes some of them in another form, and [`Redesign::rewrite_value`]
//! returns that form.

mod choices;
mod formats;
mod headings;
mod inserts;
mod labels;
mod metadata;
mod names;
mod order;
mod spacing;
mod tables;
#[cfg(test)]
mod tests;
mod tree;
mod wrappers;

use choices::Choices;
use tree::Tree;
pub use tree::visible_text;

/// A kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Change {
    /// Tables turn into blocks or description lists.
    Tables,
    /// Description lists become tables.
    DescriptionLists,
    /// Headings get another level, or become blocks.
    Headings,
    /// Rows and blocks get another order.
    Order,
    /// Blocks get wrappers or lose them, and texts are marked up.
    Wrappers,
    /// Labels are reworded.
    Labels,
    /// Prices, dates and telephone numbers are written in another form.
    Formats,
    /// Microdata is dropped or added.
    Microdata,
    /// JSON-LD is dropped, added, or laid out in another way.
    JsonLd,
    /// The title and `meta` elements are changed.
    Meta,
    /// A new block repeats values of the page.
    Sidebar,
    /// Classes are renamed, or hashed as build tools do.
    Classes,
    /// Ids are dropped or renamed.
    Ids,
    /// Other attributes are dropped or renamed.
    Attributes,
    /// White space is changed.
    Spacing,
}

type Make = fn(&mut Tree, &Choices);

/// All changes, in the order they are applied. Changes that read class names come before those that rename classes.
const CHANGES: [(Change, Make); 15] = [
    (Change::Labels, labels::reword_labels),
    (Change::Formats, formats::rewrite_formats),
    (Change::Order, order::rearrange_elements),
    (Change::DescriptionLists, tables::lists_to_tables),
    (Change::Tables, tables::tables_to_blocks),
    (Change::Headings, headings::change_heading_levels),
    (Change::Microdata, metadata::change_microdata),
    (Change::JsonLd, metadata::change_json_ld),
    (Change::Meta, metadata::change_head),
    (Change::Wrappers, wrappers::wrap_elements),
    (Change::Sidebar, inserts::add_sidebar),
    (Change::Ids, names::rename_ids),
    (Change::Attributes, names::rename_attributes),
    (Change::Classes, names::rename_classes),
    (Change::Spacing, spacing::change_spacing),
];

/// One redesign of one site.
#[derive(Debug, Clone)]
pub struct Redesign {
    choices: Choices,
    changes: Vec<Change>,
}

impl Redesign {
    /// Chooses a redesign by a seed. `strength`, from 0 to 1, is the probability of each kind of change. At least one
    /// is made.
    pub fn new(seed: u64, strength: f64) -> Redesign {
        let choices = Choices::new(seed);
        let mut changes: Vec<Change> = CHANGES
            .iter()
            .map(|(change, _)| *change)
            .filter(|change| choices.decide(&format!("change {change:?}"), strength))
            .collect();
        if changes.is_empty() {
            changes.push(choices.pick("the only change", &CHANGES).0);
        }
        Redesign { choices, changes }
    }

    /// A redesign that makes exactly these changes.
    pub fn with_changes(seed: u64, changes: &[Change]) -> Redesign {
        Redesign {
            choices: Choices::new(seed),
            changes: changes.to_vec(),
        }
    }

    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// The redesigned page.
    pub fn apply(&self, html: &str) -> String {
        let mut tree = Tree::parse(html);
        for (change, make) in CHANGES {
            if self.changes.contains(&change) {
                make(&mut tree, &self.choices);
            }
        }
        tree.to_html(self.changes.contains(&Change::Spacing))
    }

    /// The value as the new layout writes it, provided that the value was a whole text in the old layout.
    pub fn rewrite_value(&self, old: &str) -> String {
        match self.changes.contains(&Change::Formats) {
            true => formats::rewrite_text(old, &self.choices),
            false => old.to_owned(),
        }
    }
}

/// The page after a redesign that [`Redesign::new`] chooses by these arguments.
pub fn redesign(html: &str, seed: u64, strength: f64) -> String {
    Redesign::new(seed, strength).apply(html)
}
