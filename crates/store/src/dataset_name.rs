//! Names of datasets, and the keys of their records.
//!
//! A record belongs to a dataset. The ids of two datasets are independent, while crawls with the same dataset share
//! its records. The key of a record is the dataset's name, "/", and the record's id. All processes identify the record
//! by its key.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The name of a dataset: 1 to 200 bytes, no "/" and no control characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DatasetName(Arc<str>);

const MAX_BYTES: usize = 200;

impl DatasetName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for DatasetName {
    type Err = String;

    fn from_str(name: &str) -> Result<DatasetName, String> {
        let wrong = match name.len() {
            0 => "it is empty",
            1..=MAX_BYTES if name.contains('/') => "it has a `/`",
            1..=MAX_BYTES if name.contains(char::is_control) => "it has a control character",
            1..=MAX_BYTES => return Ok(DatasetName(name.into())),
            _ => "it has more than 200 bytes",
        };
        let shown: String = name.chars().take(80).flat_map(char::escape_debug).collect();
        Err(format!("`{shown}` is no name of a dataset: {wrong}"))
    }
}

impl fmt::Display for DatasetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The key of a record.
pub fn record_key(dataset: &DatasetName, id: &str) -> String {
    [dataset.as_str(), "/", id].concat()
}

/// The dataset and the id of a record, from its key.
pub fn split_record_key(key: &str) -> (&str, &str) {
    key.split_once('/').unwrap_or(("", key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_taken_apart_at_its_first_slash() {
        let dataset: DatasetName = "db.people".parse().unwrap();
        let key = record_key(&dataset, "https://a.example/1");
        assert_eq!(split_record_key(&key), ("db.people", "https://a.example/1"));
    }

    #[test]
    fn names_that_do_not_fit_into_a_key_are_refused() {
        for name in ["", "a/b", "a\nb", "\u{7f}", &"ä".repeat(101)] {
            assert!(name.parse::<DatasetName>().is_err(), "{name:?}");
        }
        for name in ["people", "db.people", "Menschen im Mai", &"x".repeat(200)] {
            assert_eq!(name.parse::<DatasetName>().unwrap().as_str(), name);
        }
    }
}
