//! The plan before anything is fetched: sites, rows, gaps, pages, and the time that politeness requires.

use std::collections::BTreeSet;
use std::time::Duration;

use super::nouns::{count_with_noun, noun};
use super::options::RowsToCheck;
use super::sample;
use super::table::Table;
use crate::demand::table::table as for_people;

/// The most sites that are named. Those with the most pages to fetch are taken.
const SHOWN_SITES: usize = 20;

#[derive(Debug)]
pub struct Plan {
    sites: Vec<PlannedSite>,
    gaps: usize,
    /// Whether the required time is known. A fleet has its own delays, so then it is not.
    is_timed: bool,
}

#[derive(Debug)]
struct PlannedSite {
    name: String,
    rows: usize,
    gaps: usize,
    pages: usize,
    fetched: usize,
    time: Duration,
}

impl Plan {
    /// `is_fetched` returns whether the page of a URL is stored already.
    pub fn new(
        table: &Table,
        check: RowsToCheck,
        most: usize,
        delay: Option<Duration>,
        is_fetched: impl Fn(&str) -> bool,
    ) -> Plan {
        let mut sampled = sample::links_to_check(table, check, most);
        sampled.extend(sample::choose_links(table, most));
        let sites = table.links.by_site().into_iter().map(|(name, links)| {
            let is_wanted = |link: &&u32| {
                let mut rows = table.links.rows_of(**link).iter();
                let is_gap = rows.any(|&row| !table.rows[row as usize].is_complete());
                is_gap || sampled.contains(link)
            };
            let wanted: Vec<u32> = links.iter().filter(is_wanted).copied().collect();
            let of_link = |link: &u32| table.links.rows_of(*link).iter();
            let rows: BTreeSet<u32> = links.iter().flat_map(of_link).copied().collect();
            let gaps = rows
                .iter()
                .map(|&row| table.rows[row as usize].gaps().count());
            let is_here = |link: &&u32| is_fetched(&table.links[**link as usize].url);
            let fetched = wanted.iter().filter(is_here).count();
            let pages = wanted.len() - fetched;
            PlannedSite {
                name: name.to_owned(),
                rows: rows.len(),
                gaps: gaps.sum(),
                pages,
                fetched,
                time: delay.unwrap_or_default() * u32::try_from(pages).unwrap_or(u32::MAX),
            }
        });
        let mut sites: Vec<PlannedSite> = sites.collect();
        sites.sort_by(|a, b| b.pages.cmp(&a.pages).then(a.name.cmp(&b.name)));
        Plan {
            sites,
            gaps: table.gaps(),
            is_timed: delay.is_some(),
        }
    }

    pub fn text(&self) -> String {
        let rows = self.sites.iter().take(SHOWN_SITES).map(|site| {
            let mut cells = vec![
                site.name.clone(),
                site.rows.to_string(),
                site.gaps.to_string(),
                site.pages.to_string(),
                site.fetched.to_string(),
            ];
            cells.extend(self.is_timed.then(|| format_time(site.time)));
            cells
        });
        let heads = ["site", "rows", "gaps", "pages", "fetched before", "time"];
        let heads = &heads[..heads.len() - usize::from(!self.is_timed)];
        let mut text = for_people(heads, &rows.collect::<Vec<_>>());
        if self.sites.len() > SHOWN_SITES {
            let more = self.sites.len() - SHOWN_SITES;
            text += &format!("\nand {more} more {}", noun(more, "site"));
        }
        let pages: usize = self.sites.iter().map(|site| site.pages).sum();
        // Sites are fetched in parallel, so the slowest one determines the time.
        let longest = self.sites.iter().map(|site| site.time).max();
        text += &format!(
            "\nplan: {}, {}, ",
            count_with_noun(self.gaps, "gap"),
            count_with_noun(self.sites.len(), "site")
        );
        text += &match (pages, longest.unwrap_or_default()) {
            (0, _) => String::from("no pages of rows to fetch"),
            (pages, longest) => {
                let pages = count_with_noun(pages, "page");
                let time = match longest.is_zero() {
                    _ if !self.is_timed => String::from("at the fleet's delays"),
                    true => String::from("without a delay"),
                    false => format!("about {} at this delay", format_time(longest)),
                };
                format!("at most {pages} of rows to fetch, {time}")
            }
        };
        text
    }
}

fn format_time(time: Duration) -> String {
    match time.as_secs() {
        0 if !time.is_zero() => String::from("< 1 s"),
        seconds @ 0..=119 => format!("{seconds} s"),
        seconds @ 120..=7_199 => format!("{} min", seconds / 60),
        seconds @ 7_200..=172_799 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}
