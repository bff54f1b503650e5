//! The message about a field that records want but no mapping extracts.

use std::collections::BTreeSet;
use std::path::Path;

use webfill_api::nearest_known_name;

use crate::summary::escape_and_shorten;

/// A field name with at most this many edits from a mapping's field is reported as a possible misspelling.
const MISSPELT: usize = 2;

pub fn unfillable_message(field: &str, extracted: &BTreeSet<String>, mappings: &Path) -> String {
    let text = format!(
        "records want the field `{}`, but no mapping in {} has it",
        escape_and_shorten(field),
        mappings.display()
    );
    match nearest_known_name(field, extracted.iter().map(String::as_str), MISSPELT) {
        Some(near) => format!("{text}; did you mean `{near}`?"),
        None if extracted.is_empty() => format!("{text}: none has any field"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_suggests_the_most_similar_field() {
        let extracted = BTreeSet::from(["email".to_owned(), "name".to_owned()]);
        let message =
            |field, extracted| unfillable_message(field, extracted, Path::new("etl-mappings"));
        assert_eq!(
            message("emial", &extracted),
            "records want the field `emial`, but no mapping in etl-mappings has it; did you mean `email`?"
        );
        assert_eq!(
            message("founded", &extracted),
            "records want the field `founded`, but no mapping in etl-mappings has it"
        );
        assert!(message("name", &BTreeSet::new()).ends_with("none has any field"));
    }
}
