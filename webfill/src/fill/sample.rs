//! Chooses the pages to learn from. For each site and kind of URL, they are those whose rows have the most known
//! values.
//!
//! A layout is visible only on a page. Before any page is fetched, the shape of a URL is taken for its layout.

use std::collections::{BTreeMap, BTreeSet};

use webfill_urls::Url;

use super::options::RowsToCheck;
use super::table::Table;

/// The most shapes of URLs of a site that are sampled separately. The most frequent ones are taken; all other URLs form
/// one group.
const MOST_SHAPES: usize = 8;

/// The first part of a path belongs to the shape of a URL if at least this many URLs share that part. For a site with
/// more than 250 links, the limit is a fiftieth of them.
const SHARED: usize = 5;

/// Chooses the links to learn from, site by site. Returns their indexes.
pub fn choose_links(table: &Table, most: usize) -> Vec<u32> {
    let mut sample = Vec::new();
    for links in table.links.by_site().into_values() {
        for of_shape in group_by_shape(table, &links) {
            sample.extend(choose_best_known(table, of_shape, most));
        }
    }
    sample
}

/// The sites that rows with known values link to.
pub fn sites_with_known_values(table: &Table) -> BTreeSet<&str> {
    let knowing = table.rows.iter().filter(|row| row.count_known_fields() > 0);
    let links = knowing.flat_map(|row| &row.links);
    links
        .map(|&link| &*table.links[link as usize].site)
        .collect()
}

/// The links whose pages are fetched only to compare known values with them: those of some complete rows, or of all
/// rows.
pub fn links_to_check(table: &Table, check: RowsToCheck, most: usize) -> BTreeSet<u32> {
    let of_site = |links: Vec<u32>| {
        let is_complete = |link: &u32| {
            if check == RowsToCheck::All {
                return true;
            }
            let mut rows = table.links.rows_of(*link).iter();
            rows.all(|&row| table.rows[row as usize].is_complete())
        };
        let mut complete: Vec<u32> = links.into_iter().filter(is_complete).collect();
        complete.sort_by_key(|link| scattered_sort_key(*link));
        complete.truncate(match check {
            RowsToCheck::None => 0,
            RowsToCheck::Sample => most,
            RowsToCheck::All => usize::MAX,
        });
        complete
    };
    table
        .links
        .by_site()
        .into_values()
        .flat_map(of_site)
        .collect()
}

/// The links whose rows have the most known values. Among equals, links from all parts of the table are taken.
pub fn choose_best_known(table: &Table, mut links: Vec<u32>, most: usize) -> Vec<u32> {
    let knows = |link: &u32| {
        let rows = table.links.rows_of(*link).iter();
        rows.map(|&row| table.rows[row as usize].count_known_fields())
            .max()
            .unwrap_or(0)
    };
    links.sort_by_cached_key(|link| (usize::MAX - knows(link), scattered_sort_key(*link)));
    links.truncate(most);
    links.sort_unstable();
    links
}

/// A sort key that looks random, but is the same in each run.
fn scattered_sort_key(link: u32) -> u32 {
    link.wrapping_mul(0x9E37_79B1).rotate_left(16)
}

fn group_by_shape(table: &Table, links: &[u32]) -> Vec<Vec<u32>> {
    let parts = |link: u32| {
        let url = Url::parse(&table.links[link as usize].url).ok();
        let path: Vec<String> = url
            .iter()
            .flat_map(Url::path_segments)
            .flatten()
            .map(str::to_owned)
            .collect();
        let first = path.first().cloned().unwrap_or_default();
        (path.len(), first)
    };
    let mut firsts: BTreeMap<(usize, String), usize> = BTreeMap::new();
    for &link in links {
        *firsts.entry(parts(link)).or_default() += 1;
    }
    let is_shared =
        |shape: &(usize, String)| shape.0 > 1 && firsts[shape] >= SHARED.max(links.len() / 50);
    let mut counts: Vec<(&(usize, String), usize)> = firsts
        .iter()
        .filter(|(shape, _)| is_shared(shape))
        .map(|(shape, count)| (shape, *count))
        .collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let own: BTreeSet<&(usize, String)> = counts
        .iter()
        .take(MOST_SHAPES)
        .map(|(shape, _)| *shape)
        .collect();
    let mut shapes: BTreeMap<Option<(usize, String)>, Vec<u32>> = BTreeMap::new();
    for &link in links {
        let shape = parts(link);
        let shape = own.contains(&shape).then_some(shape);
        shapes.entry(shape).or_default().push(link);
    }
    shapes.into_values().collect()
}
