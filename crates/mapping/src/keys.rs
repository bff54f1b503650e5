//! The keys of mapping files and the patterns of names. The reader checks files by them, and the schema gives them to
//! editors.

use crate::reader::Key;

pub(crate) const fn required_key(name: &'static str) -> Key {
    Key {
        name,
        required: true,
    }
}

pub(crate) const fn optional_key(name: &'static str) -> Key {
    Key {
        name,
        required: false,
    }
}

/// The keys of a mapping. Editors use `$schema`.
pub(crate) const MAPPING_KEYS: &[Key] = &[
    optional_key("$schema"),
    required_key("name"),
    optional_key("description"),
    optional_key("lane"),
    required_key("url_patterns"),
    optional_key("headers"),
    optional_key("match"),
    optional_key("url_parsers"),
    optional_key("fields"),
    optional_key("rows"),
];
pub(crate) const URL_PATTERN_KEYS: &[Key] = &[
    required_key("type"),
    required_key("pattern"),
    optional_key("description"),
];
pub(crate) const URL_PARSER_KEYS: &[Key] =
    &[optional_key("description"), required_key("processors")];
pub(crate) const FIELD_KEYS: &[Key] = &[
    required_key("name"),
    optional_key("description"),
    optional_key("multiple"),
    optional_key("continues"),
    optional_key("keep_empty"),
    optional_key("processors"),
    optional_key("alternatives"),
];
pub(crate) const STEP_KEYS: &[Key] = &[required_key("type"), optional_key("parameters")];

/// The pattern of field names. They are keys in databases, where `$` and `.` have a special meaning, so both are
/// excluded.
pub(crate) const FIELD_NAME: &str = "^[a-z][a-z0-9_]*$";
/// The pattern of mapping names. They are used in commands and logs, so special characters are excluded.
pub(crate) const MAPPING_NAME: &str = "^[A-Za-z0-9][A-Za-z0-9._-]*$";
