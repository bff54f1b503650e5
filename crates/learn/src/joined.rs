//! Lists in one text: several known values that the page separates by the same few characters.

use serde_json::{Value, json};

use crate::fold::KnownValue;
use crate::places::{PlaceKind, Places};

/// The most texts of one page that are used as lists of joined values.
const MOST: usize = 12;

/// The most known values that are searched for in a text.
const MOST_VALUES: usize = 30;

/// The most bytes between two values of such a list.
const LONGEST: usize = 8;

/// Words that may join the last value of a list to the others.
const WORDS: [&str; 6] = ["and", "und", "et", "y", "e", "or"];

/// A text that contains several known values.
pub(crate) struct JoinedValues {
    /// The index of the text among the page's places.
    pub(crate) place: usize,
    /// The range from the first value to the last, as byte indexes in the text.
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The texts between the values.
    separators: Vec<String>,
}

impl JoinedValues {
    /// The processor that splits the text into its values.
    pub(crate) fn split_processor(&self) -> Value {
        if let [only] = self.separators.as_slice() {
            return json!({"type": "split", "parameters": {"separator": only}});
        }
        let all: Vec<String> = self
            .separators
            .iter()
            .map(|one| regex::escape(one))
            .collect();
        json!({"type": "split", "parameters": {"separator": all.join("|"), "regex": true}})
    }
}

/// The texts of a page that contain at least two of these values, with only separators between them.
pub(crate) fn find(page: &Places<'_>, wanted: &[KnownValue]) -> Vec<JoinedValues> {
    if wanted.len() < 2 {
        return Vec::new();
    }
    let places = page.all.iter().enumerate();
    let texts = places.filter(|(_, place)| !matches!(place.at, PlaceKind::ScriptKey(..)));
    let found = texts.filter_map(|(at, place)| match_joined(at, &place.text, wanted));
    found.take(MOST).collect()
}

fn match_joined(place: usize, text: &str, wanted: &[KnownValue]) -> Option<JoinedValues> {
    let mut spans: Vec<(usize, usize)> = Vec::new();
    for value in wanted.iter().take(MOST_VALUES) {
        let start = text.find(value.text.as_str());
        spans.extend(start.map(|start| (start, start + value.text.len())));
    }
    // A text that lacks most of the known values contains the others by coincidence.
    if spans.len() < 2 || spans.len() * 2 < wanted.len() {
        return None;
    }
    spans.sort_unstable();
    let mut separators: Vec<String> = Vec::new();
    for pair in spans.windows(2) {
        let between = text.get(pair[0].1..pair[1].0)?;
        if !is_separator(between) {
            return None;
        }
        if !separators.iter().any(|one| one == between) {
            separators.push(between.to_owned());
        }
    }
    // Longer separators come first: `, and ` must be tried before `, `.
    separators.sort_by_key(|one| (usize::MAX - one.len(), one.clone()));
    let (first, last) = (spans.first()?, spans.last()?);
    (separators.len() <= 3).then_some(JoinedValues {
        place,
        start: first.0,
        end: last.1,
        separators,
    })
}

/// Whether the text between two values consists of marks and spaces, or is a joining word such as `and`.
fn is_separator(between: &str) -> bool {
    let has_mark = between
        .chars()
        .any(|c| !c.is_alphanumeric() && !c.is_whitespace());
    let word = between.trim_matches(|c: char| !c.is_alphanumeric());
    let is_word = WORDS.contains(&word.to_lowercase().as_str()) && between.len() >= word.len() + 2;
    !between.is_empty() && between.len() <= LONGEST && (is_word || (word.is_empty() && has_mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_split(text: &str, values: &[&str]) -> Option<(String, Value)> {
        let wanted: Vec<KnownValue> = values
            .iter()
            .filter_map(|value| KnownValue::new(value))
            .collect();
        let found = match_joined(0, text, &wanted)?;
        Some((
            text[found.start..found.end].to_owned(),
            found.split_processor()["parameters"].clone(),
        ))
    }

    #[test]
    fn values_between_separators_are_taken_apart() {
        let (span, split) = find_split("by Ada; Mary; Emmy.", &["Emmy", "Ada", "Mary"]).unwrap();
        assert_eq!(span, "Ada; Mary; Emmy");
        assert_eq!(split, json!({"separator": "; "}));
        let (_, split) = find_split("Ada, Mary and Emmy", &["Ada", "Mary", "Emmy"]).unwrap();
        assert_eq!(split, json!({"separator": " and |, ", "regex": true}));
        let (_, split) = find_split("red|blue", &["red", "blue"]).unwrap();
        assert_eq!(split, json!({"separator": "|"}));
    }

    #[test]
    fn values_in_a_sentence_are_no_list() {
        assert_eq!(find_split("Ada met Mary", &["Ada", "Mary"]), None);
        assert_eq!(find_split("Ada Mary", &["Ada", "Mary"]), None);
        assert_eq!(
            find_split("Ada, Mary", &["Ada", "Mary", "x", "y", "z"]),
            None
        );
        assert_eq!(find_split("AdaMary", &["Ada", "Mary"]), None);
    }
}
