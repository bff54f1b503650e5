//! The known values of a group of pages. They come from records, or from statements of a person, which count more.

use std::collections::BTreeSet;

use webfill_document::{XPath, XValue};

use crate::fold::KnownValue;
use crate::places::Places;
use crate::score::Label;
use crate::types::{FieldStatement, Page};

/// The most known values of one field on one page that are used.
const MOST_VALUES: usize = 100;

/// The fields to learn, sorted by name.
pub(crate) fn fields_to_learn(pages: &[Page], wanted: &[String]) -> Vec<String> {
    let known = pages
        .iter()
        .flat_map(|page| page.known.keys().chain(page.said.keys()));
    let known: BTreeSet<&String> = known.collect();
    match wanted {
        [] => known.into_iter().cloned().collect(),
        wanted => wanted
            .iter()
            .filter(|name| known.contains(name))
            .cloned()
            .collect(),
    }
}

/// All known values of these pages, folded (in the form for comparing spellings).
pub(crate) fn folded_values<'p>(pages: impl Iterator<Item = &'p Page>) -> BTreeSet<String> {
    let mut folded = BTreeSet::new();
    for page in pages {
        let said = page.said.values().flat_map(|said| &said.values);
        let known = page.known.values().flatten();
        for value in known.chain(said).take(1_000) {
            folded.extend(KnownValue::new(value).map(|wanted| wanted.folded));
        }
    }
    folded
}

/// The known values of a field for each page (labels), and the places that a person has pointed at, as pairs of page
/// and place.
pub(crate) fn labels_and_pointed_places(
    pages: &[Places<'_>],
    field: &str,
) -> (Vec<Label>, Vec<(usize, usize)>) {
    let mut labels = Vec::new();
    let mut pointed = Vec::new();
    for (number, places) in pages.iter().enumerate() {
        let said = places.page.said.get(field);
        let mut label = Label {
            page: number,
            ..Label::default()
        };
        if let Some(said) = said {
            apply_statement(&mut label, said, places, number, &mut pointed);
        }
        if !label.is_certain {
            let known = places.page.known.get(field).into_iter().flatten();
            label.wanted = known_values(known);
            label.wanted.retain(|value| !label.rejected.contains(value));
        }
        if !label.wanted.is_empty() || said.is_some() {
            labels.push(label);
        }
    }
    (labels, pointed)
}

fn known_values<'v>(values: impl Iterator<Item = &'v String>) -> Vec<KnownValue> {
    let mut all: Vec<KnownValue> = Vec::new();
    for one in values
        .take(MOST_VALUES)
        .filter_map(|value| KnownValue::new(value))
    {
        if !all.iter().any(|other| other.folded == one.folded) {
            all.push(one);
        }
    }
    all
}

fn apply_statement(
    label: &mut Label,
    said: &FieldStatement,
    places: &Places<'_>,
    number: usize,
    pointed: &mut Vec<(usize, usize)>,
) {
    label.wanted = known_values(said.values.iter());
    label.is_absent = said.absent;
    label.rejected = known_values(said.rejected.iter());
    let at = |path: &String| -> Option<usize> {
        let found = places.document.evaluate(&XPath::compile(path).ok()?).ok()?;
        match found.first()? {
            XValue::Node(node) => places.find_node(*node),
            XValue::Attribute(attribute) => {
                places.find_attribute(attribute.owner(), attribute.name())
            }
            _ => None,
        }
    };
    let text = |place: usize| KnownValue::new(&places.all[place].text);
    let nodes: Vec<usize> = said.nodes.iter().take(MOST_VALUES).filter_map(at).collect();
    if said.values.is_empty() {
        label
            .wanted
            .extend(nodes.iter().filter_map(|&place| text(place)));
    }
    pointed.extend(nodes.into_iter().map(|place| (number, place)));
    let wrong = said.rejected_nodes.iter().take(MOST_VALUES);
    let wrong = wrong.filter_map(at).filter_map(text);
    let right = &label.wanted;
    label
        .rejected
        .extend(wrong.filter(|one| !right.contains(one)).collect::<Vec<_>>());
    label.is_certain = said.absent || !label.wanted.is_empty();
}
