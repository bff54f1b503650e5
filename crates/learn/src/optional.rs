//! Optional words: only some pages have them beside the value, in the same text: `Was $20.00 Now $15.00` and `$12.50`,
//! `Canon A20 New!` and `Nikon S3000`. An extraction chain that drops them reads both kinds of pages.
//!
//! A page with known values and the words shows them, and a page without them shows that they are optional.

use serde_json::Value;

use crate::candidates::{Candidate, pattern_with_any_digits};
use crate::evaluate::Reading;
use crate::labels::Leaks;
use crate::places::Place;
use crate::score::Label;

/// The longest optional words.
const LONGEST: usize = 40;

const BEGIN: &str = "^(?:";
const END: &str = ")?$";

/// Patterns that extract the value both from a text with words before or after it, and from a text without them.
pub(crate) fn patterns(
    place: &Place<'_>,
    start: usize,
    length: usize,
    leaks: &Leaks,
) -> Vec<String> {
    let (before, after) = (&place.text[..start], &place.text[start + length..]);
    let is_optional = |words: &str| {
        words.len() <= LONGEST && words.contains(char::is_alphabetic) && !leaks.occur_in(words)
    };
    // A sign next to the value, such as a currency sign, is also there if the words are not.
    let signs = before.trim_end_matches(|c: char| c.is_alphanumeric() || c.is_whitespace());
    let signs_at = signs.trim_end_matches(|c: char| !c.is_alphanumeric() && !c.is_whitespace());
    let (words, sign) = match signs.len() == before.len() {
        true => before.split_at(signs_at.len()),
        false => (before, ""),
    };
    if after.is_empty() && words.ends_with(' ') && is_optional(words) {
        let (words, sign) = (pattern_with_any_digits(words.trim()), regex::escape(sign));
        return vec![format!(r"{BEGIN}{words}\s+)?{sign}(.+?)$")];
    }
    if before.is_empty() && after.starts_with(' ') && is_optional(after) {
        let words = pattern_with_any_digits(after.trim());
        return vec![format!(r"^(.+?)(?:\s+{words}{END}")];
    }
    Vec::new()
}

/// Whether a processor drops optional words, which only some pages have beside the value.
pub(crate) fn is_optional(processor: &Value) -> bool {
    let pattern = processor["parameters"]["pattern"].as_str();
    pattern.is_some_and(|pattern| pattern.starts_with(BEGIN) || pattern.ends_with(END))
}

/// Whether known values show that the words are optional: the extraction chain also reads the value of a page that
/// lacks them.
pub(crate) fn is_shown(candidate: &Candidate, readings: &[Reading], labels: &[Label]) -> bool {
    let mut others = labels
        .iter()
        .filter(|label| !candidate.found_on.contains(&label.page));
    others
        .any(|label| !label.wanted.is_empty() && label.credit(&readings[label.page], false) >= 0.99)
}
