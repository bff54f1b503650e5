//! Generated sites, one for each way of showing values: in tables, lists, cards, sentences, attributes, linked data or
//! scripts. They are in English and German, and have misleading content next to the values.
//!
//! The layout and the number of a page determine everything. Rows change their order, optional parts are missing on
//! some pages, and each page also has values of other things.

mod frame;
mod in_data;
mod in_tables;
mod in_texts;
mod thing;

use webfill_urls::Url;

use crate::sites::{LabelledPage, Site, Values};
use thing::Thing;

/// Makes a page of a layout. Returns its HTML and the values of its record.
type Layout = fn(&mut Thing) -> (String, Values);

const LAYOUTS: [(&str, Layout); 17] = [
    ("rows", in_tables::format_as_rows),
    ("columns", in_tables::format_as_columns),
    ("definitions", in_tables::format_as_definitions),
    ("cards", in_tables::format_as_cards),
    ("nested-lists", in_tables::format_as_nested_lists),
    ("prefixes", in_texts::format_with_prefixes),
    ("sentences", in_texts::format_as_sentences),
    ("line-breaks", in_texts::format_with_line_breaks),
    ("separators", in_texts::format_with_separators),
    ("spans", in_texts::format_with_spans),
    ("long-date", in_texts::format_with_long_date),
    ("linked-data", in_data::format_as_linked_data),
    ("microdata", in_data::format_as_microdata),
    ("attributes", in_data::format_as_attributes),
    ("data-script", in_data::format_as_data_script),
    ("state-script", in_data::format_as_state_script),
    ("meta", in_data::format_as_meta),
];

/// All generated sites, with this many pages each.
///
/// # Panics
///
/// Never: the URLs are constant except for a number.
pub fn made_sites(pages: usize) -> Vec<Site> {
    let sites = LAYOUTS.iter().map(|(name, _)| made_site(name, pages));
    sites.collect()
}

/// One generated site, with this many pages.
///
/// # Panics
///
/// There is no layout of this name.
pub fn made_site(name: &str, pages: usize) -> Site {
    let found = LAYOUTS.iter().find(|(layout, _)| *layout == name);
    let (name, layout) = found.expect("a layout of this name");
    Site {
        name: (*name).to_owned(),
        pages: (0..pages)
            .map(|number| build_labelled_page(name, *layout, number))
            .collect(),
        mapping: None,
    }
}

fn build_labelled_page(name: &str, layout: Layout, number: usize) -> LabelledPage {
    let mut thing = Thing::new(name, number);
    let (html, truth) = layout(&mut thing);
    LabelledPage {
        url: Url::parse(&format!("https://{name}.example/thing/{}", thing.slug()))
            .expect("a slug is a segment of a path"),
        html,
        truth,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_the_same_each_time_and_differ_from_each_other() {
        let (one, other) = (made_sites(10), made_sites(10));
        for (one, other) in one.iter().zip(&other) {
            for (at, page) in one.pages.iter().enumerate() {
                assert_eq!(page.html, other.pages[at].html, "{}", one.name);
                assert!(page.truth.len() >= 3, "{}: {:?}", one.name, page.truth);
                let before = &one.pages[..at];
                let is_new = |former: &LabelledPage| former.truth != page.truth;
                assert!(before.iter().all(is_new), "{}: {at}", one.name);
            }
        }
    }
}
