//! The result of a task, which is filled by the fetch and then by the extraction. The saver ([`crate::save`]) writes it
//! to the store and then reports it to the dispatcher as a [`TaskDone`]. It exists only in memory. If the worker dies
//! before the report, the task is fetched again, and the store overwrites the same page.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::header::REFRESH;
use serde_json::{Map, Value};
use tracing::Span;
use webfill_mapping::is_nofollow_tag;
use webfill_store::{Listing, PageOfList, RowCounts, RowLead, SampleText, Saved, Validators};
use webfill_wire::{
    CrawlSettings, Evidence, Follow, LinkKind, NO_RECORD, Outcome, SiteClock, Task, TaskDone,
    evidence_of_likeness, format_row_link, parse_row_link, with_unmatched_mark,
};

use crate::fetch::Fetched;
use crate::kept_body::KeptBody;
use crate::memory::MemoryPermit;
use crate::now::{millis_rounded_up, now_ms};
use crate::politeness::Answer;
use crate::response_headers;
use crate::scripts::UnreadPage;

/// The result of a task, filled by its fetch and its extraction.
#[derive(Debug)]
pub struct TaskResult {
    /// The span of all log lines about the task.
    pub span: Span,
    pub task: Task,
    pub crawl: Arc<CrawlSettings>,
    pub outcome: Outcome,
    /// The error, for the log.
    pub error: Option<String>,
    pub status_code: Option<u16>,
    pub content_type: Option<String>,
    pub body_bytes: u64,
    pub content_hash: Option<String>,
    pub mapping: Option<String>,
    pub mapping_version: Option<String>,
    pub template: Option<String>,
    /// The page's text, if it is kept as a sample for repairs of mappings.
    pub sample: Option<SampleText>,
    pub fields: Map<String, Value>,
    /// See [`webfill_store::Page::alternatives`].
    pub alternatives: Map<String, Value>,
    pub listings: Vec<Listing>,
    /// See [`webfill_store::Page::list`].
    pub list: Option<PageOfList>,
    /// See [`webfill_store::Page::row_counts`].
    pub row_counts: Vec<RowCounts>,
    pub links: Vec<String>,
    /// Sitemaps, and the pages that a sitemap lists. They are reported to the dispatcher, not stored.
    pub listed: Vec<(LinkKind, String)>,
    /// The response's headers, if the crawl wants them and there was a response.
    pub headers: Option<Map<String, Value>>,
    /// Whether the response forbids following the page's links, by `X-Robots-Tag`.
    pub is_nofollow: bool,
    /// The page's text, if the crawl wants it and it is not too long.
    pub body: Option<Arc<str>>,
    /// The page's body, if the crawl keeps bodies and it is not too long.
    pub kept_body: Option<KeptBody>,
    /// The metadata of a document, which says how the reading ended; or the metadata of a sitemap.
    pub document: Option<Map<String, Value>>,
    /// The validators for conditional requests for the page.
    pub validators: Option<Validators>,
    /// The size of the stored page, if the page has not changed (status 304).
    pub stored_bytes: Option<u64>,
    /// The page's snapshot, if the crawl compares pages with earlier versions.
    pub snapshot: Option<Vec<u8>>,
    pub redirect: Option<String>,
    /// The response's header `Refresh`.
    pub refresh: Option<String>,
    pub started_at_ms: i64,
    pub elapsed: Duration,
    /// The earliest start of the site's next request, and the delay between two requests, if known.
    pub next_start: Option<Instant>,
    pub delay: Option<Duration>,
    /// Evidence about the site, for the dispatcher; see [`TaskDone`].
    pub evidence: Option<Evidence>,
    /// The hash of an answer that resembles a block. The dispatcher compares it with other answers of the site.
    pub likeness: Option<u64>,
    /// The data needed to try the page in the browser, if it shows nothing without its scripts.
    pub unread: Option<UnreadPage>,
    /// The permit for the worker's memory that the result takes, from the extraction until the result is saved.
    pub memory: Option<MemoryPermit>,
}

impl TaskResult {
    /// The result of a task whose page was not requested.
    pub fn of_unfetched(task: Task, crawl: Arc<CrawlSettings>, outcome: Outcome) -> TaskResult {
        TaskResult {
            span: Span::current(),
            task,
            crawl,
            outcome,
            error: None,
            status_code: None,
            content_type: None,
            body_bytes: 0,
            content_hash: None,
            mapping: None,
            mapping_version: None,
            template: None,
            sample: None,
            fields: Map::new(),
            alternatives: Map::new(),
            listings: Vec::new(),
            list: None,
            row_counts: Vec::new(),
            links: Vec::new(),
            listed: Vec::new(),
            headers: None,
            is_nofollow: false,
            body: None,
            kept_body: None,
            document: None,
            validators: None,
            stored_bytes: None,
            snapshot: None,
            redirect: None,
            refresh: None,
            started_at_ms: now_ms(),
            elapsed: Duration::ZERO,
            next_start: None,
            delay: None,
            evidence: None,
            likeness: None,
            unread: None,
            memory: None,
        }
    }

    /// Copies the data of the request, to read the page once more in another form.
    pub fn copy_for_rereading(&self) -> TaskResult {
        TaskResult {
            status_code: self.status_code,
            content_type: self.content_type.clone(),
            body_bytes: self.body_bytes,
            headers: self.headers.clone(),
            started_at_ms: self.started_at_ms,
            elapsed: self.elapsed,
            next_start: self.next_start,
            delay: self.delay,
            likeness: self.likeness,
            ..TaskResult::of_unfetched(self.task.clone(), Arc::clone(&self.crawl), Outcome::Ok)
        }
    }

    /// Takes over everything from the response except the body, which the extraction gets.
    pub fn with_fetched(mut self, fetched: &mut Fetched) -> TaskResult {
        self.outcome = fetched.outcome;
        self.evidence = site_evidence(&self.task, fetched);
        self.error = fetched.error.take();
        self.status_code = fetched.status_code;
        self.content_type = fetched.content_type.take();
        self.redirect = fetched.redirect.take();
        let refresh = fetched.headers.get(REFRESH);
        self.refresh = refresh.and_then(|value| Some(value.to_str().ok()?.to_owned()));
        self.body_bytes = fetched.body.len() as u64;
        let tags = fetched.headers.get_all("x-robots-tag").iter();
        let mut tags = tags.filter_map(|tag| tag.to_str().ok());
        self.is_nofollow = tags.any(is_nofollow_tag);
        if self.crawl.headers && fetched.status_code.is_some() {
            self.headers = Some(response_headers::to_json(&fetched.headers));
        }
        self
    }

    /// Whether a page was read but has no mapping. Sitemaps need none.
    pub fn is_unmatched(&self) -> bool {
        let document = self.document.as_ref();
        let kind = document.and_then(|document| document.get("type"));
        let is_sitemap = kind.is_some_and(|kind| kind == "sitemap");
        self.outcome == Outcome::Ok && self.mapping.is_none() && !is_sitemap
    }

    /// An upper estimate of the memory that the result takes until it is saved.
    pub fn memory_bytes(&self) -> usize {
        let listed = self.listed.iter().map(|(_, link)| link);
        let links = self.links.iter().chain(listed);
        let links = links.map(|link| PER_VALUE + link.len());
        let fields = memory_of_object(&self.fields) + self.memory_of_rows();
        let headers = self.headers.as_ref().map_or(0, memory_of_object);
        let body = self.body.as_ref().map_or(0, |body| body.len());
        let sample = self.sample.as_ref().map_or(0, |sample| sample.text.len());
        let document = self.document.as_ref().map_or(0, memory_of_object);
        let snapshot = self.snapshot.as_ref().map_or(0, Vec::len);
        let kept = self.kept_body.as_ref().map_or(0, |kept| kept.body.len());
        COPIES
            * (links.sum::<usize>() + fields + headers + document + body + sample + snapshot + kept)
    }

    /// How many rows the page lists.
    pub fn rows(&self) -> usize {
        self.listings.iter().map(|listing| listing.rows.len()).sum()
    }

    fn memory_of_rows(&self) -> usize {
        let rows = self.listings.iter().flat_map(|listing| &listing.rows);
        rows.map(|row| {
            let links = row.links.iter().map(|link| PER_VALUE + link.len());
            PER_VALUE + memory_of_object(&row.fields) + links.sum::<usize>()
        })
        .sum()
    }

    /// Converts the result to the message for the dispatcher. If all records of the page are complete now, its links
    /// are left out, because no record needs them.
    pub fn into_task_done(self, saved: Saved, now: Instant) -> TaskDone {
        let Saved {
            resolved,
            open: _,
            leads,
        } = saved;
        let next_in = self
            .next_start
            .map_or(Duration::ZERO, |next| next.saturating_duration_since(now));
        let is_unmatched = self.is_unmatched();
        // A link on a page must not look like a link that the worker has marked.
        let mut links = self.links;
        links.retain(|link| {
            LinkKind::parse(link).0 == LinkKind::Link && parse_row_link(link).is_none()
        });
        let likeness = self.likeness.filter(|_| self.outcome == Outcome::Ok);
        let likeness =
            likeness.map(|answer| evidence_of_likeness(&self.task.url, self.status_code, answer));
        let noticed = self.evidence.or(likeness);
        let evidence = match is_unmatched {
            true => Some(with_unmatched_mark(noticed)),
            false => noticed,
        };
        let complete = !self.task.records.is_empty() && resolved.len() >= self.task.records.len();
        if complete {
            links.clear();
        }
        // Sitemaps and the pages they list belong to no record.
        links.extend(self.listed.iter().map(|(kind, url)| kind.mark_url(url)));
        let of_rows = match self.crawl.follow {
            Follow::All => with_complete_leads(leads, &self.listings),
            Follow::Mapped | Follow::None => leads,
        };
        links.extend(marked_leads(&of_rows, &self.task.url));
        TaskDone {
            task: self.task.task,
            delivery: self.task.delivery,
            outcome: self.outcome,
            status_code: self.status_code,
            body_bytes: self.body_bytes,
            fields: self.fields.len() as u32,
            rows: sum_rows(&self.row_counts, |counts| counts.rows),
            rows_stored: sum_rows(&self.row_counts, RowCounts::stored),
            links,
            redirect: self.redirect,
            resolved,
            clock: SiteClock {
                next_in_ms: millis_rounded_up(next_in),
                delay_ms: self.delay.map(millis_rounded_up),
            },
            evidence,
        }
    }
}

/// The sum over the row counts of a page. The sum fits into a `u32`, because a page has at most 100,000 rows for each
/// rule of its mapping.
fn sum_rows(counts: &[RowCounts], of: fn(&RowCounts) -> u64) -> u32 {
    u32::try_from(counts.iter().map(of).sum::<u64>()).unwrap_or(u32::MAX)
}

/// Adds the links of rows whose records are complete. If a crawl follows all links, it needs them, too; they belong to
/// no record.
fn with_complete_leads(mut leads: Vec<RowLead>, listings: &[Listing]) -> Vec<RowLead> {
    let led_to: HashSet<String> = leads.iter().flat_map(|lead| lead.urls.clone()).collect();
    let rows = listings.iter().flat_map(|listing| &listing.rows);
    let links = rows.flat_map(|row| &row.links);
    leads.push(RowLead {
        record: NO_RECORD.to_owned(),
        urls: links
            .filter(|link| !led_to.contains(*link))
            .cloned()
            .collect(),
    });
    leads
}

/// The links of rows whose records are not complete, each with the key of its record. Links that do not fit into a
/// message are left out. The next fetch of the page finds them again, because their records stay incomplete.
fn marked_leads(leads: &[RowLead], page: &str) -> Vec<String> {
    let urls = |lead: &RowLead| lead.urls.len();
    let of_rows: usize = leads.iter().map(urls).sum();
    let marked = leads.iter().flat_map(|lead| {
        let urls = lead.urls.iter();
        urls.map(|url| format_row_link(&lead.record, url))
    });
    let mut bytes = 0;
    let fitting = marked.take_while(|text| {
        bytes += text.len();
        bytes <= MAX_LEADS_BYTES
    });
    let kept: Vec<String> = fitting.collect();
    if kept.len() < of_rows {
        tracing::warn!(
            event = "links_cut",
            url = page,
            links = of_rows,
            kept = kept.len(),
            "the rows of a page exceed the limit of links"
        );
    }
    kept
}

/// The limit on the bytes of all row links of one page, each with the key of its record.
const MAX_LEADS_BYTES: usize = 8 << 20;

/// How many copies of a result exist at the same time: it is copied for the store, and converted to the store's own
/// form.
const COPIES: usize = 3;

/// How many bytes a value takes in memory in addition to its text.
const PER_VALUE: usize = 100;

fn memory_of_object(object: &Map<String, Value>) -> usize {
    let members = object
        .iter()
        .map(|(name, value)| name.len() + memory_of(value));
    members.sum::<usize>()
}

/// The memory that a value takes, in bytes. The recursion ends, because mappings limit the depth of values.
fn memory_of(value: &Value) -> usize {
    let content = match value {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(memory_of).sum(),
        Value::Object(object) => memory_of_object(object),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    PER_VALUE + content
}

/// The evidence that the site could not be reached, or that it demands fewer requests.
fn site_evidence(task: &Task, fetched: &Fetched) -> Option<Evidence> {
    let sign = match (fetched.answer, fetched.status_code) {
        (Answer::Silent, _) => fetched.error.clone()?,
        (answer, Some(status)) if answer.asks_to_wait() => format!("the server returned {status}"),
        _ => return None,
    };
    Some(Evidence {
        url: task.url.clone(),
        status_code: fetched.status_code,
        sign,
        no_route: fetched.no_route,
    })
}
