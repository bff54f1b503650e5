//! Finds the column that identifies rows.

use super::UrlColumn;
use crate::cell::Cell;
use crate::kind::Kind;
use crate::sample::Sample;
use crate::shape::Shape;

/// Names of columns that identify rows, the most certain first. They are compared in lower case, without signs such as
/// `_`.
const NAMES: &[&str] = &[
    "id",
    "key",
    "pk",
    "uid",
    "uuid",
    "guid",
    "identifier",
    "recordid",
    "rowid",
    "sku",
    "isbn",
    "isbn13",
    "ean",
    "gtin",
    "upc",
    "asin",
    "doi",
    "issn",
    "isbn10",
    "imdbid",
    "wikidata",
    "qid",
    "articleid",
    "productid",
    "itemid",
    "articlenumber",
    "artikelnummer",
    "productcode",
    "mpn",
    "code",
    "number",
    "nr",
    "no",
    "slug",
    "handle",
];

/// The longest value that can be an id, in bytes.
const MAX_BYTES: usize = 200;

/// Finds the column that identifies rows: a column without repeated values that is named like an id, or else the first
/// column without repeated values. Also returns the reason, even if there is no such column.
pub(super) fn find_id_column(
    sample: &Sample,
    shapes: &[Shape],
    urls: &[UrlColumn],
    fields: &[usize],
) -> (Option<usize>, String) {
    let rows = sample.row_count;
    let may_be = |column: &usize| {
        let is_link = urls.iter().any(|url| url.column == *column);
        !is_link && !fields.contains(column) && sample.profiles[*column].repeats.are_watched()
    };
    let candidates: Vec<usize> = (0..sample.columns.len()).filter(may_be).collect();
    let is_unique = |column: usize| why_not_an_id(sample, &shapes[column], column).is_none();
    let mut named: Vec<(usize, usize)> = candidates
        .iter()
        .filter_map(|column| Some((rank_of_id_name(&sample.columns[*column].name)?, *column)))
        .collect();
    named.sort_unstable();
    if let Some((_, column)) = named.iter().find(|(_, column)| is_unique(*column)) {
        return (Some(*column), format!("no value twice in {rows} rows"));
    }
    let is_fit = |column: &&usize| {
        let kind = shapes[**column].kind;
        matches!(kind, Kind::Text | Kind::Integer) && !shapes[**column].is_list
    };
    // In a table with fewer rows, a column without repeated values proves nothing, because any column may have none.
    const LEAST_ROWS: u64 = 5;
    let first = candidates.iter().filter(is_fit);
    let first = first.copied().find(|column| is_unique(*column));
    if let Some(column) = first.filter(|_| rows >= LEAST_ROWS) {
        let reason = format!("the first column with no value twice in {rows} rows");
        return (Some(column), reason);
    }
    let reason = named.first().and_then(|(_, column)| {
        let fault = why_not_an_id(sample, &shapes[*column], *column)?;
        Some(format!("`{:.40}` {fault}", sample.columns[*column].name))
    });
    (None, reason.unwrap_or_default())
}

/// Why a column cannot identify rows; `None` if it can.
fn why_not_an_id(sample: &Sample, shape: &Shape, column: usize) -> Option<String> {
    if sample.row_count == 0 {
        return Some(String::from("has no values"));
    }
    if super::gap_count(sample, column, shape) > 0 {
        return Some(String::from("has gaps"));
    }
    if let Some(value) = sample.profiles[column].repeats.repeated_value() {
        return Some(format!("holds `{value}` twice"));
    }
    let is_unfit = |cell: &Cell| match cell {
        Cell::List(_) | Cell::Other(_) => true,
        cell => cell.text().is_none_or(|text| text.len() > MAX_BYTES),
    };
    let has_unfit = sample.values(column).any(is_unfit);
    has_unfit.then(|| String::from("holds no ids"))
}

/// How certainly a name is that of an id; a lower number is more certain. The names in [`NAMES`] come first, then other
/// names that end like `_id`.
fn rank_of_id_name(name: &str) -> Option<usize> {
    let mut plain = String::new();
    plain.extend(name.chars().filter(|c| c.is_alphanumeric()));
    let lower = plain.to_lowercase();
    let exact = NAMES.iter().position(|known| *known == lower);
    let ends_as_id = || {
        let is_word = ["_id", "-id", " id", "_key", "_no", "_nr", "Id", "ID"]
            .iter()
            .any(|end| name.trim().ends_with(end));
        is_word.then_some(NAMES.len())
    };
    exact.or_else(ends_as_id)
}
