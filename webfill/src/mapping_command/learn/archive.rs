//! Gathers pages from WARC files. The files are read twice: first to find the URLs, then to read the requested pages.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use webfill_service::Fault;
use webfill_urls::{Url, canonical_url};
use webfill_worker::{ArchivedAnswer, ArchivedBody, WarcReader, warc_files};

use super::gathered::{GatheredPage, PageGatherer, Redirects};

/// The most pages whose body is in another WARC record. Further pages are left out.
const MOST_ELSEWHERE: usize = 200_000;

pub struct Archive {
    files: Vec<PathBuf>,
    max_body_bytes: usize,
    redirects: Redirects,
    /// The URLs of pages whose body is in another WARC record, by the digest of that body.
    elsewhere: HashMap<String, BTreeSet<Url>>,
}

impl Archive {
    pub fn open(path: &Path, max_body_bytes: usize) -> Result<Archive, Fault> {
        let files = match path.is_dir() {
            true => warc_files(path),
            false => path.metadata().map(|_| vec![path.to_owned()]),
        };
        let shown = path.display();
        let files = files
            .map_err(|error| Fault::usage(format!("--warc {shown}: cannot be read: {error}")))?;
        match files.is_empty() {
            true => Err(Fault::usage(format!("--warc {shown}: no WARC file in it"))),
            false => Ok(Archive {
                files,
                max_body_bytes,
                redirects: Redirects::default(),
                elsewhere: HashMap::new(),
            }),
        }
    }

    /// Passes the URL of each page in the WARC files to `each`. Also notes redirects, and bodies in other records.
    pub fn for_each_url(&mut self, each: &mut dyn FnMut(&str)) -> Result<(), Fault> {
        let (mut redirects, mut elsewhere) = (Redirects::default(), HashMap::new());
        let mut waiting = 0;
        let take = |url: Url, answer: ArchivedAnswer| {
            each(url.as_str());
            match (answer.body, answer.payload_digest) {
                (ArchivedBody::Redirect(location), _) => redirects.add_location(&url, &location),
                (ArchivedBody::Elsewhere, Some(digest)) if waiting < MOST_ELSEWHERE => {
                    waiting += 1;
                    let urls: &mut BTreeSet<Url> = elsewhere.entry(digest).or_default();
                    urls.insert(url);
                }
                _ => {}
            }
        };
        self.for_each_answer(true, take)?;
        (self.redirects, self.elsewhere) = (redirects, elsewhere);
        Ok(())
    }

    /// Gathers the requested pages. Call [`Archive::for_each_url`] before.
    pub fn gather(&self, gathering: &mut PageGatherer<'_>) -> Result<(), Fault> {
        let leading = self.redirects.by_target();
        let take = |url: Url, answer: ArchivedAnswer| {
            let ArchivedBody::Here(body) = answer.body else {
                return;
            };
            let digest = answer.payload_digest.as_ref();
            let others = digest.and_then(|digest| self.elsewhere.get(digest));
            for url in std::iter::once(&url).chain(others.into_iter().flatten()) {
                let asked = leading.get(url.as_str()).cloned().unwrap_or_default();
                let names = asked.iter().copied().chain([url.as_str()]);
                if !gathering.has_room_or_count(names) {
                    continue;
                }
                let page = GatheredPage::decode(url.clone(), answer.content_type.as_deref(), &body);
                match page {
                    Some(mut page) => {
                        page.asked = asked.into_iter().map(str::to_owned).collect();
                        gathering.add(page);
                    }
                    None => gathering.note_of_other_kind(url),
                }
            }
        };
        self.for_each_answer(false, take)
    }

    /// Passes all HTTP answers to `each`. A truncated file is read up to its end, and is reported only in the first
    /// pass.
    fn for_each_answer(
        &self,
        is_first: bool,
        mut each: impl FnMut(Url, ArchivedAnswer),
    ) -> Result<(), Fault> {
        for path in &self.files {
            let shown = path.display();
            let mut reader = WarcReader::open(path, self.max_body_bytes)
                .map_err(|error| Fault::error(format!("{shown}: cannot be read: {error}")))?;
            loop {
                match reader.next_answer() {
                    Ok(Some(answer)) => {
                        if let Ok(url) = canonical_url(&answer.url, None) {
                            each(url, answer);
                        }
                    }
                    Ok(None) => break,
                    Err(error) => {
                        if is_first {
                            webfill_service::say!(
                                "webfill: {shown}: truncated, read up to there: {error}"
                            );
                        }
                        break;
                    }
                }
            }
        }
        Ok(())
    }
}
