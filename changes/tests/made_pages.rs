//! Made pages, looked at night after night: how often a change is told that is none, and how often one is
//! missed, beside a hash of the page and its plain text.
//!
//! `WEBFILL_LOOKS=8000 cargo test -p webfill-changes --test made_pages -- --nocapture` prints the table of
//! `docs/changes.md`. The number is that of the looks.

use std::collections::BTreeMap;

use serde_json::Map;
use webfill_changes::{Answer, LookAt, LookKey, PageVersions, Seen, SiteBlocks, Verdict};
use webfill_document::{Document, Limits};

const SITES: u64 = 10;
const PAGES: u64 = 40;
const NIGHT_MS: i64 = 86_400_000;
/// 2026-11-01T02:00:00Z.
const FIRST_MS: i64 = 1_793_498_400_000;

const WORDS: [&str; 40] = [
    "river", "stone", "quiet", "market", "window", "report", "garden", "bridge", "winter",
    "letter", "engine", "paper", "summer", "harbour", "village", "copper", "signal", "lantern",
    "meadow", "teacher", "station", "silver", "planet", "kitchen", "forest", "orchard", "mirror",
    "ticket", "basket", "captain", "museum", "pepper", "violin", "canyon", "blanket", "turbine",
    "ladder", "pencil", "island", "cotton",
];

const STOCK: [&str; 4] = ["In stock", "Few left", "Sold out", "Back next week"];

fn looks() -> u64 {
    let told = std::env::var("WEBFILL_LOOKS").ok();
    told.map_or(8_000, |text| text.parse().expect("a number of looks"))
}

fn words(rng: &mut fastrand::Rng, count: usize) -> String {
    let some: Vec<&str> = (0..count)
        .map(|_| WORDS[rng.usize(..WORDS.len())])
        .collect();
    some.join(" ")
}

struct Fetch {
    at_ms: i64,
    headline: String,
    is_noisy: bool,
}

/// A page that changes now and then, and what is around its text.
struct Page {
    paragraphs: Vec<String>,
    price: u32,
    /// The same words on all pages, on each at another time.
    stock: usize,
    items: Vec<String>,
    /// Comments with the times of their writing.
    comments: Vec<(i64, String)>,
    /// Shows one of two forms at random.
    has_variants: bool,
    number: u64,
}

impl Page {
    fn new(number: u64, rng: &mut fastrand::Rng) -> Page {
        let count = 3 + rng.usize(..8);
        Page {
            paragraphs: (0..count).map(|_| words(rng, 25)).collect(),
            price: 100 + rng.u32(..9_000),
            stock: 0,
            items: (0..5).map(|_| words(rng, 3)).collect(),
            comments: (0..3)
                .map(|_| {
                    (
                        FIRST_MS - i64::from(rng.u32(..900)) * 3_600_000,
                        words(rng, 6),
                    )
                })
                .collect(),
            has_variants: number.is_multiple_of(5),
            number,
        }
    }

    /// One true change; which kind it was.
    fn change(&mut self, rng: &mut fastrand::Rng) -> &'static str {
        match rng.u32(..6) {
            0 => {
                let paragraph = rng.usize(..self.paragraphs.len());
                let mut words: Vec<String> = self.paragraphs[paragraph]
                    .split(' ')
                    .map(str::to_owned)
                    .collect();
                let word = rng.usize(..words.len());
                words[word] = format!("{}s", words[word]);
                self.paragraphs[paragraph] = words.join(" ");
                "a word"
            }
            1 => {
                self.price += 1 + rng.u32(..50);
                "a number"
            }
            5 if self.stock + 1 < STOCK.len() => {
                self.stock += 1;
                "what other pages say as well"
            }
            2 => {
                let at = rng.usize(..=self.paragraphs.len());
                self.paragraphs.insert(at, words(rng, 25));
                "a paragraph more"
            }
            3 if self.paragraphs.len() > 2 => {
                self.paragraphs.remove(rng.usize(..self.paragraphs.len()));
                "a paragraph less"
            }
            _ => {
                let item = rng.usize(..self.items.len());
                self.items[item] = words(rng, 3);
                "an item"
            }
        }
    }

    /// The answer to one fetch.
    fn served(&self, fetch: &Fetch, rng: &mut fastrand::Rng) -> String {
        let Fetch {
            at_ms,
            headline,
            is_noisy,
        } = fetch;
        let (at_ms, is_noisy) = (*at_ms, *is_noisy);
        let at_s = at_ms / 1_000;
        let (hour, minute, second) = (at_s / 3_600 % 24, at_s / 60 % 60, at_s % 60);
        let day = 1 + (at_ms - FIRST_MS) / NIGHT_MS;
        let date = date_of(day);
        let mut html = format!(
            "<html><head><title>Thing {}</title><script>var session='{:x}'</script></head><body>\
             <nav><a href='/?sid={:x}'>Home</a> <a>Hello, visitor {}</a></nav>\
             <div class='banner'>{date} {hour:02}:{minute:02}:{second:02}</div>\
             <div class='headline'><h4>Quote of the day</h4><p>{headline}</p></div><main><h1>Thing {}</h1>\
             <p class='price'>Price: {}.{:02} EUR</p><p class='stock'>{}</p>",
            self.number,
            rng.u64(..),
            rng.u64(..),
            rng.u32(..),
            self.number,
            self.price / 100,
            self.price % 100,
            STOCK[self.stock],
        );
        let advertised = rng.usize(..self.paragraphs.len());
        for (number, paragraph) in self.paragraphs.iter().enumerate() {
            html.push_str(&format!("<p>{paragraph}</p>"));
            if is_noisy && number == advertised {
                html.push_str(&format!(
                    "<div class='ad ad-{}'><p>Buy {} now</p></div>",
                    rng.u32(..),
                    words(rng, 2)
                ));
            }
        }
        html.push_str("<ul class='items'>");
        self.items
            .iter()
            .for_each(|item| html.push_str(&format!("<li>{item}</li>")));
        html.push_str("</ul>");
        if is_noisy && self.has_variants {
            let variant = ["Order now and save.", "Get yours before it is gone."][rng.usize(..2)];
            html.push_str(&format!("<p class='call'>{variant}</p>"));
        }
        html.push_str("</main><section class='comments'>");
        for (written_ms, comment) in &self.comments {
            let hours = (at_ms - written_ms) / 3_600_000;
            let age = match hours {
                0..=23 => format!("{hours} hours ago"),
                24..=719 => format!("{} days ago", hours / 24),
                _ => date_of((written_ms - FIRST_MS).div_euclid(NIGHT_MS) + 1),
            };
            html.push_str(&format!("<div><b>{age}</b> {comment}</div>"));
        }
        html.push_str("</section>");
        if !is_noisy {
            html.push_str("</body></html>");
            return html;
        }
        html.push_str("<aside class='related'><ul>");
        for _ in 0..4 {
            html.push_str(&format!("<li>{}</li>", words(rng, 2)));
        }
        html.push_str(&format!(
            "</ul></aside><footer><p class='visits'>{} visits</p><p>Rendered in {} ms, session {:x}</p></footer></body></html>",
            rng.u32(..), rng.u32(..900), rng.u64(..)
        ));
        html
    }
}

/// The date of a night, counted from 2026-11-01.
fn date_of(day: i64) -> String {
    let date = jiff::civil::date(2026, 11, 1);
    let date = date.checked_add(jiff::Span::new().days(day - 1)).unwrap();
    format!("{} {} {}", date.day(), date.strftime("%B"), date.year())
}

fn seen(html: &str, at_ms: i64) -> Seen {
    Seen::of_tree(&Document::parse_html(html, &Limits::default()), at_ms)
}

/// Right and wrong answers of one way of judging.
#[derive(Default, Debug, Clone)]
struct Score {
    looks: u64,
    changes: u64,
    false_alarms: u64,
    misses: u64,
    missed: BTreeMap<&'static str, u64>,
}

impl Score {
    fn note(&mut self, change: Option<&'static str>, is_told: bool) {
        self.looks += 1;
        self.changes += u64::from(change.is_some());
        match (change, is_told) {
            (None, true) => self.false_alarms += 1,
            (Some(kind), false) => {
                self.misses += 1;
                *self.missed.entry(kind).or_default() += 1;
            }
            _ => {}
        }
    }

    fn false_per_thousand(&self) -> f64 {
        1_000.0 * self.false_alarms as f64 / (self.looks - self.changes) as f64
    }

    fn line(&self) -> String {
        format!(
            "| {:.1} | {} of {} ({:.1} %) {:?} |",
            self.false_per_thousand(),
            self.misses,
            self.changes,
            100.0 * self.misses as f64 / self.changes.max(1) as f64,
            self.missed,
        )
    }
}

struct Looked {
    page: Page,
    versions: PageVersions,
    hash: String,
    text: Vec<String>,
}

fn texts(seen: &Seen) -> Vec<String> {
    seen.blocks.iter().map(|block| block.text.clone()).collect()
}

/// The ways of judging.
#[derive(Default)]
struct Scores {
    webfill: Score,
    plain: Score,
    hashed: Score,
}

/// Looks at all pages for as many nights as are needed. `is_noisy`: pages have what differs at each fetch;
/// `fetches_twice`: on the first night each page is fetched twice.
fn look_at_all(is_noisy: bool, fetches_twice: bool) -> Scores {
    let mut rng = fastrand::Rng::with_seed(4_711);
    let mut sites = vec![SiteBlocks::default(); SITES as usize];
    let mut pages: Vec<Looked> = (0..SITES * PAGES)
        .map(|number| Looked {
            page: Page::new(number, &mut rng),
            versions: PageVersions::default(),
            hash: String::new(),
            text: Vec::new(),
        })
        .collect();
    let mut scores = Scores::default();
    for night in 0..looks() / (SITES * PAGES) + 1 {
        for (number, looked) in pages.iter_mut().enumerate() {
            let site = number % SITES as usize;
            let fetch = Fetch {
                at_ms: FIRST_MS + night as i64 * NIGHT_MS + number as i64 * 15_000,
                headline: headline(site as u64, night),
                is_noisy,
            };
            let is_first = night == 0;
            let change = (!is_first && rng.f64() < 0.03).then(|| looked.page.change(&mut rng));
            let html = looked.page.served(&fetch, &mut rng);
            let mut look = seen(&html, fetch.at_ms);
            let text = texts(&look);
            if is_first && fetches_twice {
                let again = looked.page.served(&fetch, &mut rng);
                look = look.of_two_fetches(fetch.at_ms, &seen(&again, fetch.at_ms), fetch.at_ms);
            }
            let verdict = judge(
                &mut looked.versions,
                &mut sites[site],
                night,
                fetch.at_ms,
                look,
            );
            if !is_first {
                scores.webfill.note(change, verdict == Verdict::Changed);
                scores.hashed.note(change, looked.hash != html);
                scores.plain.note(change, looked.text != text);
            }
            (looked.hash, looked.text) = (html, text);
        }
    }
    scores
}

/// A site's quote of the day, which it changes every ten days.
fn headline(site: u64, night: u64) -> String {
    let mut of_days = fastrand::Rng::with_seed(site * 1_000 + (night + site) / 10);
    words(&mut of_days, 8)
}

fn judge(
    versions: &mut PageVersions,
    site: &mut SiteBlocks,
    night: u64,
    at_ms: i64,
    seen: Seen,
) -> Verdict {
    let look = LookAt {
        key: LookKey {
            task: night + 1,
            number: 1,
            at_ms,
            ..LookKey::default()
        },
        run_began_ms: None,
        answer: Answer::Page,
        content_hash: None,
        mapping: None,
        mapping_version: None,
        fields: &Map::new(),
        seen,
    };
    versions.judge(&look, site).unwrap().verdict
}

#[test]
fn changes_are_told_and_the_rest_is_not() {
    let (quiet, noisy, twice) = (
        look_at_all(false, false),
        look_at_all(true, false),
        look_at_all(true, true),
    );
    println!("| pages | judged by | false alarms in 1,000 looks | missed |\n|---|---|---|---|");
    for (pages, scores) in [
        ("steady", &quiet),
        ("noisy", &noisy),
        ("noisy, fetched twice at first", &twice),
    ] {
        println!("| {pages} | webfill {}", scores.webfill.line());
        println!(
            "| {pages} | blocks of text, unmasked {}",
            scores.plain.line()
        );
        println!("| {pages} | hash of the page {}", scores.hashed.line());
    }
    for (scores, most) in [(&quiet, 15.0), (&twice, 40.0)] {
        let webfill = &scores.webfill;
        assert!(webfill.false_per_thousand() <= most, "{webfill:?}");
        assert!(webfill.misses * 50 <= webfill.changes, "{webfill:?}");
        assert!(scores.plain.false_per_thousand() > 900.0);
    }
}
