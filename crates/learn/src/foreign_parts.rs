//! Excludes foreign parts of pages, which are about another thing: boxes of related products, previous and next
//! articles, old prices. A page that lacks its own value often has one there. So an extraction chain that reads such a
//! part gets a condition that leaves it out, such as `[not(ancestor::aside)]`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use webfill_document::{NodeRef, XPath, XValue};

use crate::anchors::{is_short_class, is_valid_step_name, xpath_literal};
use crate::candidates::Candidate;
use crate::evaluate::Reading;
use crate::fold::{Spelling, collapse_white_space};
use crate::generated::looks_generated;
use crate::guards;
use crate::labels::Leaks;
use crate::page_group::Group;
use crate::places::Places;
use crate::score::Label;
use crate::unions::xpath;

/// How many extraction chains are examined: of the likeliest ones, of each kind of anchor, and of a third group. The
/// third group has chains that count no positions but read another value before the known one, those with the most such
/// pages first.
const MOST_CHAINS: usize = 12;
const MOST_OF_KIND: usize = 3;
const MOST_OF_LATER: usize = 8;

/// The most conditions of one extraction chain.
const MOST_CONDITIONS: usize = 3;

/// The most places on a page that an extraction chain reads, and the most headings of a page that are compared with
/// them.
const MOST_PLACES: usize = 40;
const MOST_HEADINGS: usize = 100;

/// The longest text of a heading that becomes a condition, in bytes.
const LONGEST_HEADING: usize = 60;

/// A condition must exclude foreign values on at least this many pages, because a single page may be an exception.
const SHOWN_BY: usize = 2;

/// A feature of pages without a known value counts only if the probability that it is a coincidence is at most this.
const BY_CHANCE: f64 = 0.05;

/// The heading of a part of a table: a cell over several columns.
const SECTION_OF_TABLE: &str = "th[@colspan]";

/// Elements that often hold content about other things.
const ASIDE: [&str; 10] = [
    "aside", "footer", "nav", "header", "dialog", "template", "form", "del", "s", "strike",
];

/// How much lower the burden of an extraction chain with conditions is. The difference decides between two chains that
/// read the same.
const WORTH: f64 = 0.01;

/// The burden of a condition on the order of siblings. It is lower than the cost of reading an additional, wrong value.
const BY_ORDER: f64 = 0.1;

/// A feature of a place on a page. A condition can exclude the place by it. The kinds are sorted by how long they
/// usually last on a site, the longest first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Feature {
    /// Inside an element with this tag and class.
    Class(String, String),
    Id(String),
    Property(String, String),
    /// Inside an element with this tag, which is one of [`ASIDE`].
    Element(String),
    /// Anywhere after a heading with this text.
    AfterText(String, String),
    /// Inside an element that begins with a heading of this level.
    Headed(String, String),
    /// Anywhere after a heading of this level.
    After(String),
    /// The last heading before the place has this text.
    Under(String, String),
    /// Inside the first of several sibling elements with this tag and class (`First`), or inside a later one (`Later`).
    First(String, String),
    Later(String, String),
}

impl Feature {
    /// The feature as a part of an XPath condition; `None` if XPath cannot express its name or text.
    fn condition(&self) -> Option<String> {
        Some(match self {
            Feature::Class(tag, token) => {
                let token = xpath_literal(&format!(" {token} "))?;
                format!(
                    "ancestor-or-self::{tag}[contains(concat(' ', normalize-space(@class), ' '), {token})]"
                )
            }
            Feature::Id(id) => format!("ancestor-or-self::*[@id={}]", xpath_literal(id)?),
            Feature::Property(tag, name) => {
                format!("ancestor::{tag}[@itemprop={}]", xpath_literal(name)?)
            }
            Feature::Element(tag) => format!("ancestor-or-self::{tag}"),
            Feature::AfterText(tag, text) => {
                format!(
                    "preceding::{tag}[normalize-space(.)={}]",
                    xpath_literal(text)?
                )
            }
            Feature::Headed(tag, heading) => format!("ancestor::{tag}[{heading}]"),
            Feature::After(tag) => format!("preceding::{tag}"),
            Feature::Under(heading, text) => {
                format!(
                    "preceding::{heading}[1][normalize-space(.)={}]",
                    xpath_literal(text)?
                )
            }
            Feature::First(tag, class) => {
                let like = class_step(tag, class)?;
                format!(
                    "ancestor::{like}[not(preceding-sibling::{like})][following-sibling::{like}]"
                )
            }
            Feature::Later(tag, class) => {
                let like = class_step(tag, class)?;
                format!("ancestor::{like}[preceding-sibling::{like}]")
            }
        })
    }

    /// Whether the feature belongs to the elements around a place, not to headings or siblings before them.
    fn is_of_enclosing_element(&self) -> bool {
        !matches!(
            self,
            Feature::AfterText(..)
                | Feature::After(_)
                | Feature::Under(..)
                | Feature::First(..)
                | Feature::Later(..)
        )
    }

    fn is_by_order(&self) -> bool {
        matches!(self, Feature::First(..) | Feature::Later(..))
    }
}

/// An XPath step that selects elements by tag and by the whole `class` attribute.
fn class_step(tag: &str, class: &str) -> Option<String> {
    Some(match class {
        "" => format!("{tag}[not(@class) or @class='']"),
        class => format!("{tag}[@class={}]", xpath_literal(class)?),
    })
}

/// A place on a page that an extraction chain reads.
struct ReadPlace {
    is_known: bool,
    features: BTreeSet<Feature>,
}

/// All places on one page that an extraction chain reads.
struct PageOfChain {
    has_label: bool,
    places: Vec<ReadPlace>,
}

/// The headings of a page, each with its level and text.
type Headings<'d> = Vec<(NodeRef<'d>, &'d str, String)>;

/// For the likeliest extraction chains that also read foreign parts of pages, variants with conditions that exclude
/// these parts.
pub(crate) fn chains_without_foreign_parts(
    group: &Group<'_>,
    candidates: &[Candidate],
    readings: &[Vec<Reading>],
    ranking: &[usize],
    labels: &[Label],
    multiple: bool,
) -> Vec<Candidate> {
    if group.rows.is_some() {
        return Vec::new();
    }
    let headings: Vec<Headings<'_>> = group.pages.iter().map(headings_of).collect();
    let has_shape = guards::have_common_shape(labels);
    let chosen = chains_to_examine(candidates, readings, ranking, labels);
    let chosen = chosen.into_iter().filter_map(|one| {
        let candidate = &candidates[one];
        let expression = xpath(candidate)?;
        let pages = pages_of_chain(group, candidate, expression, labels, &headings)?;
        let conditions = choose_conditions(&pages, multiple, has_shape);
        candidate_with_conditions(one, candidate, expression, &conditions)
    });
    chosen.collect()
}

fn chains_to_examine(
    candidates: &[Candidate],
    readings: &[Vec<Reading>],
    ranking: &[usize],
    labels: &[Label],
) -> BTreeSet<usize> {
    let mut of_kind = BTreeMap::new();
    let likeliest = ranking.iter().enumerate().filter(|(place, one)| {
        let number = of_kind.entry(candidates[**one].anchor).or_insert(0);
        *number += 1;
        *place < MOST_CHAINS || *number <= MOST_OF_KIND
    });
    let mut chosen: BTreeSet<usize> = likeliest.map(|(_, &one)| one).collect();
    let reads_later = |one: usize| {
        let pages = labels.iter().filter(|label| {
            let mut values = readings[one][label.page].values.iter().skip(1);
            values.any(|value| label.wanted.iter().any(|wanted| wanted.matches(value)))
        });
        pages.count()
    };
    let others = (0..candidates.len()).filter(|one| !candidates[*one].counts_positions());
    let mut later: Vec<(usize, usize)> = others.map(|one| (reads_later(one), one)).collect();
    later.retain(|(pages, _)| *pages >= SHOWN_BY);
    later.sort_by_key(|(pages, one)| (std::cmp::Reverse(*pages), *one));
    chosen.extend(later.into_iter().take(MOST_OF_LATER).map(|(_, one)| one));
    chosen
}

fn candidate_with_conditions(
    number: usize,
    candidate: &Candidate,
    expression: &str,
    conditions: &[Feature],
) -> Option<Candidate> {
    let written = conditions.iter().map(Feature::condition);
    let written: Vec<String> = written.collect::<Option<_>>()?;
    if written.is_empty() {
        return None;
    }
    let condition = format!("[not({})]", written.join(" or "));
    let expression = match expression.contains(" | ") {
        true => format!("({expression}){condition}"),
        false => format!("{expression}{condition}"),
    };
    let mut kept_out = candidate.clone();
    kept_out.processors[0] = json!({"type": "xpath", "parameters": {"expression": expression}});
    kept_out.is_by_order = conditions.iter().any(Feature::is_by_order);
    kept_out.burden += if kept_out.is_by_order {
        BY_ORDER
    } else {
        -WORTH
    };
    kept_out.without_condition = Some(number);
    Some(kept_out)
}

fn headings_of<'d>(page: &Places<'d>) -> Headings<'d> {
    let nodes = page.document.root().descendants();
    let headings = nodes.filter_map(|node| {
        let tag = node.tag()?;
        let text = || collapse_white_space(node.text());
        let is_section = || tag == "th" && node.attribute("colspan").is_some();
        match is_heading(tag) {
            true => Some((node, tag, text())),
            false => is_section().then(|| (node, SECTION_OF_TABLE, text())),
        }
    });
    headings.take(MOST_HEADINGS).collect()
}

/// The places that an extraction chain reads on all pages; `None` if they cannot be found.
fn pages_of_chain(
    group: &Group<'_>,
    candidate: &Candidate,
    expression: &str,
    labels: &[Label],
    headings: &[Headings<'_>],
) -> Option<Vec<PageOfChain>> {
    let xpath = XPath::compile(expression).ok()?;
    // If further processors follow, the value may be only a part of the text of its place.
    let is_part = candidate.processors.len() > 2;
    let of_page = |(number, page): (usize, &Places<'_>)| {
        let label = labels.iter().find(|label| label.page == number);
        let label = label.filter(|label| !label.wanted.is_empty());
        let found = page.document.evaluate(&xpath).ok()?;
        let places = found.iter().take(MOST_PLACES).map(|value| {
            let (node, text) = match value {
                XValue::Node(node) => (*node, node.text()),
                XValue::Attribute(attribute) => (attribute.owner(), attribute.value()),
                _ => return None,
            };
            let read = Spelling::new(&collapse_white_space(text));
            let is_known = label.is_some_and(|label| {
                let mut wanted = label.wanted.iter();
                wanted.any(|wanted| {
                    wanted.matches(&read) || is_part && read.folded.contains(&wanted.folded)
                })
            });
            Some(ReadPlace {
                is_known,
                features: features_of(node, &headings[number], &group.leaks),
            })
        });
        let places: Vec<ReadPlace> = places.collect::<Option<_>>()?;
        // If a page has known values and none of them is read, its record may be wrong. Then the page is no evidence.
        let has_label = places.iter().any(|place| place.is_known);
        let is_unclear = label.is_some() && !has_label;
        Some(PageOfChain {
            has_label,
            places: if is_unclear { Vec::new() } else { places },
        })
    };
    group.pages.iter().enumerate().map(of_page).collect()
}

fn features_of(node: NodeRef<'_>, headings: &Headings<'_>, leaks: &Leaks) -> BTreeSet<Feature> {
    let mut features = BTreeSet::new();
    let is_name =
        |name: &&str| !name.is_empty() && name.len() <= LONGEST_HEADING && !looks_generated(name);
    let is_good = |name: &&str| is_name(name) && !leaks.occur_in(name);
    let mut next = Some(node);
    while let Some(around) = next {
        next = around.parent();
        let Some(tag) = around.tag().filter(|tag| is_valid_step_name(tag)) else {
            continue;
        };
        if matches!(tag, "body" | "html") {
            break;
        }
        let class = around.attribute("class").unwrap_or_default();
        for token in class.split_whitespace().filter(is_good) {
            features.insert(Feature::Class(tag.to_owned(), token.to_owned()));
        }
        if let Some(id) = around.attribute("id").filter(is_good) {
            features.insert(Feature::Id(id.to_owned()));
        }
        if ASIDE.contains(&tag) {
            features.insert(Feature::Element(tag.to_owned()));
        }
        if around == node {
            continue;
        }
        if let Some(name) = around.attribute("itemprop").filter(is_good) {
            features.insert(Feature::Property(tag.to_owned(), name.to_owned()));
        }
        features.extend(sibling_order_feature(around, tag, class, leaks));
        let first = around.children().find_map(NodeRef::tag);
        if let Some(first) = first.filter(|first| is_heading(first)) {
            features.insert(Feature::Headed(tag.to_owned(), first.to_owned()));
        }
    }
    let before = headings
        .iter()
        .filter(|(heading, ..)| heading.position() < node.position() && !heading.contains(node));
    let mut last: BTreeMap<&str, &str> = BTreeMap::new();
    for (_, tag, text) in before {
        last.insert(tag, text);
        if *tag == SECTION_OF_TABLE {
            continue;
        }
        features.insert(Feature::After((*tag).to_owned()));
        if !text.is_empty() && text.len() <= LONGEST_HEADING && !leaks.occur_in(text) {
            features.insert(Feature::AfterText((*tag).to_owned(), text.clone()));
        }
    }
    let is_usable =
        |text: &str| !text.is_empty() && text.len() <= LONGEST_HEADING && !leaks.occur_in(text);
    let last = last.into_iter().filter(|(_, text)| is_usable(text));
    features.extend(last.map(|(tag, text)| Feature::Under(tag.to_owned(), text.to_owned())));
    features
}

/// The feature that an element is the first of several siblings with the same tag and class, or a later one.
fn sibling_order_feature(
    node: NodeRef<'_>,
    tag: &str,
    class: &str,
    leaks: &Leaks,
) -> Option<Feature> {
    const MOST_SIBLINGS: usize = 2_000;
    let is_good = class.is_empty() || is_short_class(class) && !leaks.occur_in(class);
    let parent = node.parent().filter(|_| is_good)?;
    let is_like = |child: &NodeRef<'_>| {
        child.tag() == Some(tag) && child.attribute("class").unwrap_or_default() == class
    };
    let mut like = parent.children().take(MOST_SIBLINGS).filter(is_like);
    let first = like.next()?;
    let (tag, class) = (tag.to_owned(), class.to_owned());
    match first == node {
        false => Some(Feature::Later(tag, class)),
        true => like.next().map(|_| Feature::First(tag, class)),
    }
}

fn is_heading(tag: &str) -> bool {
    matches!(tag, "h2" | "h3" | "h4" | "h5" | "h6")
}

/// Chooses features that exclude places not known to be right. They never exclude a known value that the extraction
/// chain reads.
fn choose_conditions(pages: &[PageOfChain], multiple: bool, has_shape: bool) -> Vec<Feature> {
    let mut chosen: Vec<Feature> = Vec::new();
    while chosen.len() < MOST_CONDITIONS {
        let best = best_feature(pages, &chosen, multiple);
        let foreign = || foreign_feature(pages, &chosen, multiple);
        let Some(feature) = best.or_else(|| foreign().filter(|_| !has_shape)) else {
            break;
        };
        chosen.push(feature);
    }
    chosen
}

/// The places of a page that are excluded neither by a chosen feature nor by `more`.
fn remaining_places<'p>(
    page: &'p PageOfChain,
    chosen: &'p [Feature],
    more: Option<&'p Feature>,
) -> impl Iterator<Item = &'p ReadPlace> {
    page.places.iter().filter(move |place| {
        let mut conditions = chosen.iter().chain(more);
        !conditions.any(|feature| place.features.contains(feature))
    })
}

/// How many known values and how many other values a page still yields.
fn count_known_and_others(
    page: &PageOfChain,
    chosen: &[Feature],
    more: Option<&Feature>,
    multiple: bool,
) -> (usize, usize) {
    let others = remaining_places(page, chosen, more).filter(|place| !place.is_known);
    let known = remaining_places(page, chosen, more).filter(|place| place.is_known);
    let is_first = || {
        remaining_places(page, chosen, more)
            .next()
            .is_some_and(|place| place.is_known)
    };
    match multiple {
        true => (known.count(), others.count()),
        false => (usize::from(is_first()), others.count()),
    }
}

/// The feature that excludes the most other values on pages with a known value. It must exclude no known value.
fn best_feature(pages: &[PageOfChain], chosen: &[Feature], multiple: bool) -> Option<Feature> {
    let labelled: Vec<&PageOfChain> = pages.iter().filter(|page| page.has_label).collect();
    let before: Vec<(usize, usize)> = labelled
        .iter()
        .map(|page| count_known_and_others(page, chosen, None, multiple))
        .collect();
    let mut features: BTreeMap<&Feature, usize> = BTreeMap::new();
    for page in &labelled {
        let others = remaining_places(page, chosen, None).filter(|place| !place.is_known);
        let of_page: BTreeSet<&Feature> = others.flat_map(|place| &place.features).collect();
        for feature in of_page {
            *features.entry(feature).or_default() += 1;
        }
    }
    let mut best: Option<(usize, &Feature)> = None;
    for (feature, _) in features.into_iter().filter(|(_, pages)| *pages >= SHOWN_BY) {
        let mut gain = 0;
        let keeps_all = labelled.iter().zip(&before).all(|(page, (known, others))| {
            let (known_left, others_left) =
                count_known_and_others(page, chosen, Some(feature), multiple);
            gain += (known_left - (*known).min(known_left)) * MOST_PLACES + others - others_left;
            known_left >= *known
        });
        if keeps_all && gain > best.map_or(0, |(gain, _)| gain) {
            best = Some((gain, feature));
        }
    }
    best.map(|(_, feature)| feature.clone())
}

/// A feature that many values on pages without a known value have, but no known value has. Pages with this feature
/// probably lack a value of their own.
fn foreign_feature(pages: &[PageOfChain], chosen: &[Feature], multiple: bool) -> Option<Feature> {
    let (labelled, others): (Vec<&PageOfChain>, Vec<&PageOfChain>) =
        pages.iter().partition(|page| page.has_label);
    let right = labelled
        .iter()
        .flat_map(|page| remaining_places(page, chosen, None));
    let right: BTreeSet<&Feature> = right
        .filter(|place| place.is_known)
        .flat_map(|place| &place.features)
        .collect();
    let read: Vec<&PageOfChain> = others
        .into_iter()
        .filter(|page| remaining_places(page, chosen, None).next().is_some())
        .collect();
    let mut counts: BTreeMap<&Feature, usize> = BTreeMap::new();
    for page in &read {
        let most = if multiple { MOST_PLACES } else { 1 };
        let places = remaining_places(page, chosen, None).take(most);
        let of_page: BTreeSet<&Feature> = places.flat_map(|place| &place.features).collect();
        for feature in of_page
            .into_iter()
            .filter(|one| one.is_of_enclosing_element() && !right.contains(one))
        {
            *counts.entry(feature).or_default() += 1;
        }
    }
    let is_foreign = |count: usize| {
        let by_chance = (0..count)
            .map(|one| (read.len() - one) as f64 / (read.len() + labelled.len() - one) as f64);
        count >= SHOWN_BY && by_chance.product::<f64>() < BY_CHANCE
    };
    let foreign = counts.into_iter().filter(|(_, count)| is_foreign(*count));
    // If several features occur on the most pages, the first kind is chosen.
    let best = foreign.rev().max_by_key(|(_, count)| *count);
    best.map(|(feature, _)| feature.clone())
}
