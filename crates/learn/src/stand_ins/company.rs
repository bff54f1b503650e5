//! The siblings of a value (its company), and conditions on their number.

use std::collections::{BTreeMap, BTreeSet};

use webfill_document::{NodeRef, XPath, XValue};

use super::{ENOUGH, KnownPlace, SHOWN_BY};
use crate::anchors::is_valid_step_name;
use crate::fold::{collapse_white_space, fold_text};
use crate::page_group::Group;
use crate::places::Places;
use crate::score::Label;

/// How many levels above a value are searched for values of other fields.
const LEVELS: usize = 4;

/// The most elements or texts beside a value that are counted.
const MOST_MEMBERS: usize = 200;

/// The longest text that is compared with known values, in folded form.
const LONGEST_COMPARED: usize = 80;

/// Sibling elements or texts that a value belongs to, its company. Some of them contain values of other fields.
pub(super) struct Company {
    /// How many levels above the value's own node the siblings are.
    pub(super) level: usize,
    /// The tag of the siblings; `None` if they are text nodes.
    tag: Option<String>,
}

impl Company {
    fn members<'d>(&self, node: NodeRef<'d>) -> Vec<NodeRef<'d>> {
        let mut around = std::iter::successors(Some(node), |node| node.parent());
        let parent = around.nth(self.level).and_then(|node| node.parent());
        parent.map_or_else(Vec::new, |parent| {
            children_like(parent, self.tag.as_deref())
        })
    }

    /// Whether the extraction chain also reads other siblings on pages with known values. Then it would read the next
    /// one if the right one were empty.
    pub(super) fn is_read_by<'d>(
        &self,
        group: &Group<'d>,
        expression: &str,
        places: &[KnownPlace<'d>],
    ) -> bool {
        let Ok(xpath) = XPath::compile(expression) else {
            return false;
        };
        let is_within =
            |member: NodeRef<'d>, node: NodeRef<'d>| member == node || member.contains(node);
        let reads_another = |place: &&KnownPlace<'d>| {
            let members = self.members(place.node).into_iter();
            let others: Vec<NodeRef<'_>> = members
                .filter(|member| !is_within(*member, place.node))
                .collect();
            let found = group.pages[place.page].document.evaluate(&xpath);
            let found = found.unwrap_or_default();
            let nodes = found
                .iter()
                .take(MOST_MEMBERS)
                .filter_map(|value| match value {
                    XValue::Node(node) => Some(*node),
                    XValue::Attribute(one) => Some(one.owner()),
                    _ => None,
                });
            let mut nodes = nodes.skip(1);
            nodes.any(|node| others.iter().any(|other| is_within(*other, node)))
        };
        places.iter().filter(reads_another).count() >= SHOWN_BY
    }

    /// The condition that before the first element there are as many texts as on all pages with known values. It is for
    /// a value that is one of these texts, because only another of them can take its place.
    pub(super) fn condition_of_texts_before(&self, places: &[KnownPlace<'_>]) -> Option<String> {
        if self.level > 0 || self.tag.is_some() {
            return None;
        }
        let counts = places.iter().map(|place| {
            let parent = place.node.parent()?;
            let ends = |child: &NodeRef<'_>| child.is_element() && child.tag() != Some("br");
            let end = parent.children().find(ends)?.position();
            let texts = self.members(place.node).into_iter();
            (place.node.position() < end)
                .then(|| texts.filter(|text| text.position() < end).count())
        });
        let counts: Vec<usize> = counts.collect::<Option<_>>()?;
        let first = *counts.first()?;
        let is_same = counts.len() >= ENOUGH && counts.iter().all(|count| *count == first);
        let test = "text()[normalize-space(.)][not(preceding-sibling::*[not(self::br)])]";
        (is_same && first < MOST_MEMBERS).then(|| format!("count(../{test})={first}"))
    }

    /// The condition that there are as many siblings as on the pages with known values that have the most.
    pub(super) fn condition_of_member_count(&self, places: &[KnownPlace<'_>]) -> Option<String> {
        let counts = places.iter().map(|place| self.members(place.node).len());
        let counts: Vec<usize> = counts.collect();
        let most = *counts.iter().max()?;
        if most == MOST_MEMBERS || counts.iter().filter(|count| **count == most).count() < ENOUGH {
            return None;
        }
        let is_attribute = places.iter().all(|place| place.is_attribute);
        let up = "../".repeat(self.level + 1 + usize::from(is_attribute));
        let test = match &self.tag {
            Some(tag) => tag.as_str(),
            None => "text()[normalize-space(.)]",
        };
        Some(format!("count({up}{test})={most}"))
    }
}

pub(super) fn children_like<'d>(parent: NodeRef<'d>, tag: Option<&str>) -> Vec<NodeRef<'d>> {
    let is_like = |child: &NodeRef<'d>| match tag {
        Some(tag) => child.tag() == Some(tag),
        // As in `normalize-space` of XPath, a text of white space alone does not count.
        None => {
            child.is_text()
                && !child
                    .text()
                    .trim_matches([' ', '\t', '\r', '\n'])
                    .is_empty()
        }
    };
    parent
        .children()
        .filter(is_like)
        .take(MOST_MEMBERS)
        .collect()
}

/// Finds the sibling elements or texts that the values belong to, if some of them contain values of other fields.
pub(super) fn company_of(
    group: &Group<'_>,
    places: &[KnownPlace<'_>],
    labels: &[Label],
) -> Option<Company> {
    let mut shown: BTreeMap<(usize, Option<&str>), usize> = BTreeMap::new();
    for place in places {
        let others = values_of_other_fields(&group.pages[place.page], place.page, labels);
        let mut node = place.node;
        for level in 0..LEVELS {
            let Some(parent) = node.parent() else { break };
            let tag = node.tag();
            if tag.is_some_and(|tag| !is_valid_step_name(tag)) {
                break;
            }
            let members = children_like(parent, tag);
            let is_other = |member: &NodeRef<'_>| {
                *member != node
                    && member.text().len() <= 4 * LONGEST_COMPARED
                    && ends_in_one_of(&fold_text(&collapse_white_space(member.text())), &others)
            };
            if members.iter().any(is_other) {
                *shown.entry((level, tag)).or_default() += 1;
                break;
            }
            node = parent;
        }
    }
    let ((level, tag), pages) = shown.into_iter().max_by_key(|(_, pages)| *pages)?;
    (pages >= SHOWN_BY).then(|| Company {
        level,
        tag: tag.map(str::to_owned),
    })
}

/// Whether a short text is one of these values, or ends with one after a label.
fn ends_in_one_of(text: &str, values: &BTreeSet<String>) -> bool {
    let is_end = |value: &String| {
        text.strip_suffix(value.as_str())
            .is_some_and(|label| label.is_empty() || label.ends_with([':', ' ']))
    };
    text.len() <= LONGEST_COMPARED && (values.contains(text) || values.iter().any(is_end))
}

/// The known values of a page's other fields, in the form for comparing texts.
pub(super) fn values_of_other_fields(
    page: &Places<'_>,
    number: usize,
    labels: &[Label],
) -> BTreeSet<String> {
    let mut values: BTreeSet<String> = page
        .page
        .known
        .values()
        .flatten()
        .map(|value| fold_text(&collapse_white_space(value)))
        .collect();
    let own = labels.iter().filter(|label| label.page == number);
    for wanted in own.flat_map(|label| &label.wanted) {
        values.remove(&wanted.folded);
    }
    values.retain(|value| value.chars().count() > 1);
    values
}
