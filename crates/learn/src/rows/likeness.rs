//! Judges whether an element is a row like the known rows, by the names (tags and classes) of its parts.

use std::collections::BTreeSet;

use webfill_document::NodeRef;

use crate::generated::looks_generated;

/// The most parts of one element whose names are read, and the most levels below it.
const MOST_PARTS: usize = 200;
const DEPTH: usize = 4;

/// Classes that show the position or the state of a row, but not its kind.
const STANDING: [&str; 18] = [
    "odd",
    "even",
    "first",
    "last",
    "alt",
    "active",
    "current",
    "selected",
    "new",
    "featured",
    "highlight",
    "highlighted",
    "top",
    "sale",
    "hot",
    "best",
    "sold",
    "unread",
];

/// Words in classes and ids that sites and ad blockers mark advertisements with.
const OF_ADVERTISEMENTS: [&str; 13] = [
    "ad",
    "ads",
    "advert",
    "adverts",
    "advertisement",
    "advertising",
    "sponsor",
    "sponsored",
    "promo",
    "promotion",
    "promoted",
    "banner",
    "adsbygoogle",
];

/// Words in classes and ids of rows that are headings of other rows.
const OF_HEADS: [&str; 8] = [
    "head", "header", "heading", "thead", "headings", "labels", "total", "totals",
];

/// How similar an element is to the known rows of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Likeness {
    Row,
    /// The element may be a row: it is empty, or lacks many parts that rows have.
    Doubtful,
    Other,
}

/// What known rows look like: the names of all their parts (`all`), and of the parts that every known row has (`core`).
pub(super) struct Model {
    all: BTreeSet<String>,
    core: BTreeSet<String>,
    /// The paths from a row to the elements with its known values.
    of_values: BTreeSet<String>,
    /// The fewest cells that any known table row has.
    fewest_cells: usize,
}

impl Model {
    /// Learns from known rows. Each pair is a row and the elements that contain its known values.
    pub(super) fn new<'d>(rows: &[(NodeRef<'d>, Vec<NodeRef<'d>>)]) -> Model {
        let mut model = Model {
            all: BTreeSet::new(),
            core: BTreeSet::new(),
            of_values: BTreeSet::new(),
            fewest_cells: rows
                .iter()
                .map(|(row, _)| count_cells(*row, "td"))
                .min()
                .unwrap_or(0),
        };
        for (at, (row, values)) in rows.iter().enumerate() {
            let parts = parts(*row);
            model.core = match at {
                0 => parts.clone(),
                _ => model.core.intersection(&parts).cloned().collect(),
            };
            model.all.extend(parts);
            let paths = values.iter().filter_map(|value| path_in_row(*row, *value));
            model.of_values.extend(paths);
        }
        model
    }

    pub(super) fn likeness(&self, element: NodeRef<'_>) -> Likeness {
        if is_empty(element) {
            return Likeness::Doubtful;
        }
        let parts = parts(element);
        let cells_here = count_cells(element, "td");
        let is_of_headers =
            self.fewest_cells > 0 && count_cells(element, "th") > 0 && cells_here == 0;
        // If known rows have more than two cells, a row with a single cell is the heading of a section.
        let is_across = self.fewest_cells > 2 && cells_here == 1 && count_cells(element, "th") == 0;
        if is_of_headers || is_across || self.is_advert_or_heading(&parts) {
            return Likeness::Other;
        }
        let share = |part: usize, all: usize| part as f64 / all.max(1) as f64;
        let inside = share(parts.intersection(&self.all).count(), parts.len());
        let core = share(parts.intersection(&self.core).count(), self.core.len());
        let has_value = self.of_values.is_empty() || !parts.is_disjoint(&self.of_values);
        match (inside, core) {
            _ if inside < 0.5 || !has_value => Likeness::Other,
            _ if inside >= 0.8 && core > 0.5 => Likeness::Row,
            _ => Likeness::Doubtful,
        }
    }

    /// Whether classes of the parts mark an advertisement or a heading, and no known row has such classes.
    fn is_advert_or_heading(&self, parts: &BTreeSet<String>) -> bool {
        let is_head = |part: &&String| part.starts_with("self.") && has_word(part, &OF_HEADS);
        let is_advert = |part: &&String| has_word(part, &OF_ADVERTISEMENTS);
        let is_so = |parts: &BTreeSet<String>| {
            (
                parts.iter().any(|part| is_head(&part)),
                parts.iter().any(|part| is_advert(&part)),
            )
        };
        let (here, known) = (is_so(parts), is_so(&self.all));
        here.0 && !known.0 || here.1 && !known.1
    }

    /// How many parts an element shares with known rows, from 0 to 2. It is the share of the element's parts that any
    /// known row has, plus the share of the parts common to all known rows that the element has.
    pub(super) fn shared_parts_score(&self, element: NodeRef<'_>) -> f64 {
        let parts = parts(element);
        let core = parts.intersection(&self.core).count() as f64 / self.core.len().max(1) as f64;
        parts.intersection(&self.all).count() as f64 / parts.len().max(1) as f64 + core
    }
}

/// Whether an element has no text and no links, images or the like.
pub(super) fn is_empty(element: NodeRef<'_>) -> bool {
    let shows =
        |node: NodeRef<'_>| node.attribute("href").is_some() || node.attribute("src").is_some();
    webfill_values::is_blank(element.text()) && !shows(element) && !element.descendants().any(shows)
}

fn count_cells(element: NodeRef<'_>, tag: &str) -> usize {
    element
        .children()
        .filter(|child| child.tag() == Some(tag))
        .count()
}

/// The classes of an element that show its kind. Classes for positions and states are left out.
pub(super) fn kind_tokens(element: NodeRef<'_>) -> impl Iterator<Item = &str> {
    let classes = element.attribute("class").unwrap_or_default();
    let is_kind = |token: &&str| {
        token.len() <= 60
            && !looks_generated(token)
            && !STANDING.contains(&token.to_lowercase().as_str())
    };
    classes.split_whitespace().take(8).filter(is_kind)
}

fn has_word(part: &str, known: &[&str]) -> bool {
    let names = part.rsplit('/').next().unwrap_or(part);
    let mut words = names.split(['.', '-', '_', '#', ':']).skip(1);
    words.any(|word| known.contains(&word.to_lowercase().as_str()))
}

/// The tag of an element, with its classes that show its kind.
fn tag_and_classes(element: NodeRef<'_>) -> Option<String> {
    let mut name = element.tag()?.to_owned();
    for token in kind_tokens(element) {
        name.push('.');
        name.push_str(token);
    }
    Some(name)
}

fn parts(element: NodeRef<'_>) -> BTreeSet<String> {
    let mut parts = BTreeSet::new();
    let own = kind_tokens(element).map(|token| format!("self.{token}"));
    parts.extend(own);
    let id = element.attribute("id").filter(|id| !looks_generated(id));
    let is_advert = |id: &&str| has_word(&format!("self#{id}"), &OF_ADVERTISEMENTS);
    parts.extend(id.filter(is_advert).map(|id| format!("self#{id}")));
    parts.extend(element.tag().map(str::to_owned));
    add_parts(element, "", 0, &mut parts);
    parts
}

fn add_parts(element: NodeRef<'_>, path: &str, depth: usize, parts: &mut BTreeSet<String>) {
    for child in element.children() {
        if parts.len() >= MOST_PARTS || depth >= DEPTH {
            return;
        }
        let Some(name) = tag_and_classes(child) else {
            continue;
        };
        let path = format!("{path}/{name}");
        add_parts(child, &path, depth + 1, parts);
        parts.insert(path);
    }
}

/// The path of tags and classes from a row to an element inside it. For the row itself, it is only its tag.
fn path_in_row(row: NodeRef<'_>, element: NodeRef<'_>) -> Option<String> {
    if row == element {
        return row.tag().map(str::to_owned);
    }
    let mut names = Vec::new();
    let mut node = element;
    while node != row {
        names.push(tag_and_classes(node)?);
        node = node.parent()?;
    }
    names.reverse();
    names.truncate(DEPTH);
    Some(format!("/{}", names.join("/")))
}
