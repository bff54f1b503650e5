//! Guards: last steps of an extraction chain that drop values that do not look like the known ones. A page that lacks
//! the value may have something else in its place, and then it is better to read nothing.

use std::collections::BTreeSet;

use regex::Regex;
use serde_json::{Value, json};

use crate::evaluate::Reading;
use crate::field::LearnedField;
use crate::fold::{Spelling, is_cut_off};
use crate::number_guard;
use crate::page_group::Group;
use crate::places::Places;
use crate::score::{Label, reads_truncated, trusted_labels};
use crate::shape::{self, Lengths};

/// How many different known values are needed to show a common form.
const ENOUGH: usize = 3;

/// The share of all read values that a guard's pattern must match. It is below 1, because the known values may be too
/// few to show all forms.
const MATCHED: f64 = 0.95;

/// The same share for texts that are one number. It is lower, because other texts in their place, such as ranges and
/// `unknown`, are no further form of the values.
const MATCHED_NUMBERS: f64 = 0.7;

/// A telephone number may be this many times longer than the longest known one.
const LONGER: f64 = 1.5;

/// A telephone number may have this many digits fewer than the shortest known one (`SHORTER`), but never fewer than
/// `SHORTEST`.
const SHORTER: usize = 3;
const SHORTEST: usize = 4;

/// A processor that drops values unlike the known ones.
pub(crate) struct Guard {
    pub(crate) processor: Value,
    has_shape: bool,
    accepts: Box<dyn Fn(&str) -> bool>,
}

impl Guard {
    fn from_type(name: &str, accepts: fn(&str) -> bool) -> Guard {
        Guard {
            processor: json!({"type": "validate", "parameters": {"type": name}}),
            has_shape: true,
            accepts: Box::new(accepts),
        }
    }

    fn from_pattern(pattern: String) -> Option<Guard> {
        let regex = Regex::new(&pattern).ok()?;
        Some(Guard {
            processor: json!({"type": "validate", "parameters": {"pattern": pattern}}),
            has_shape: true,
            accepts: Box::new(move |text| regex.is_match(text)),
        })
    }

    pub(crate) fn accepts(&self, text: &str) -> bool {
        (self.accepts)(text)
    }

    /// Whether the guard checks for a form that hardly any other text has. Many texts are one number or not truncated.
    pub(crate) fn has_shape(&self) -> bool {
        self.has_shape
    }

    /// Whether the guard accepts every correct value that the candidate `one` reads.
    pub(crate) fn keeps_correct_values(&self, found: &LearnedField, one: usize) -> bool {
        correct_values(found, one).all(|value| (self.accepts)(&value.text))
    }
}

/// The guard for an extraction chain, judged by its readings, if it needs one.
pub(crate) fn guard_for_readings(found: &LearnedField, one: usize) -> Option<Guard> {
    shape_guard(found, one).or_else(|| truncation_guard(found, one))
}

/// A guard that drops truncated values, if the extraction chain reads any.
fn truncation_guard(found: &LearnedField, one: usize) -> Option<Guard> {
    reads_truncated(&found.labels, &found.readings[one], found.multiple).then(|| Guard {
        processor: json!({"type": "validate", "parameters": {"pattern": WHOLE}}),
        has_shape: false,
        accepts: Box::new(|text| !is_cut_off(text)),
    })
}

/// A guard that drops texts of the layout, such as breadcrumbs. These are not known values, but nearly all pages with a
/// known value have them, and in the same elements. A value that several rows share may be among the related links of
/// most pages, but its own pages have it in other elements, too.
pub(crate) fn layout_guard(found: &LearnedField, one: usize, group: &Group<'_>) -> Option<Guard> {
    /// With fewer pages that have a known value, texts of the layout cannot be recognised.
    const LEAST: usize = 5;
    const SHARE: f64 = 0.8;
    const MOST_TEXTS: usize = 5;
    const LONGEST: usize = 60;
    if group.rows.is_some() {
        return None;
    }
    let known: Vec<&Label> = trusted_labels(&found.labels);
    let is_known = |value: &Spelling| {
        let mut wanted = known.iter().flat_map(|label| &label.wanted);
        wanted.any(|wanted| wanted.matches(value))
    };
    let is_of_layout = |value: &Spelling| {
        let pages = known.iter().filter(|label| {
            let page = &group.pages[label.page];
            !page.find_text(&value.folded).is_empty()
        });
        pages.count() as f64 >= SHARE * known.len() as f64
    };
    let is_elsewhere = |page: usize, value: &Spelling| {
        let of_known = known.iter();
        let usual: BTreeSet<String> = of_known
            .flat_map(|label| element_paths(&group.pages[label.page], &value.folded))
            .collect();
        !element_paths(&group.pages[page], &value.folded).is_subset(&usual)
    };
    let unlabelled =
        (0..group.pages.len()).filter(|page| known.iter().all(|label| label.page != *page));
    let select = value_selector(found);
    let read = unlabelled.flat_map(|page| {
        let values = select(&found.readings[one][page]).iter();
        values.map(move |value| (page, value))
    });
    let mut texts: Vec<&str> = read
        .filter(|(_, value)| value.text.len() <= LONGEST && !is_known(value))
        .filter(|(page, value)| is_of_layout(value) && !is_elsewhere(*page, value))
        .map(|(_, value)| value.text.as_str())
        .collect();
    texts.sort_unstable();
    // A text that is read on a single page does not count: it may be the page's own value, which other pages show among
    // their related links.
    texts = texts
        .chunk_by(|a, b| a == b)
        .filter(|same| same.len() > 1)
        .map(|same| same[0])
        .collect();
    if known.len() < LEAST || texts.is_empty() {
        return None;
    }
    let texts: Vec<String> = texts
        .into_iter()
        .take(MOST_TEXTS)
        .map(regex::escape)
        .collect();
    let pattern = format!("^(?!(?:{})$)", texts.join("|"));
    let regex = Regex::new(&format!("^(?:{})$", texts.join("|"))).ok()?;
    Some(Guard {
        processor: json!({"type": "validate", "parameters": {"pattern": pattern}}),
        has_shape: true,
        accepts: Box::new(move |text| !regex.is_match(text)),
    })
}

/// The elements of a page with this folded text, each as its tags and classes from the root.
fn element_paths(page: &Places<'_>, folded: &str) -> BTreeSet<String> {
    let path = |&place: &usize| {
        let element = page.element_of(place)?;
        let around = std::iter::successors(Some(element), |node| node.parent());
        let names = around.filter_map(|node| {
            let class = node.attribute("class").unwrap_or_default();
            Some(format!("{}.{class}", node.tag()?))
        });
        Some(names.collect::<Vec<_>>().join("<"))
    };
    page.find_text(folded).iter().filter_map(path).collect()
}

/// Whether the known values have a common shape, as codes and mail addresses do. Then other values are recognised by
/// their shape, wherever they are.
pub(crate) fn have_common_shape(labels: &[Label]) -> bool {
    let values = labels.iter().flat_map(|label| &label.wanted);
    let values: BTreeSet<&str> = values.map(|value| value.text.as_str()).collect();
    let is_of_type = |(_, accepts): &(&str, IsOfType)| values.iter().all(|value| accepts(value));
    values.len() >= ENOUGH
        && (TYPES.iter().any(is_of_type)
            || shape::code_pattern(values.iter().copied(), Lengths::Proven).is_some())
}

/// Whether a processor is the guard that drops truncated texts.
pub fn drops_truncated_texts(processor: &Value) -> bool {
    processor["parameters"]["pattern"] == WHOLE
}

/// A pattern that matches texts that do not end in a mark of truncation.
const WHOLE: &str = r"^(?![\s\S]*(?:\.\.\.|…|\[\s*(?:\.\.\.|…)\s*\]|\(\s*(?:\.\.\.|…)\s*\))\s*$)";

/// A guard that accepts only values with the common shape of the known ones, if there is such a shape.
fn shape_guard(found: &LearnedField, one: usize) -> Option<Guard> {
    let mut values: Vec<&str> = correct_values(found, one)
        .map(|value| value.text.as_str())
        .collect();
    values.sort_unstable();
    values.dedup();
    if values.len() < ENOUGH {
        return None;
    }
    for (name, accepts) in TYPES {
        if values.iter().all(|value| accepts(value)) {
            return Some(Guard::from_type(name, *accepts));
        }
    }
    let matches = |guard: &Guard, share: f64| {
        let all = found.readings[one].iter().flat_map(value_selector(found));
        let all: Vec<bool> = all.map(|value| (guard.accepts)(&value.text)).collect();
        let matched = all.iter().filter(|matched| **matched).count();
        matched as f64 >= share * all.len() as f64
    };
    let is_phone = |value: &&str| Spelling::new(value).into_phone_digits().is_some();
    let code = match values.iter().all(is_phone) {
        // Telephone numbers are written in many ways, so the pattern of codes would be too strict for them.
        true => None,
        false => shape::code_pattern(values.iter().copied(), Lengths::Proven),
    };
    let patterns = [code.map(anchor_pattern), loose_phone_pattern(&values)];
    let mut guards = patterns
        .into_iter()
        .flatten()
        .filter_map(Guard::from_pattern);
    guards
        .find(|guard| matches(guard, MATCHED))
        .or_else(|| number_guard(&values).filter(|guard| matches(guard, MATCHED_NUMBERS)))
}

/// A guard that accepts only texts that are one number, if the known values are.
fn number_guard(values: &[&str]) -> Option<Guard> {
    let guard = Guard::from_pattern(number_guard::pattern(values)?)?;
    Some(Guard {
        has_shape: false,
        ..guard
    })
}

type IsOfType = fn(&str) -> bool;

const TYPES: &[(&str, IsOfType)] = &[("email", is_email), ("url", is_url), ("date", is_iso_date)];

fn anchor_pattern(code: String) -> String {
    format!("^{code}$")
}

/// A function that gives the first value of a reading, or all values if the field is a list.
fn value_selector(found: &LearnedField) -> impl Fn(&Reading) -> &[Spelling] + use<> {
    let most = if found.multiple { usize::MAX } else { 1 };
    move |reading| &reading.values[..reading.values.len().min(most)]
}

fn correct_values(found: &LearnedField, one: usize) -> impl Iterator<Item = &Spelling> {
    let of_label = move |label: &'_ crate::score::Label| {
        let reading = &found.readings[one][label.page];
        let is_known = |value: &&Spelling| label.wanted.iter().any(|wanted| wanted.matches(value));
        let known: Vec<&Spelling> = reading.values.iter().filter(is_known).collect();
        known
    };
    found.labels.iter().flat_map(of_label)
}

/// A pattern of telephone numbers in several notations: digits with marks between them, and about as many digits as the
/// known numbers.
fn loose_phone_pattern(values: &[&str]) -> Option<String> {
    let is_mark = |c: char| " +-./(),:".contains(c);
    let is_number = |value: &&str| value.chars().all(|c| c.is_ascii_digit() || is_mark(c));
    let digits = |value: &&str| value.bytes().filter(u8::is_ascii_digit).count();
    let least = values.iter().map(digits).min()?.saturating_sub(SHORTER);
    let longest = values.iter().map(|value| value.len()).max()?;
    // Without such a sign, numbers of seven digits need not be telephone numbers: another page may have a smaller
    // number.
    let is_dialled = |value: &&str| {
        value.starts_with(['0', '+']) || value.chars().any(|c| is_mark(c) && !".,".contains(c))
    };
    if !values.iter().all(is_number) || !values.iter().any(is_dialled) || least < SHORTEST {
        return None;
    }
    let most = (longest as f64 * LONGER) as usize;
    Some(format!(r"^[\d +./(),:-]{{{least},{most}}}$"))
}

fn is_email(text: &str) -> bool {
    let Some((name, domain)) = text.split_once('@') else {
        return false;
    };
    let is_plain = |c: char| !c.is_whitespace() && !"@<>,;:\"()[]".contains(c);
    !name.is_empty()
        && domain.contains('.')
        && !domain.starts_with('.')
        && !domain.ends_with('.')
        && text.chars().filter(|c| *c != '@').all(is_plain)
}

fn is_url(text: &str) -> bool {
    (text.starts_with("http://") || text.starts_with("https://")) && !text.contains(' ')
}

fn is_iso_date(text: &str) -> bool {
    text.len() == 10
        && text.char_indices().all(|(at, c)| match at {
            4 | 7 => c == '-',
            _ => c.is_ascii_digit(),
        })
}
