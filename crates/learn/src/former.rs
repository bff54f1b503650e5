//! What a repair of a mapping knows besides the earlier values: the former extraction chains, which read these values,
//! and the pages where they read nothing.

use serde_json::{Value, json};
use webfill_mapping::PageKind;

use crate::candidates::{Candidates, has_word};
use crate::evaluate::{self, Reading};
use crate::fold::KnownValue;
use crate::page_group::Group;
use crate::places::{PlaceKind, Places};
use crate::score::{Label, count_filled_and_empty};
use crate::types::Page;

/// The processors that an extraction chain finds its place with.
const SELECTING: [&str; 5] = ["xpath", "css", "json_ld", "jsonpath", "meta"];

/// Processors that show nothing about a former extraction chain, because learned chains end with them anyway.
const COMMON: [&str; 3] = ["collapse_whitespace", "trim", "first"];

/// The most values of a page that places are searched for.
const MOST_VALUES: usize = 3;

/// The most places of each value where the steps of the former extraction chain are tried.
const MOST_TRIED: usize = 12;

/// The most places of a page that are used.
const MOST_USED: usize = 4;

/// How many characters of a value are searched for. The former extraction chain may have changed the end of the value.
const BEGINNING: usize = 24;

/// At least this many pages must show that an extraction chain reads nothing if the value is missing.
const ENOUGH: usize = 8;

/// The share of the earlier values that an extraction chain must read again to prove that.
const FOUND: f64 = 0.9;

/// The processors that a field's former extraction chains applied to the text of a place after they had found it.
pub(crate) struct FormerSteps(Vec<Vec<Value>>);

impl FormerSteps {
    /// Takes the steps from a field of the former mapping.
    pub(crate) fn of_field(field: &Value) -> FormerSteps {
        let alternatives = field["alternatives"].as_array().into_iter().flatten();
        let chains = std::iter::once(&field["processors"]).chain(alternatives);
        let mut steps: Vec<Vec<Value>> = Vec::new();
        for chain in chains.filter_map(Value::as_array) {
            let Some((selecting, rest)) = chain.split_first() else {
                continue;
            };
            let is_common = |step: &Value| COMMON.iter().any(|name| step["type"] == *name);
            let is_selecting = SELECTING.iter().any(|name| selecting["type"] == *name);
            if is_selecting && !rest.iter().all(is_common) && !steps.iter().any(|one| one == rest) {
                steps.push(rest.to_vec());
            }
        }
        FormerSteps(steps)
    }

    /// Adds candidates that apply the steps of the former extraction chain to the text of a new place.
    pub(crate) fn add_candidates(
        &self,
        candidates: &mut Candidates,
        group: &Group<'_>,
        labels: &[Label],
        multiple: bool,
    ) {
        for label in labels.iter().filter(|label| !label.wanted.is_empty()) {
            let page = &group.pages[label.page];
            for steps in &self.0 {
                for place in places_for(page, label, steps, multiple) {
                    candidates.add_with_former_steps(
                        label.page,
                        page,
                        place,
                        steps,
                        &group.labels,
                        &group.leaks,
                    );
                }
            }
        }
    }

    /// Whether an extraction chain ends with former steps that have a pattern with words, so that it finds the value by
    /// the words beside it.
    pub(crate) fn find_by_words(&self, processors: &[Value]) -> bool {
        let finds_by_words = |step: &Value| {
            let pattern = step["parameters"]["pattern"].as_str();
            step["type"] == "regex" && pattern.is_some_and(has_word)
        };
        let mut all = self.0.iter();
        all.any(|steps| processors.ends_with(steps) && steps.iter().any(finds_by_words))
    }
}

/// The places of the page from whose text these steps extract known values, the best first.
fn places_for(page: &Places<'_>, label: &Label, steps: &[Value], multiple: bool) -> Vec<usize> {
    let wanted = label.wanted.iter().take(MOST_VALUES);
    let mut places: Vec<(usize, &str)> = Vec::new();
    for wanted in wanted {
        let beginning = beginning_of(wanted);
        let all = page.all.iter().enumerate();
        let mut found: Vec<(usize, &str)> = all
            .filter(|(_, place)| place.text.contains(beginning))
            .filter_map(|(index, place)| {
                let text = match &place.at {
                    PlaceKind::Text(node) | PlaceKind::Element(node) => node.text(),
                    PlaceKind::Attribute(owner, name) => owner.attribute(name)?,
                    _ => return None,
                };
                Some((index, text))
            })
            .collect();
        found.sort_by_key(|(index, text)| (text.len(), *index));
        found.truncate(MOST_TRIED);
        places.extend(found);
    }
    places.sort_unstable();
    places.dedup();
    let texts: Vec<&str> = places.iter().map(|(_, text)| *text).collect();
    let credits = results_of(steps, &texts, page.page);
    let credits = credits
        .iter()
        .map(|reading| label.credit(reading, multiple));
    let mut right: Vec<(f64, usize, usize)> = places
        .iter()
        .zip(credits)
        .filter(|(_, credit)| *credit > 0.0)
        .map(|((index, text), credit)| (credit, text.len(), *index))
        .collect();
    right.sort_by(|one, other| {
        let by_length = (one.1, one.2).cmp(&(other.1, other.2));
        other.0.total_cmp(&one.0).then(by_length)
    });
    right.truncate(MOST_USED);
    right.into_iter().map(|(_, _, index)| index).collect()
}

fn beginning_of(wanted: &KnownValue) -> &str {
    let end = wanted.text.char_indices().nth(BEGINNING);
    &wanted.text[..end.map_or(wanted.text.len(), |(end, _)| end)]
}

/// The values that the steps extract from each text.
fn results_of(steps: &[Value], texts: &[&str], page: &Page) -> Vec<Reading> {
    if texts.is_empty() {
        return Vec::new();
    }
    let page = Page {
        kind: PageKind::Json,
        text: json!(texts).to_string(),
        ..page.clone()
    };
    let chain = |number: usize| {
        let path = format!("$[{number}]");
        let select = json!({"type": "jsonpath", "parameters": {"expression": path}});
        let chain: Vec<Value> = std::iter::once(select)
            .chain(steps.iter().cloned())
            .collect();
        chain
    };
    let chains: Vec<Vec<Value>> = (0..texts.len()).map(chain).collect();
    let chains: Vec<&[Value]> = chains.iter().map(Vec::as_slice).collect();
    let read = evaluate::read_chains(&chains, &[&page]).into_iter();
    read.map(|mut of_page| of_page.pop().unwrap_or_default())
        .collect()
}

/// Whether the pages of a repair show that an extraction chain does not read another value if its own is missing. It
/// must read nearly all earlier values, and nothing on pages that had none. The pages of a repair are not chosen for
/// having known values, so such a chain needs no condition.
pub(crate) fn shows_no_stand_in(readings: &[Reading], labels: &[Label]) -> bool {
    let known = labels.iter().filter(|label| !label.wanted.is_empty());
    let known: Vec<&Label> = known.collect();
    let right = known
        .iter()
        .filter(|label| label.credit(&readings[label.page], false) >= 0.99);
    let (filled, empty) = count_filled_and_empty(readings, labels);
    filled == 0
        && known.len() + empty >= ENOUGH
        && right.count() as f64 >= FOUND * known.len() as f64
}
