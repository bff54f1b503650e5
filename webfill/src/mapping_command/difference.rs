//! Shows the differences between two texts to people.

use similar::{ChangeTag, TextDiff};

use crate::demand::table::without_control_characters;

/// The number of unchanged lines shown around each change.
const CONTEXT: usize = 2;

/// The lines that differ, with some unchanged lines around them: `-` marks old lines, `+` new ones. Control characters
/// are not printed, because the texts come from pages.
pub fn lines_that_differ(old: &str, new: &str) -> String {
    let difference = TextDiff::from_lines(old, new);
    let groups = difference.grouped_ops(CONTEXT);
    let groups = groups.iter().map(|group| {
        let changes = group.iter().flat_map(|op| difference.iter_changes(op));
        let lines = changes.map(|change| {
            let sign = match change.tag() {
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
                ChangeTag::Equal => ' ',
            };
            format!(
                "{sign} {}",
                without_control_characters(change.value().trim_end_matches('\n'))
            )
        });
        lines.collect::<Vec<_>>().join("\n")
    });
    groups.collect::<Vec<_>>().join("\n  ...\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_far_from_each_change_are_left_out() {
        let old = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj";
        let new = "a\nB\nc\nd\ne\nf\ng\nh\nI\nj";
        let reported = "  a\n- b\n+ B\n  c\n  d\n  ...\n  g\n  h\n- i\n+ I\n  j";
        assert_eq!(lines_that_differ(old, new), reported);
        assert_eq!(lines_that_differ(old, old), "");
    }

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(lines_that_differ("", "a\u{9b}2J\n"), "+ a\u{fffd}2J");
    }
}
