//! Reads pages from an archive (`--warc`). A WARC record may refer to another record with the same body instead of
//! repeating the body. These bodies are found in a second pass over all files.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use webfill_service::Fault;
use webfill_store::{CrawlId, page_id};
use webfill_urls::canonical_url;
use webfill_worker::{ArchivedAnswer, ArchivedBody, WarcReader, warc_files};

use super::candidate::{Candidate, Content};

/// A batch ends after this many pages or bytes.
const BATCH_PAGES: usize = 32;
const BATCH_BYTES: usize = 8 << 20;

/// The most pages that wait for a body from another record. Further pages are left out and counted.
const MOST_AWAITED: usize = 200_000;

pub struct ArchivePages {
    crawl: CrawlId,
    files: Vec<PathBuf>,
    max_body_bytes: usize,
    left: VecDeque<PathBuf>,
    open: Option<(PathBuf, WarcReader)>,
    /// The keys of pages whose body is in another record, by the digest of that body.
    awaited: HashMap<String, Vec<String>>,
    awaited_pages: usize,
    is_second_pass: bool,
    /// The number of pages that were left out because too many others waited for bodies.
    pub left_out: u64,
    /// Messages about damaged WARC files, which could be read only in part.
    pub torn: Vec<String>,
}

impl ArchivePages {
    pub fn open(
        folder: &Path,
        crawl: &CrawlId,
        max_body_bytes: usize,
    ) -> Result<ArchivePages, Fault> {
        let files = warc_files(folder).map_err(|error| {
            Fault::error(format!("--warc {}: cannot read: {error}", folder.display()))
        })?;
        Ok(ArchivePages {
            crawl: crawl.clone(),
            left: files.iter().cloned().collect(),
            files,
            max_body_bytes,
            open: None,
            awaited: HashMap::new(),
            awaited_pages: 0,
            is_second_pass: false,
            left_out: 0,
            torn: Vec::new(),
        })
    }

    /// The next batch of pages; an empty list means the end.
    pub fn next_batch(&mut self) -> Result<Vec<Candidate>, Fault> {
        let mut batch = Vec::new();
        let mut bytes = 0;
        while batch.len() < BATCH_PAGES && bytes < BATCH_BYTES {
            let Some(answer) = self.next_answer()? else {
                break;
            };
            let of_answer = self.candidates_from(answer);
            bytes += of_answer.iter().map(Candidate::held_bytes).sum::<usize>();
            batch.extend(of_answer);
        }
        Ok(batch)
    }

    /// The next HTTP answer of the archive. After the last file, all files are read a second time if pages still wait
    /// for bodies.
    fn next_answer(&mut self) -> Result<Option<ArchivedAnswer>, Fault> {
        loop {
            if let Some((path, reader)) = &mut self.open {
                match reader.next_answer() {
                    Ok(Some(answer)) => return Ok(Some(answer)),
                    Ok(None) => {}
                    Err(error) if !self.is_second_pass => {
                        let torn =
                            format!("{}: truncated, read up to there: {error}", path.display());
                        self.torn.push(torn);
                    }
                    Err(_) => {}
                }
                self.open = None;
            }
            if self.left.is_empty() && !self.is_second_pass && !self.awaited.is_empty() {
                self.is_second_pass = true;
                self.left = self.files.iter().cloned().collect();
            }
            let Some(path) = self.left.pop_front() else {
                return Ok(None);
            };
            match WarcReader::open(&path, self.max_body_bytes) {
                Ok(reader) => self.open = Some((path, reader)),
                // When the file was listed, it was still being written. Since then it was renamed to its final name.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    let complete = path.with_extension("");
                    if complete.exists() {
                        self.left.push_front(complete);
                    }
                }
                Err(error) => {
                    let path = path.display();
                    return Err(Fault::error(format!("{path}: cannot be read: {error}")));
                }
            }
        }
    }

    fn candidates_from(&mut self, answer: ArchivedAnswer) -> Vec<Candidate> {
        let Ok(url) = canonical_url(&answer.url, None) else {
            return Vec::new();
        };
        let id = page_id(&self.crawl.app_id, &self.crawl.crawl_id, url.as_str());
        match (answer.body, answer.payload_digest, self.is_second_pass) {
            (ArchivedBody::Here(body), _, false) => vec![new_candidate(id, Content::Plain(body))],
            (ArchivedBody::Here(body), Some(digest), true) => {
                let Some(ids) = self.awaited.remove(&digest) else {
                    return Vec::new();
                };
                let body: Arc<[u8]> = body.into();
                ids.into_iter()
                    .map(|id| new_candidate(id, Content::Shared(Arc::clone(&body))))
                    .collect()
            }
            (ArchivedBody::Elsewhere, Some(digest), false) => {
                self.note_awaited_body(digest, id);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn note_awaited_body(&mut self, digest: String, id: String) {
        let waiting = self.awaited.get(&digest);
        if waiting.is_some_and(|ids| ids.contains(&id)) {
            return;
        }
        // If more pages share one body, they are probably errors or placeholders, so they need not wait for it.
        let is_full = waiting.is_some_and(|ids| ids.len() >= BATCH_PAGES);
        if is_full || self.awaited_pages >= MOST_AWAITED {
            self.left_out += 1;
            return;
        }
        self.awaited_pages += 1;
        self.awaited.entry(digest).or_default().push(id);
    }
}

fn new_candidate(page_id: String, content: Content) -> Candidate {
    Candidate {
        page_id,
        content_hash: None,
        is_rendered: false,
        content,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_beyond_the_limit_of_waiting_pages_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let crawl = CrawlId::new("local", "test");
        let mut archive = ArchivePages::open(folder.path(), &crawl, 1 << 20).unwrap();
        let answer = |number: usize, body| ArchivedAnswer {
            url: format!("http://people.example/{number}"),
            payload_digest: Some("sha1:A".to_owned()),
            content_type: None,
            body,
        };
        for number in (0..BATCH_PAGES + 3).chain(0..2) {
            let of_answer = archive.candidates_from(answer(number, ArchivedBody::Elsewhere));
            assert!(of_answer.is_empty());
        }
        assert_eq!(archive.left_out, 3);
        archive.is_second_pass = true;
        let body = ArchivedBody::Here(b"body".to_vec());
        assert_eq!(archive.candidates_from(answer(0, body)).len(), BATCH_PAGES);
    }
}
