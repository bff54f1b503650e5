//! Reads kept pages again, in batches. For each batch it looks up the stored pages, runs the mappings, compares the
//! values, and stores the new ones.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use webfill_mapping::MappingSet;
use webfill_service::signals::{self, SignalRequest};
use webfill_service::{ExitStatus, Fault};
use webfill_store::{
    CrawlId, ExportError, Reread, Store, StoreError, Trial, ValueChangeCounter, parse_iso_time,
    row_counts,
};
use webfill_urls::content_hash;
use webfill_wire::Outcome;
use webfill_worker::{PageRead, PageReader, PageToRead};

use super::busy_store::retry_while_busy;
use super::candidate::Candidate;
use super::report::{Report, SkipReason};
use super::seen::SeenPages;
use super::{ExtractOptions, bodies, documents, warc};
use crate::feeding::now_ms;

/// The source of kept pages.
pub enum Source {
    Bodies(bodies::KeptBodies),
    Warc(warc::ArchivePages),
    Documents(documents::KeptDocuments),
}

impl Source {
    pub fn name(&self) -> &'static str {
        match self {
            Source::Bodies(_) => "bodies",
            Source::Warc(_) => "warc",
            Source::Documents(_) => "documents",
        }
    }

    /// The next batch of pages; an empty list means the end.
    async fn next_batch(&mut self) -> Result<Vec<Candidate>, Fault> {
        match self {
            Source::Bodies(kept) => kept.next_batch().await,
            Source::Warc(archive) => archive.next_batch(),
            Source::Documents(kept) => kept.next_batch().await,
        }
    }

    /// Adds unreadable and skipped pages to the report.
    pub fn report_skipped_pages(self, report: &mut Report) {
        if let Source::Warc(archive) = self {
            report.torn = archive.torn;
            report.left_out = archive.left_out;
        }
    }

    /// The message for the user if no page was found.
    pub fn empty_reason(name: &str, crawl: &CrawlId) -> String {
        match name {
            "bodies" => format!(
                "crawl {crawl} has no kept bodies: crawl with --keep-bodies, or read an archive with --warc DIR"
            ),
            "warc" => format!("no page of crawl {crawl} is in the WARC files of this folder"),
            _ => format!("no document of crawl {crawl} is in this folder"),
        }
    }
}

/// The parts of a stored page that are needed to read the page again.
struct StoredPage {
    url: String,
    content_type: Option<String>,
    content_hash: String,
    outcome: Outcome,
    attempts: u32,
    started_at_ms: i64,
    mapping: Option<String>,
    mapping_version: Option<String>,
    template: Option<String>,
    fields: Map<String, Value>,
    alternatives: Map<String, Value>,
    records: Vec<String>,
    links: Vec<String>,
    depth: u16,
    is_document: bool,
    /// Whether the document could be read when it was fetched.
    was_readable: bool,
}

impl StoredPage {
    /// Takes the parts from a stored page. `None` if its outcome shows that the crawl has not read the page.
    fn from_page(page: &Map<String, Value>) -> Option<StoredPage> {
        let text = |name: &str| page.get(name).and_then(Value::as_str).map(str::to_owned);
        let object = |name: &str| match page.get(name) {
            Some(Value::Object(object)) => object.clone(),
            _ => Map::new(),
        };
        let outcome: Outcome = text("outcome")?.parse().ok()?;
        if !matches!(
            outcome,
            Outcome::Ok | Outcome::NotModified | Outcome::ExtractError
        ) {
            return None;
        }
        let texts = |name: &str| -> Vec<String> {
            let texts = page.get(name).and_then(Value::as_array);
            let texts = texts.into_iter().flatten().filter_map(Value::as_str);
            texts.map(str::to_owned).collect()
        };
        let depth = page.get("depth").and_then(Value::as_u64);
        let attempts = page.get("attempts").and_then(Value::as_u64)?;
        Some(StoredPage {
            url: text("url")?,
            content_type: text("content_type"),
            content_hash: text("content_hash")?,
            outcome,
            attempts: u32::try_from(attempts).ok()?,
            started_at_ms: parse_iso_time(&text("started_at")?)?,
            mapping: text("mapping"),
            mapping_version: text("mapping_version"),
            template: text("template"),
            records: texts("records"),
            links: texts("links"),
            depth: depth.map_or(0, |depth| u16::try_from(depth).unwrap_or(u16::MAX)),
            // Sitemaps have this member, too, but they are not documents.
            is_document: page
                .get("document")
                .is_some_and(|document| document["sha256"].is_string()),
            was_readable: page.get("document").is_some_and(|document| {
                matches!(document["status"].as_str(), Some("text" | "no_text"))
            }),
            fields: object("fields"),
            alternatives: object("alternatives"),
        })
    }

    /// The data to store after the page was read again.
    fn into_reread(self, page_id: String, read: PageRead) -> Reread {
        let is_same = self.outcome != Outcome::ExtractError
            && self.mapping == read.mapping
            && self.mapping_version == read.mapping_version
            && self.template == read.template
            && self.fields == read.fields
            && self.alternatives == read.alternatives;
        Reread {
            page_id,
            url: self.url,
            attempts: self.attempts,
            started_at_ms: self.started_at_ms,
            content_hash: self.content_hash,
            is_changed: !is_same,
            outcome: match self.outcome {
                Outcome::ExtractError => Outcome::Ok,
                other => other,
            },
            mapping: read.mapping,
            mapping_version: read.mapping_version,
            template: read.template,
            fields: read.fields,
            alternatives: read.alternatives,
            row_counts: row_counts(&read.listings, &self.records).0,
            listings: read.listings,
            records: self.records,
            links: self.links,
            depth: self.depth,
            at_ms: now_ms(),
        }
    }
}

/// The members of a stored page that are loaded. The other members may be long.
const PARTS: [&str; 16] = [
    "_id",
    "url",
    "content_type",
    "content_hash",
    "outcome",
    "attempts",
    "started_at",
    "mapping",
    "mapping_version",
    "template",
    "records",
    "links",
    "depth",
    "document",
    "fields",
    "alternatives",
];

/// Reads kept pages again with the current mappings, and stores the new values, or only reports them in a dry run.
pub struct PageRereader<'r> {
    store: &'r dyn Store,
    reader: &'r PageReader,
    mappings: &'r MappingSet,
    options: &'r ExtractOptions,
    seen: SeenPages,
    report: Report,
    /// In a dry run: determines what would change, without changing it.
    trial: Option<Arc<Trial>>,
    /// Counts the values of records that change.
    values: ValueChangeCounter,
}

impl<'r> PageRereader<'r> {
    pub fn new(
        store: &'r dyn Store,
        reader: &'r PageReader,
        mappings: &'r MappingSet,
        options: &'r ExtractOptions,
        report: Report,
    ) -> Result<PageRereader<'r>, StoreError> {
        let trial = options.dry_run.then(Trial::new).transpose()?;
        Ok(PageRereader {
            store,
            reader,
            mappings,
            options,
            seen: SeenPages::default(),
            report,
            trial: trial.map(Arc::new),
            values: ValueChangeCounter::new()?,
        })
    }

    pub fn into_report(mut self) -> Result<Report, StoreError> {
        self.report.records = self.values.counts()?;
        Ok(self.report)
    }

    /// Reads all pages of the source. After an interruption it returns earlier.
    pub async fn read_all(&mut self, source: &mut Source) -> Result<ExitStatus, Fault> {
        loop {
            let candidates = source.next_batch().await?;
            if candidates.is_empty() {
                return Ok(ExitStatus::Done);
            }
            if !self.read_batch(candidates).await? {
                return Ok(ExitStatus::Interrupted);
            }
        }
    }

    /// Reads a batch. Returns false after an interruption; all results until then are stored.
    async fn read_batch(&mut self, candidates: Vec<Candidate>) -> Result<bool, Fault> {
        let stored = self.load_stored_pages(&candidates).await?;
        let mut rereads = Vec::new();
        let mut is_whole = true;
        for candidate in candidates {
            if signals::received_request() != SignalRequest::Nothing {
                is_whole = false;
                break;
            }
            if self.seen.contains(&candidate.page_id) {
                continue;
            }
            let page_id = candidate.page_id.clone();
            let Some(page) = stored.get(&page_id) else {
                self.report.count_skipped(SkipReason::NotStored);
                continue;
            };
            if let Some(page) = StoredPage::from_page(page) {
                rereads.extend(self.reread_page(candidate, page).await);
            } else {
                self.report.count_skipped(SkipReason::OfAnotherFetch);
            }
        }
        self.apply_rereads(rereads).await?;
        Ok(is_whole)
    }

    /// The stored pages of candidates, by their keys.
    async fn load_stored_pages(
        &self,
        candidates: &[Candidate],
    ) -> Result<HashMap<String, Map<String, Value>>, Fault> {
        let unseen = candidates.iter().map(|one| one.page_id.clone());
        let ids: Vec<String> = unseen.filter(|id| !self.seen.contains(id)).collect();
        let find = async || {
            let mut pages = HashMap::new();
            let mut each = |page: Value| {
                if let Value::Object(mut page) = page {
                    page.retain(|name, _| PARTS.contains(&name.as_str()));
                    let id = page["_id"].as_str().unwrap_or_default().to_owned();
                    pages.insert(id, page);
                }
                Ok(())
            };
            match self.store.pages(ids.clone(), &mut each).await {
                Err(ExportError::Store(error)) => Err(error),
                found => Ok(found.map(|_| pages)),
            }
        };
        retry_while_busy(find).await?.map_err(Fault::error)
    }

    /// Reads a page if the candidate is its body, and counts the differences from the stored values.
    async fn reread_page(&mut self, candidate: Candidate, page: StoredPage) -> Option<Reread> {
        self.report.has_found = true;
        let is_same = candidate.content_hash.map(|hash| hash == page.content_hash);
        if is_same == Some(false) {
            self.report.count_skipped(SkipReason::OfAnotherFetch);
            return None;
        }
        if !self.has_wanted_mapping(&page) {
            return None;
        }
        let body = match candidate.content.into_body() {
            Ok(body) => body,
            Err(reason) => {
                self.report.note_failure(&page.url, &reason);
                return None;
            }
        };
        if !page.is_document && content_hash(&body) != page.content_hash {
            self.report.count_skipped(SkipReason::OfAnotherFetch);
            return None;
        }
        let read = self.reader.read(PageToRead {
            url: page.url.clone(),
            content_type: page.content_type.clone(),
            body,
            is_rendered: candidate.is_rendered,
            is_document: page.is_document,
            was_readable: page.was_readable,
        });
        let read = read.await;
        // For a document, the stored hash is that of its text, which is known only after reading.
        let is_other = read.content_hash.as_ref() != Some(&page.content_hash);
        if is_same.is_none() && is_other && read.outcome == Outcome::Ok {
            self.report.count_skipped(SkipReason::OfAnotherFetch);
            return None;
        }
        self.seen.add(&candidate.page_id);
        if read.outcome != Outcome::Ok {
            let reason = read.error.unwrap_or_default();
            self.report.note_failure(&page.url, &reason);
            return None;
        }
        self.count_differences(&page, &read);
        Some(page.into_reread(candidate.page_id, read))
    }

    /// Whether the page belongs to the mapping that `--mapping` names. Without this flag, every page does.
    fn has_wanted_mapping(&self, page: &StoredPage) -> bool {
        let Some(wanted) = &self.options.mapping else {
            return true;
        };
        let now = self.mappings.find(&page.url);
        let now = now.map(|index| self.mappings.name(index));
        page.mapping.as_ref() == Some(wanted) || now == Some(wanted.as_str())
    }

    fn count_differences(&mut self, page: &StoredPage, read: &PageRead) {
        let mapping = read.mapping.as_deref().or(page.mapping.as_deref());
        let index = mapping.and_then(|name| self.mappings.find_by_name(name));
        let declared = index.map(|index| self.mappings.fields_of(index));
        self.report.count_differences(
            mapping,
            declared.unwrap_or_default(),
            (&page.url, &page.fields, &read.fields),
        );
        self.report.count_rows(mapping, &read.listings);
    }

    /// Stores the new values; in a dry run, only determines what would change.
    async fn apply_rereads(&mut self, rereads: Vec<Reread>) -> Result<(), Fault> {
        if rereads.is_empty() {
            return Ok(());
        }
        let put = async || {
            let put = self.store.put_reread(rereads.clone(), self.trial.clone());
            let answers = put.await;
            // Count the changes of pages that were stored, even if others must be retried.
            for answer in answers.iter().flatten() {
                self.values.add(&answer.changes)?;
            }
            let mut failed = answers.iter().filter_map(|answer| answer.as_ref().err());
            match failed.find(|error| error.is_retry() || error.is_fatal()) {
                Some(error) => Err(error.clone()),
                None => Ok(answers),
            }
        };
        let answers = retry_while_busy(put).await?;
        for (reread, answer) in rereads.iter().zip(answers) {
            match answer {
                Ok(answer) => self.report.count_answer(reread.is_changed, &answer),
                Err(error) => self.report.note_failure(&reread.url, &error.to_string()),
            }
        }
        Ok(())
    }
}
