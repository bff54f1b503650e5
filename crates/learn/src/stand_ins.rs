//! Stand-ins: values that an extraction chain reads in place of a missing one. For example, the next row moves up if a
//! row is missing, or the third of several texts becomes the second. A mapping is rarely learned from such pages, so
//! nothing contradicts a chain that would read the stand-in.
//!
//! So a chain that finds a value by its neighbours gets a condition that all known values meet. The text right before
//! the value must be its label, or its row must have all cells. Or there must be as many texts beside the value as on
//! any page with a known value.

mod company;
mod table_row;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use webfill_document::{NodeRef, XPath, XValue};

use self::company::{Company, children_like, company_of, values_of_other_fields};
use self::table_row::RowOfValue;
use crate::anchors::text_condition;
use crate::candidates::{Candidate, has_word};
use crate::evaluate::Reading;
use crate::fold::{Spelling, collapse_white_space, fold_text};
use crate::page_group::Group;
use crate::score::Label;
use crate::survival::Anchor;
use crate::unions::xpath;

/// A condition must be met on at least this many pages with a known value.
const ENOUGH: usize = 3;

/// A label counts only if it is before the value on this many pages. Values of other fields count only if they are
/// beside it on this many.
const SHOWN_BY: usize = 2;

/// The most labels of one field.
const MOST_LABELS: usize = 3;

/// The most extraction chains that are examined for stand-ins.
const MOST_CHAINS: usize = 200;

/// How much lower the burden of an extraction chain with a condition is. The difference decides between two chains that
/// read the same.
const WORTH: f64 = 0.01;

/// Marks that separate several values in one text.
const PARTING_MARKS: &str = "/|\u{b7}\u{2022};,\u{2013}\u{2014}";

/// The place on a page where an extraction chain reads the known value.
struct KnownPlace<'d> {
    page: usize,
    /// The text or element with the value, or the element whose attribute has the value.
    node: NodeRef<'d>,
    is_attribute: bool,
    text: String,
}

/// An extraction chain that may read a stand-in (another value in place of a missing one).
pub(crate) struct RiskyChain {
    pub(crate) number: usize,
    /// The same extraction chain with a condition that prevents this, if there is one.
    pub(crate) safer: Option<Candidate>,
    /// Whether the extraction chain must not be used without the condition.
    pub(crate) is_unusable: bool,
}

/// The likeliest extraction chains that may read a stand-in (another value in place of a missing one).
pub(crate) fn find_risky_chains(
    group: &Group<'_>,
    candidates: &[Candidate],
    readings: &[Vec<Reading>],
    ranking: &[usize],
    labels: &[Label],
) -> Vec<RiskyChain> {
    if group.rows.is_some() {
        return Vec::new();
    }
    let examined = ranking.iter().take(MOST_CHAINS);
    let risky = examined.filter_map(|&number| {
        let (candidate, readings) = (&candidates[number], &readings[number]);
        let (safer, is_unusable) = find_safer_chain(group, candidate, readings, labels)?;
        let safer = safer.map(|mut safer| {
            safer.burden -= WORTH;
            safer.without_condition = Some(number);
            safer
        });
        Some(RiskyChain {
            number,
            safer,
            is_unusable,
        })
    });
    risky.collect()
}

/// Finds the same extraction chain with a condition, and decides whether the chain without it must not be used. `None`
/// if the chain cannot read another value in place of a missing one.
fn find_safer_chain(
    group: &Group<'_>,
    candidate: &Candidate,
    readings: &[Reading],
    labels: &[Label],
) -> Option<(Option<Candidate>, bool)> {
    let expression = xpath(candidate)?;
    let takes_first = takes_first_of_several(readings, labels);
    let is_by_neighbours = finds_by_neighbours(candidate, expression);
    let unnamed = pattern_of(candidate).filter(|pattern| !has_word(pattern));
    if !takes_first && !is_by_neighbours && unnamed.is_none() {
        return None;
    }
    let places = known_places(group, candidate, expression, readings, labels)?;
    if places.len() < ENOUGH {
        return None;
    }
    if let Some(pattern) = unnamed {
        let has_others = has_values_alike(group, &places, labels);
        return has_others.then(|| (with_part_count_condition(candidate, pattern, &places), true));
    }
    let leads_from_label = leads_from_label_alone(group, expression, &places);
    if leads_from_label && !takes_first {
        return None;
    }
    let is_counted = takes_first || candidate.counts_positions();
    let company = is_counted
        .then(|| company_of(group, &places, labels))
        .flatten();
    // An extraction chain that takes the first of several elements reads the next one if the value's own element is
    // empty. So the number of elements does not help.
    let is_of_place = |company: &Company| {
        company.level == 0
            || candidate.anchor != Anchor::Label
            || company.is_read_by(group, expression, &places)
    };
    if takes_first && company.as_ref().is_some_and(is_of_place) {
        return Some((None, true));
    }
    if !is_by_neighbours {
        return None;
    }
    let of_row = condition_of_row(group, &places, labels);
    let is_unusable = of_row.as_ref().is_some_and(|(_, is_unusable)| *is_unusable);
    let of_label = condition_of_label(group, &places).filter(|_| !leads_from_label);
    let mut conditions: Vec<String> = of_row
        .map(|(row, _)| row)
        .into_iter()
        .chain(of_label)
        .collect();
    if conditions.is_empty()
        && let Some(company) = &company
    {
        let condition = company.condition_of_texts_before(&places);
        match condition.or_else(|| company.condition_of_member_count(&places)) {
            Some(condition) => conditions.push(condition),
            None => return Some((None, true)),
        }
    }
    if conditions.is_empty() {
        return None;
    }
    let safer = with_condition(candidate, expression, &conditions.join("]["));
    Some((Some(safer), is_unusable || company.is_some()))
}

/// Whether an extraction chain reads several values on pages with known values, and takes the first of them.
fn takes_first_of_several(readings: &[Reading], labels: &[Label]) -> bool {
    let known = labels.iter().filter(|label| !label.wanted.is_empty());
    known
        .filter(|label| readings[label.page].values.len() > 1)
        .count()
        >= SHOWN_BY
}

/// Whether an extraction chain finds the value by its neighbours, and not by a name of the value's own element.
fn finds_by_neighbours(candidate: &Candidate, expression: &str) -> bool {
    candidate.anchor == Anchor::Path
        || candidate.has_positions()
        || expression.contains("/..")
        || expression.contains("-sibling::")
        || expression.contains("following::")
}

fn pattern_of(candidate: &Candidate) -> Option<&str> {
    let third = candidate.processors.get(2)?;
    (third["type"] == "regex").then(|| third["parameters"]["pattern"].as_str())?
}

/// The places where the extraction chain reads known values; `None` if it cannot be compiled. Pages where it reads
/// something else are left out.
fn known_places<'d>(
    group: &Group<'d>,
    candidate: &Candidate,
    expression: &str,
    readings: &[Reading],
    labels: &[Label],
) -> Option<Vec<KnownPlace<'d>>> {
    let xpath = XPath::compile(expression).ok()?;
    // If further processors follow, the value may be only a part of the text of its place.
    let is_part = candidate.processors.len() > 2;
    let known = labels.iter().filter(|label| {
        !label.wanted.is_empty() && label.credit(&readings[label.page], false) >= 0.99
    });
    let of_page = |label: &Label| {
        let found = group.pages[label.page].document.evaluate(&xpath).ok()?;
        let (node, is_attribute, text) = match found.first()? {
            XValue::Node(node) => (*node, false, collapse_white_space(node.text())),
            XValue::Attribute(one) => (one.owner(), true, collapse_white_space(one.value())),
            _ => return None,
        };
        let read = Spelling::new(&text);
        let is_known = label
            .wanted
            .iter()
            .any(|wanted| wanted.matches(&read) || is_part && read.folded.contains(&wanted.folded));
        is_known.then_some(KnownPlace {
            page: label.page,
            node,
            is_attribute,
            text,
        })
    };
    Some(known.filter_map(of_page).collect())
}

fn with_condition(candidate: &Candidate, expression: &str, condition: &str) -> Candidate {
    let expression = match expression.contains(" | ") {
        true => format!("({expression})[{condition}]"),
        false => format!("{expression}[{condition}]"),
    };
    let mut safer = candidate.clone();
    safer.processors[0] = json!({"type": "xpath", "parameters": {"expression": expression}});
    safer
}

/// The condition that the text right before the value is its label. `None` unless all known values have a label.
fn condition_of_label(group: &Group<'_>, places: &[KnownPlace<'_>]) -> Option<String> {
    let mut shown: BTreeMap<String, usize> = BTreeMap::new();
    for place in places.iter().filter(|place| !place.is_attribute) {
        let (written, text) = group.pages[place.page].text_before(place.node)?;
        if !group.labels.has(text) {
            return None;
        }
        let says = text_condition(written.text(), text, &group.labels)?;
        *shown.entry(says).or_default() += 1;
    }
    let is_shown = shown.len() == 1 || shown.values().all(|pages| *pages >= SHOWN_BY);
    if shown.is_empty() || shown.len() > MOST_LABELS || !is_shown {
        return None;
    }
    let says: Vec<String> = shown.into_keys().collect();
    let before = "preceding::text()[normalize-space(.)][1]";
    Some(format!("{before}[{}]", says.join(" or ")))
}

/// Whether an extraction chain leads from a label to the value, and these two are alone in one element. An example is a
/// table row with a header and a cell. Then no other value can take the value's place, if the chain does not leave the
/// element. The label may be a part of an element's text that is the same on all pages, as in `<h4>Rating
/// (<a>MPAA</a>)</h4>`.
fn leads_from_label_alone(group: &Group<'_>, expression: &str, places: &[KnownPlace<'_>]) -> bool {
    const LONGEST_ROW: usize = 4_000;
    if expression.contains("following::") {
        return false;
    }
    let letters = |text: &str| -> String { text.split_whitespace().collect() };
    let mut whole: BTreeSet<String> = BTreeSet::new();
    places.iter().all(|place| {
        let Some((label, text)) = group.pages[place.page].text_before(place.node) else {
            return false;
        };
        let mut around = std::iter::successors(Some(place.node), |node| node.parent());
        let Some(both) = around.find(|node| node.contains(label)) else {
            return false;
        };
        if both.text().len() > LONGEST_ROW {
            return false;
        }
        let is_named = |label: NodeRef<'_>, text: &str| {
            let says = text_condition(label.text(), text, &group.labels);
            says.is_some_and(|says| expression.contains(&says))
        };
        let is_all = |before: &str| {
            let (all, own) = (
                letters(both.text()),
                letters(before) + &letters(place.node.text()),
            );
            all == own || all.starts_with(&own) && is_only_text(both, place, expression)
        };
        if is_named(label, text) && is_all(label.text()) {
            return true;
        }
        let mut around = std::iter::successors(Some(label), |node| node.parent());
        let Some(named) = around.find(|node| node.parent() == Some(both)) else {
            return false;
        };
        let mut parts = named.children().filter(|part| part.is_text());
        let has_label = parts.any(|part| is_named(part, &collapse_white_space(part.text())));
        whole.insert(letters(named.text()));
        has_label && whole.len() == 1 && is_all(named.text())
    })
}

/// Whether an extraction chain leads to the only text node that is a direct child of an element. Then it reads nothing
/// of the element's other children.
fn is_only_text(element: NodeRef<'_>, place: &KnownPlace<'_>, expression: &str) -> bool {
    let ends_at_text = expression.rsplit_once('/').is_some_and(|(before, step)| {
        let is_text = step.starts_with("text()") || step.starts_with("following-sibling::text()");
        is_text && !before.ends_with('/')
    });
    let is_in_it = place.node.is_text() && place.node.parent() == Some(element);
    ends_at_text && is_in_it && children_like(element, None).len() == 1
}

/// The condition that the value's table row has all cells, and whether rows of some known values lack cells. The
/// condition is needed if other cells belong to other things, as in a table that compares things.
fn condition_of_row(
    group: &Group<'_>,
    places: &[KnownPlace<'_>],
    labels: &[Label],
) -> Option<(String, bool)> {
    let rows: Vec<RowOfValue<'_>> = places
        .iter()
        .map(|place| RowOfValue::from_value_node(place.node, &group.labels))
        .collect::<Option<_>>()?;
    if rows.iter().filter(|row| !row.others.is_empty()).count() < SHOWN_BY {
        return None;
    }
    let whole = rows.iter().filter(|row| row.has_all_cells()).count();
    let first = "ancestor::table[1]/descendant::tr[1]";
    let is_whole = format!("ancestor-or-self::td[1][count(../*)=count({first}/*)]");
    if whole == rows.len() {
        return Some((is_whole, false));
    }
    let number = rows.first()?.cells;
    if rows.iter().all(|row| row.cells == number) {
        return Some((
            format!("ancestor-or-self::td[1][count(../*)={number}]"),
            false,
        ));
    }
    let known: BTreeSet<&str> = labels
        .iter()
        .flat_map(|label| &label.wanted)
        .map(|wanted| wanted.folded.as_str())
        .collect();
    let compares = |row: &&RowOfValue<'_>| {
        row.others
            .iter()
            .any(|other| known.contains(other.as_str()))
    };
    let is_comparison = rows.iter().filter(compares).count() >= SHOWN_BY;
    (is_comparison && whole >= ENOUGH).then_some((is_whole, true))
}

/// Whether the texts with known values also contain values of other fields that look like them.
fn has_values_alike(group: &Group<'_>, places: &[KnownPlace<'_>], labels: &[Label]) -> bool {
    const SHORTEST_TEXT: usize = 4;
    let has_alike = places.iter().filter(|place| {
        let text = fold_text(&place.text);
        let own = labels.iter().filter(|label| label.page == place.page);
        let own: Vec<&str> = own
            .flat_map(|label| &label.wanted)
            .map(|wanted| wanted.folded.as_str())
            .collect();
        let others = values_of_other_fields(&group.pages[place.page], place.page, labels);
        // A value of another field does not count if it is a part of the known value, or contains it.
        let is_beside = |other: &str| {
            let mut own = own.iter();
            own.all(|own| !own.contains(other) && !other.contains(own))
        };
        let is_within = |other: &String| {
            other.len() >= SHORTEST_TEXT && text.contains(other.as_str()) && is_beside(other)
        };
        others
            .iter()
            .any(|other| is_within(other) && own.iter().any(|own| are_alike(own, other)))
    });
    has_alike.count() >= SHOWN_BY
}

/// Whether one value may be mistaken for the other: both have letters, or about equally many digits.
fn are_alike(one: &str, other: &str) -> bool {
    let has_letters = |text: &str| text.contains(char::is_alphabetic);
    let digits = |text: &str| text.bytes().filter(u8::is_ascii_digit).count();
    match (has_letters(one), has_letters(other)) {
        (false, false) => digits(one).abs_diff(digits(other)) < 2,
        (one, other) => one && other,
    }
}

/// The same extraction chain, but only for texts with as many parts as the known text with the most parts. `None` if
/// the pattern has no mark that separates parts: it then takes the first part that looks like a value.
fn with_part_count_condition(
    candidate: &Candidate,
    pattern: &str,
    places: &[KnownPlace<'_>],
) -> Option<Candidate> {
    /// A text with more parts than this is prose.
    const MOST_PARTS: usize = 50;
    // A comma inside braces, as in `{2,4}`, belongs to a repetition of the pattern and separates no parts.
    let mut is_repetition = false;
    let mark = pattern.chars().find(|c| {
        is_repetition = (is_repetition || *c == '{') && *c != '}';
        !is_repetition && PARTING_MARKS.contains(*c)
    })?;
    let counts: Vec<usize> = places
        .iter()
        .map(|place| place.text.matches(mark).count())
        .collect();
    let most = *counts.iter().max()?;
    if most > MOST_PARTS || counts.iter().filter(|count| **count == most).count() < ENOUGH {
        return None;
    }
    let pattern = format!("^(?:[^{mark}]*[{mark}]){{{most}}}[^{mark}]*$");
    let whole = json!({"type": "regex", "parameters": {"pattern": pattern, "group": 0}});
    let mut safer = candidate.clone();
    safer.processors.insert(2, whole);
    Some(safer)
}
