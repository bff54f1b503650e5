//! Blocks that belong together: the cells of a row, a term and its definition, an item of an ordered list and its
//! rank.
//!
//! Blocks are compared without their position. So if two rows swap values, or two items swap ranks, no block differs.
//! This module compares rows as a whole. It does so only if the blocks do not differ, and only for rows whose blocks
//! all exist before and after. Other differences were found before, or have no meaning.

use std::collections::BTreeMap;

use crate::blocks::Block;
use crate::unsteady::Unsteady;

/// The most blocks and bytes of a row. Larger rows belong to the layout of a page rather than to a table.
const MOST_BLOCKS: usize = 12;
const MOST_BYTES: usize = 400;

/// Rows that exist only in the old page, and rows that exist only in the new one, in page order.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct MovedRows {
    pub(crate) gone: Vec<String>,
    pub(crate) come: Vec<String>,
    /// The places of the blocks of these rows.
    pub(crate) places: Vec<u32>,
}

/// The blocks of text that form one row.
type Row<'b> = Vec<&'b Block>;

/// Finds rows that consist of the same texts as before, but in another combination or with another rank. Places in
/// `masks`, where that has no meaning, are ignored.
pub(crate) fn find_moved_rows(old: &[Block], new: &[Block], masks: &[&Unsteady]) -> MovedRows {
    let is_steady = |row: &Row<'_>| {
        let is_unsteady = |block: &&Block| masks.iter().any(|masks| masks.is_unsteady(block));
        !row.iter().any(is_unsteady)
    };
    let rows =
        |blocks| -> Vec<Row<'_>> { group_rows(blocks).into_iter().filter(is_steady).collect() };
    let (mut old, mut new) = (rows(old), rows(new));
    let (ranked, ranked_now) = (ranked_texts(&old), ranked_texts(&new));
    let is_compared = |row: &Row<'_>| {
        let place = row[0].place;
        row[0].rank == 0 || ranked.get(&place) == ranked_now.get(&place)
    };
    old.retain(is_compared);
    new.retain(is_compared);
    let (mut gone, mut come) = (rows_without(&old, &new), rows_without(&new, &old));
    let (texts, other_texts) = (count_texts(&gone), count_texts(&come));
    let is_among = |texts: &BTreeMap<&str, usize>, row: &Row<'_>| {
        row.iter().all(|block| texts.contains_key(&*block.text))
    };
    gone.retain(|row| is_among(&other_texts, row));
    come.retain(|row| is_among(&texts, row));
    if count_texts(&gone) != count_texts(&come) {
        return MovedRows::default();
    }
    let mut places: Vec<u32> = gone.iter().flatten().map(|block| block.place).collect();
    places.sort_unstable();
    places.dedup();
    MovedRows {
        gone: gone.iter().map(row_text).collect(),
        come: come.iter().map(row_text).collect(),
        places,
    }
}

/// The texts that have a rank, by place. If these texts differ, ranks shift, and the comparison of blocks reports that.
fn ranked_texts<'b>(rows: &[Row<'b>]) -> BTreeMap<u32, Vec<&'b str>> {
    let mut ranked: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for block in rows.iter().flatten().filter(|block| block.rank != 0) {
        ranked.entry(block.place).or_default().push(&block.text);
    }
    ranked.values_mut().for_each(|texts| texts.sort_unstable());
    ranked
}

/// Groups blocks into rows. Only rows with several blocks or a rank are returned.
fn group_rows(blocks: &[Block]) -> Vec<Row<'_>> {
    let mut rows: BTreeMap<u32, Row<'_>> = BTreeMap::new();
    for block in blocks.iter().filter(|block| block.row != 0) {
        rows.entry(block.row).or_default().push(block);
    }
    let is_row = |row: &Row<'_>| {
        let bytes: usize = row.iter().map(|block| block.text.len()).sum();
        let says_more = row.len() > 1 || row[0].rank != 0;
        says_more && row.len() <= MOST_BLOCKS && bytes <= MOST_BYTES
    };
    rows.into_values().filter(is_row).collect()
}

/// The row as text for people: `rank. text`, or its texts separated by `|`.
fn row_text(row: &Row<'_>) -> String {
    let texts: Vec<&str> = row.iter().map(|block| &*block.text).collect();
    let text = texts.join(" | ");
    match row[0].rank {
        0 => text,
        rank => format!("{rank}. {text}"),
    }
}

/// The rows that `others` does not contain, or contains less often.
fn rows_without<'b>(rows: &[Row<'b>], others: &[Row<'b>]) -> Vec<Row<'b>> {
    let mut left: BTreeMap<String, usize> = BTreeMap::new();
    for row in others {
        *left.entry(row_text(row)).or_default() += 1;
    }
    let is_missing = |row: &&Row<'_>| match left.get_mut(&row_text(row)) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    };
    rows.iter().filter(is_missing).cloned().collect()
}

/// How often each text occurs in these rows.
fn count_texts<'b>(rows: &[Row<'b>]) -> BTreeMap<&'b str, usize> {
    let mut texts = BTreeMap::new();
    for block in rows.iter().flatten() {
        *texts.entry(&*block.text).or_default() += 1;
    }
    texts
}

#[cfg(test)]
mod tests {
    use webfill_document::{Document, Limits};

    use super::*;
    use crate::blocks;

    fn blocks_of(page: &str) -> Vec<Block> {
        blocks::blocks_of_tree(&Document::parse_html(page, &Limits::default()))
    }

    #[test]
    fn rows_that_swap_their_values_have_moved_and_rows_in_another_order_have_not() {
        let cases = [
            (
                "<table><tr><th>Mo<td>8<tr><th>Tu<td>9</table>",
                "<table><tr><th>Mo<td>9<tr><th>Tu<td>8</table>",
                &["mo | 9", "tu | 8"][..],
            ),
            (
                "<table><tr><th>Mo<td>8<tr><th>Tu<td>9</table>",
                "<table><tr><th>Tu<td>9<tr><th>Mo<td>8</table>",
                &[],
            ),
            (
                "<dl><dt>Height<dd>20<dt>Width<dd>30</dl>",
                "<dl><dt>Height<dd>30<dt>Width<dd>20</dl>",
                &["height | 30", "width | 20"],
            ),
            (
                "<dl><div><dt>Height<dd>20</div><div><dt>Width<dd>30</div></dl>",
                "<dl><div><dt>Width<dd>30</div><div><dt>Height<dd>20</div></dl>",
                &[],
            ),
            (
                "<ol><li>Ada<li>Bob<li>Eve</ol>",
                "<ol><li>Bob<li>Ada<li>Eve</ol>",
                &["1. bob", "2. ada"],
            ),
            (
                "<ul><li>Ada<li>Bob<li>Eve</ul>",
                "<ul><li>Bob<li>Ada<li>Eve</ul>",
                &[],
            ),
            // A counter in another row, which always differs, does not hide that rows have swapped values.
            (
                "<table><tr><th>Mo<td>8<tr><th>Tu<td>9<tr><th>Visits<td>77</table>",
                "<table><tr><th>Mo<td>9<tr><th>Tu<td>8<tr><th>Visits<td>78</table>",
                &["mo | 9", "tu | 8"],
            ),
            // An added item shifts all ranks. The comparison of blocks reports it, so ranks are not reported.
            (
                "<ol><li>Ada<li>Bob</ol>",
                "<ol><li>Eve<li>Ada<li>Bob</ol>",
                &[],
            ),
        ];
        for (old, new, come) in cases {
            let moved = find_moved_rows(&blocks_of(old), &blocks_of(new), &[]);
            let come_lower: Vec<String> = moved.come.iter().map(|row| row.to_lowercase()).collect();
            assert_eq!(come_lower, come, "{old} {new}");
            assert_eq!(moved.gone.len(), come.len(), "{old} {new}");
        }
    }

    #[test]
    fn items_that_two_fetches_rank_differently_are_compared_without_ranks() {
        let of = |order: [&str; 3]| {
            let items: String = order.map(|item| format!("<li>{item}")).concat();
            blocks_of(&format!("<ol class=more>{items}</ol>"))
        };
        let (one, other) = (of(["a", "b", "c"]), of(["b", "c", "a"]));
        let unsteady = Unsteady::from_fetches(&one, &other);
        let next = of(["c", "b", "a"]);
        assert_eq!(
            find_moved_rows(&one, &next, &[&unsteady]),
            MovedRows::default()
        );
    }

    #[test]
    fn a_poll_whose_figures_change_places_has_not_moved() {
        let of = |yes: u32| {
            let no = 100 - yes;
            blocks_of(&format!(
                "<table><tr><td>Yes<td>{yes} %<tr><td>No<td>{no} %</table>"
            ))
        };
        let unsteady = Unsteady::from_fetches(&of(40), &of(45));
        assert_eq!(
            find_moved_rows(&of(34), &of(66), &[&unsteady]),
            MovedRows::default()
        );
        assert_eq!(find_moved_rows(&of(34), &of(66), &[]).come.len(), 2);
    }
}
