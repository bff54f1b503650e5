//! Counts with their nouns.

/// A count with its noun, such as `1 site` and `2 sites`.
pub fn count_with_noun(count: usize, one: &str) -> String {
    format!("{count} {}", noun(count, one))
}

pub fn noun(count: usize, one: &str) -> String {
    match count {
        1 => one.to_owned(),
        _ => format!("{one}s"),
    }
}
