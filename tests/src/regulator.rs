//! The generated websites of a regulator. Their pages change from night to night, and a ledger of these changes
//! determines what a watch must report for a night.
//!
//! - `regulator.test`, without a mapping: a listing of decisions (one is withdrawn together with its link); PDFs that
//!   are generated anew each night; a page with a clock; pages that only a sitemap lists, with a meaningless `lastmod`
//!   of today.
//! - `register.example`: a listing of entries, whose fields a mapping reads.
//! - `bulletin.test`: a listing of news, on a site that blocks on the third night.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::office::pdf;
use crate::site::{Page, Reply, Site, Web, document, page, status};

const REGULATOR: &str = "regulator.test";
const REGISTER: &str = "register.example";

/// The site that blocks the crawler for one night.
pub const BULLETIN: &str = "bulletin.test";

/// The night when [`BULLETIN`] blocks the crawler.
pub const BLOCKED_NIGHT: u32 = 3;

pub const NIGHTS: u32 = 10;

/// The number of the decision that is withdrawn, and the first night when no page links to it.
const WITHDRAWN: usize = 1;
const WITHDRAWN_NIGHT: u32 = 4;

/// The kind of a change, and the URL of the changed page.
pub type Change = (String, String);

/// A set of changes, for example those that a watch must report.
pub type Changes = BTreeSet<Change>;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// A page with text, on a site without a mapping.
    Text,
    Pdf,
    /// A page with text that shows the time of day.
    Clock,
    /// A page with text, linked only from the sitemap.
    Listed,
    /// A page whose fields are read by the mapping.
    Fields,
}

/// A page of the websites, and the crawler's expected knowledge of it.
#[derive(Debug, Clone)]
struct Entry {
    number: usize,
    host: &'static str,
    kind: Kind,
    /// The number of the version of the page's text. All pages share one sequence of numbers, so no text occurs twice.
    version: u32,
    is_there: bool,
    /// Whether the page is removed forever and no page links to it.
    is_withdrawn: bool,
    /// The version that the crawler has seen last.
    seen: Option<u32>,
    /// How many nights in a row the crawler did not find the page.
    misses: u32,
}

/// The websites, and a list of every entry that they have published.
pub struct Regulator {
    sites: BTreeMap<&'static str, Site>,
    night: u32,
    versions: u32,
    entries: BTreeMap<String, Entry>,
    /// For each listing page, the number of its links at the crawler's last visit.
    listed: BTreeMap<&'static str, usize>,
    blocks: Arc<AtomicBool>,
}

impl Regulator {
    pub fn new(web: &Web) -> Regulator {
        let hosts = [REGULATOR, REGISTER, BULLETIN];
        let mut regulator = Regulator {
            sites: hosts.map(|host| (host, web.site(host))).into(),
            night: 0,
            versions: 0,
            entries: BTreeMap::new(),
            listed: BTreeMap::new(),
            blocks: Arc::default(),
        };
        for (host, kind, count) in [
            (REGULATOR, Kind::Text, 5),
            (REGULATOR, Kind::Pdf, 3),
            (REGULATOR, Kind::Clock, 1),
            (REGULATOR, Kind::Listed, 3),
            (REGISTER, Kind::Fields, 5),
            (BULLETIN, Kind::Text, 3),
        ] {
            (0..count).for_each(|_| regulator.add_entry(host, kind));
        }
        regulator
    }

    pub fn seeds(&self) -> Vec<String> {
        let hosts = [REGULATOR, REGISTER, BULLETIN];
        hosts.map(|host| format!("http://{host}/list")).into()
    }

    /// Starts the next night: pages change, appear and disappear. Returns the changes that a watch (a crawl that
    /// reports changes) must report.
    pub fn start_next_night(&mut self) -> Changes {
        self.night += 1;
        let night = self.night;
        self.blocks.store(night == BLOCKED_NIGHT, Ordering::SeqCst);
        if night > 1 {
            self.add_next_page();
            self.change_pages();
        }
        self.serve();
        self.check_pages()
    }

    fn add_entry(&mut self, host: &'static str, kind: Kind) {
        self.versions += 1;
        let number = self.entries.len();
        let path = match kind {
            Kind::Pdf => format!("/paper{number:02}.pdf"),
            Kind::Clock => format!("/clock{number:02}"),
            Kind::Listed => format!("/listed{number:02}"),
            Kind::Text | Kind::Fields => format!("/entry{number:02}"),
        };
        let entry = Entry {
            number,
            host,
            kind,
            version: self.versions,
            is_there: true,
            is_withdrawn: false,
            seen: None,
            misses: 0,
        };
        self.entries.insert(format!("http://{host}{path}"), entry);
    }

    /// Adds one page. The kinds of new pages alternate.
    fn add_next_page(&mut self) {
        match self.night % 5 {
            0 => self.add_entry(REGULATOR, Kind::Text),
            1 => self.add_entry(REGULATOR, Kind::Listed),
            2 => self.add_entry(REGULATOR, Kind::Pdf),
            3 => self.add_entry(BULLETIN, Kind::Text),
            _ => self.add_entry(REGISTER, Kind::Fields),
        }
    }

    /// Changes pages. Depending on its number, a page changes from time to time, or is missing for one night or for
    /// three nights.
    fn change_pages(&mut self) {
        for entry in self.entries.values_mut() {
            let number = entry.number;
            entry.is_withdrawn |= number == WITHDRAWN && self.night == WITHDRAWN_NIGHT;
            if entry.is_withdrawn {
                entry.is_there = false;
                continue;
            }
            match (self.night as usize + 3 * number) % 7 {
                0 => {
                    self.versions += 1;
                    entry.version = self.versions;
                }
                // A page that is missing for one night is not reported. A page that is missing for three nights is
                // reported as gone on the second night, and later as back.
                2 if number % 3 != 2 => entry.is_there = false,
                3 if number.is_multiple_of(4) => entry.is_there = true,
                5 => entry.is_there = true,
                _ => {}
            }
        }
    }

    fn serve(&self) {
        for (url, entry) in &self.entries {
            let path = url.trim_start_matches("http://");
            let path = &path[entry.host.len()..];
            self.serve_answer(entry.host, path, answer_for(url, entry, self.night));
        }
        for host in [REGULATOR, REGISTER, BULLETIN] {
            let links = self.links(host);
            let list = links.fold(page("List"), |list, url| match host {
                REGISTER => list.mapped_link(url),
                _ => list.html(format!("<p><a href=\"{url}\">Entry {url}</a></p>\n")),
            });
            self.serve_answer(host, "/list", Answer::Same(list));
        }
        let listed = self.urls_of(REGULATOR, |kind| kind == Kind::Listed);
        let sitemap = document("text/xml", sitemap(listed, self.night));
        self.serve_answer(REGULATOR, "/sitemap.xml", Answer::Same(sitemap));
    }

    fn urls_of(
        &self,
        host: &'static str,
        which: impl Fn(Kind) -> bool,
    ) -> impl Iterator<Item = &String> {
        let entries = self.entries.iter();
        let found = entries.filter(move |(_, entry)| entry.host == host && which(entry.kind));
        found.map(|(url, _)| url)
    }

    fn links(&self, host: &'static str) -> impl Iterator<Item = &String> {
        let links = self.urls_of(host, |kind| kind != Kind::Listed);
        links.filter(|url| !self.entries[*url].is_withdrawn)
    }

    fn serve_answer(&self, host: &'static str, path: &str, answer: Answer) {
        let blocks = (host == BULLETIN).then(|| Arc::clone(&self.blocks));
        self.sites[host].serve_with(path, move |_| {
            let is_blocked = blocks
                .as_ref()
                .is_some_and(|blocks| blocks.load(Ordering::SeqCst));
            match (&answer, is_blocked) {
                (_, true) => blocked_reply(),
                (Answer::Same(page), false) => page.clone().into(),
                (Answer::WithTime(words), false) => page_with_time(words),
            }
        });
    }

    /// The changes that the crawler must find when it checks all pages, by the rules in `docs/explanation/changes.md`.
    fn check_pages(&mut self) -> Changes {
        let (night, mut reported) = (self.night, Changes::new());
        let is_blocked = |host| host == BULLETIN && night == BLOCKED_NIGHT;
        for (url, entry) in &mut self.entries {
            if !is_blocked(entry.host)
                && let Some(kind) = entry.check()
                && night > 1
            {
                reported.insert((kind.to_owned(), url.clone()));
            }
        }
        // The listing of `register.example` is not checked, because it has no field that the mapping reads.
        for host in [REGULATOR, BULLETIN] {
            let links = self.links(host).count();
            if is_blocked(host) {
                continue;
            }
            let before = self.listed.insert(host, links);
            if before.is_some_and(|before| before != links) {
                reported.insert(("changed".to_owned(), format!("http://{host}/list")));
            }
        }
        reported
    }
}

impl Entry {
    fn check(&mut self) -> Option<&'static str> {
        if !self.is_there {
            self.misses += 1;
            return (self.misses == 2 && self.seen.is_some()).then_some("gone");
        }
        let was_gone = std::mem::take(&mut self.misses) >= 2;
        match self.seen.replace(self.version) {
            None => Some("new"),
            Some(_) if was_gone => Some("back"),
            Some(seen) if seen != self.version => Some("changed"),
            Some(_) => None,
        }
    }
}

enum Answer {
    Same(Page),
    WithTime(String),
}

fn answer_for(url: &str, entry: &Entry, night: u32) -> Answer {
    let words = format!("Decision number {} of the authority", entry.version);
    if !entry.is_there {
        return Answer::Same(status(404));
    }
    Answer::Same(match entry.kind {
        Kind::Clock => return Answer::WithTime(words),
        Kind::Text | Kind::Listed => page("Decision").html(format!(
            "<nav>Menu</nav><p>{words}</p><p>About {url}, published 3 hours ago</p>"
        )),
        Kind::Fields => page("Entry").field("name", &words).field("email", url),
        // The bytes of a PDF differ each night, although its text may be the same.
        Kind::Pdf => document("application/pdf", pdf(&format!("Print {night}"), &words)),
    })
}

fn page_with_time(words: &str) -> Reply {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let second = now.expect("after 1970").as_secs() % 86_400;
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    let clock = format!("<p>It is {hour:02}:{minute:02}:{second:02}</p>");
    page("Clock").html(format!("<p>{words}</p>{clock}")).into()
}

fn blocked_reply() -> Reply {
    let refusal = page("Home").status(403);
    refusal.header("cf-mitigated", "challenge").into()
}

/// A sitemap which claims that all pages have changed today.
fn sitemap<'a>(urls: impl Iterator<Item = &'a String>, night: u32) -> String {
    let entry = |url: &String| {
        format!("<url><loc>{url}</loc><lastmod>2026-11-{night:02}</lastmod></url>\n")
    };
    let entries: String = urls.map(entry).collect();
    format!(
        "<?xml version='1.0'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>{entries}</urlset>"
    )
}

/// Collects the changes in notifications. Each notification has a key, so a repeated notification counts once.
#[derive(Debug, Default)]
pub struct Notifications {
    keys: BTreeSet<String>,
}

impl Notifications {
    /// Reads the notifications in these lines. Returns the changes of those notifications that were not read before.
    /// Panics if a line is not a notification.
    pub fn take_changes(&mut self, text: &str) -> Vec<Change> {
        let mut reported = Vec::new();
        for line in text.lines() {
            let notification: serde_json::Value =
                serde_json::from_str(line).expect("a notification");
            let key = notification["key"].as_str().expect("a key").to_owned();
            if !self.keys.insert(key) {
                continue;
            }
            assert_eq!(notification["more"], 0, "{notification}");
            for event in notification["events"].as_array().expect("events") {
                if event["event"] == "change" {
                    let of =
                        |name: &str| event["detail"][name].as_str().expect("a word").to_owned();
                    reported.push((of("kind"), of("url")));
                }
            }
        }
        reported
    }
}
