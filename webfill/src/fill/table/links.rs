//! The distinct links of a table, and the rows that have them.

use std::collections::hash_map::{Entry, RandomState};
use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher;
use std::ops::Deref;
use std::sync::Arc;

use webfill_table::Cell;
use webfill_urls::{Url, site};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub url: String,
    pub site: Arc<str>,
    /// Whether the URL had no scheme in its cell.
    pub is_without_scheme: bool,
}

/// The distinct links of all rows, in canonical form, with their sites.
#[derive(Debug, Default)]
pub struct Links {
    all: Vec<Link>,
    by_url: LinkIndex,
    /// The names of the sites found so far, so that each is in memory once. Empty after all links were added.
    sites: HashMap<String, Arc<str>>,
    /// For each link, the rows that have it, in one list; and where each link's part of that list begins.
    linking: Vec<u32>,
    linking_at: Vec<u32>,
}

impl Deref for Links {
    type Target = [Link];

    fn deref(&self) -> &[Link] {
        &self.all
    }
}

impl Links {
    /// The position of a link. A new link is added.
    pub(super) fn intern(&mut self, url: &Url, is_without_scheme: bool) -> u32 {
        if let Some(place) = self.by_url.link_position(url.as_str(), &self.all) {
            return place;
        }
        let place = self.all.len() as u32;
        let sites = self.sites.entry(site(url));
        let site = sites.or_insert_with_key(|name| Arc::from(name.as_str()));
        self.by_url.insert(url.as_str(), place);
        self.all.push(Link {
            url: url.as_str().to_owned(),
            site: Arc::clone(site),
            is_without_scheme,
        });
        place
    }

    /// Finds the rows of each link, after all links were added. `rows` has the links of each row.
    pub(super) fn index_rows<'r>(&mut self, rows: impl Iterator<Item = &'r [u32]> + Clone) {
        self.sites = HashMap::new();
        self.all.shrink_to_fit();
        let mut at = vec![0; self.all.len() + 1];
        for &link in rows.clone().flatten() {
            at[link as usize + 1] += 1;
        }
        for link in 1..at.len() {
            at[link] += at[link - 1];
        }
        let mut free = at.clone();
        self.linking = vec![0; at.last().copied().unwrap_or(0) as usize];
        for (number, links) in rows.enumerate() {
            for &link in links {
                let place = &mut free[link as usize];
                self.linking[*place as usize] = number as u32;
                *place += 1;
            }
        }
        self.linking_at = at;
    }

    /// The rows that have this link, in the order of the table.
    pub fn rows_of(&self, link: u32) -> &[u32] {
        let link = link as usize;
        &self.linking[self.linking_at[link] as usize..self.linking_at[link + 1] as usize]
    }

    /// Whether a URL is a link of a row.
    pub fn is_link_of_row(&self, url: &str) -> bool {
        self.by_url.link_position(url, &self.all).is_some()
    }

    /// The URLs of the links at these positions.
    pub fn urls(&self, places: &[u32]) -> Vec<String> {
        let links = places.iter().map(|&link| &self.all[link as usize]);
        links.map(|link| link.url.clone()).collect()
    }

    /// For each link without a scheme: its URL, which got `https`, and the same URL with `http`.
    pub fn with_http(&self) -> impl Iterator<Item = (String, String)> {
        let without_scheme = self.all.iter().filter(|link| link.is_without_scheme);
        without_scheme.filter_map(|link| {
            let rest = link.url.strip_prefix("https")?;
            Some((link.url.clone(), format!("http{rest}")))
        })
    }

    /// For each site, the positions of its links in `all`, in the order of the table.
    pub fn by_site(&self) -> BTreeMap<&str, Vec<u32>> {
        let mut by_site: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for (place, link) in self.all.iter().enumerate() {
            by_site.entry(&link.site).or_default().push(place as u32);
        }
        by_site
    }
}

/// The positions of links by the hash of their URL. The URLs themselves are only in the links.
#[derive(Debug, Default)]
struct LinkIndex {
    places: HashMap<u64, u32>,
    /// The positions of links whose hash is that of another URL.
    others: HashMap<String, u32>,
    hashes: RandomState,
}

impl LinkIndex {
    fn link_position(&self, url: &str, links: &[Link]) -> Option<u32> {
        let place = *self.places.get(&self.hashes.hash_one(url))?;
        match links[place as usize].url == url {
            true => Some(place),
            false => self.others.get(url).copied(),
        }
    }

    fn insert(&mut self, url: &str, place: u32) {
        match self.places.entry(self.hashes.hash_one(url)) {
            Entry::Vacant(free) => drop(free.insert(place)),
            Entry::Occupied(_) => drop(self.others.insert(url.to_owned(), place)),
        }
    }
}

/// Whether a link of a cell has a scheme.
pub(super) fn has_scheme(cell: &Cell) -> bool {
    match cell {
        Cell::List(cells) => cells.iter().any(has_scheme),
        cell => cell.text().is_some_and(|text| text.contains("://")),
    }
}
