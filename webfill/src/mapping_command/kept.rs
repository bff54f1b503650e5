//! The pages that were fetched to try mappings on. They are kept in a folder, so that each is fetched only once. The
//! folder's index has a line for each request. A page is written before its line, so every page in the index exists.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use webfill_reader::coarse_kind;
use webfill_service::Fault;
use webfill_urls::{Url, page_hash, site};
use webfill_worker::charset::{self, Kind};
use webfill_worker::{Now, SinglePage, is_document};

use super::listed_file::path_in_folder;
use super::sources::{Source, SourcePlace};

/// The name of the index file in a folder of kept pages.
pub const INDEX: &str = "pages.jsonl";
/// The number of hash digits in a file name. They are enough to give each page of a host its own file.
const HASH_DIGITS: usize = 12;

/// A folder of kept pages.
pub struct PageFolder {
    folder: PathBuf,
    lines: Vec<RequestLine>,
}

/// A request, as a line of the index.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct RequestLine {
    /// The requested URL.
    url: String,
    asked_at_ms: i64,
    /// The page that was kept; `None` if the request returned none.
    page: Option<KeptPage>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct KeptPage {
    file: String,
    /// The URL after redirects.
    url: String,
    content_type: Option<String>,
}

impl PageFolder {
    /// Whether pages are kept in the folder.
    pub fn has_pages(folder: &Path) -> bool {
        folder.join(INDEX).is_file()
    }

    /// Represents a folder whose index is not read. It has no known pages or requests.
    pub fn without_index(folder: &Path) -> PageFolder {
        PageFolder {
            folder: folder.to_owned(),
            lines: Vec::new(),
        }
    }

    /// Opens the folder; a missing one has no pages.
    pub fn open(folder: &Path) -> Result<PageFolder, Fault> {
        let index = folder.join(INDEX);
        let text = match fs::read_to_string(&index) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            read => read.map_err(|error| {
                Fault::usage(format!("cannot read {}: {error}", index.display()))
            })?,
        };
        let line = |(number, line): (usize, &str)| {
            let broken = |reason: &dyn std::fmt::Display| {
                Fault::usage(format!("{}:{}: {reason}", index.display(), number + 1))
            };
            let line: RequestLine = serde_json::from_str(line).map_err(|error| broken(&error))?;
            let file = line
                .page
                .as_ref()
                .map(|page| path_in_folder(folder, &page.file));
            match file {
                Some(Err(reason)) => Err(broken(&reason)),
                _ => Ok(line),
            }
        };
        let lines = text.lines().enumerate().map(line);
        Ok(PageFolder {
            folder: folder.to_owned(),
            lines: lines.collect::<Result<_, _>>()?,
        })
    }

    /// The latest kept page for this URL, and the time since it was fetched.
    pub fn latest_page(&self, url: &Url) -> Option<(Source, Duration)> {
        let mut lines = self
            .lines
            .iter()
            .rev()
            .filter(|line| line.url == url.as_str());
        let (line, page) = lines.find_map(|line| Some((line, line.page.as_ref()?)))?;
        let source = self.source(page);
        source.is_existing_file().then(|| (source, line.age()))
    }

    /// The latest version of each kept page, in the order of their first fetches.
    pub fn latest_pages(&self) -> Vec<Source> {
        let mut pages: Vec<&KeptPage> = Vec::new();
        for page in self.lines.iter().filter_map(|line| line.page.as_ref()) {
            match pages.iter().position(|known| known.url == page.url) {
                Some(place) => pages[place] = page,
                None => pages.push(page),
            }
        }
        pages.into_iter().map(|page| self.source(page)).collect()
    }

    /// The time since the last request to the URL's site; `None` if there was none.
    pub fn last_request_ago(&self, url: &Url) -> Option<Duration> {
        let asked = site(url);
        let is_same = |url: &str| Url::parse(url).is_ok_and(|url| site(&url) == asked);
        let same = self.lines.iter().filter(|line| {
            is_same(&line.url) || line.page.as_ref().is_some_and(|page| is_same(&page.url))
        });
        same.map(RequestLine::age).min()
    }

    /// Keeps a page that was fetched from this URL.
    pub fn keep_page(&mut self, url: &Url, page: &SinglePage) -> Result<Source, Fault> {
        let file = file_name(url, page);
        let (path, part) = (
            self.folder.join(&file),
            self.folder.join(format!(".{file}")),
        );
        let written = fs::create_dir_all(&self.folder)
            .and_then(|()| fs::write(&part, &page.body))
            .and_then(|()| fs::rename(&part, &path));
        written.map_err(|error| cannot_write(&path, &error))?;
        let page = KeptPage {
            file,
            url: page.url.to_string(),
            content_type: page.content_type.clone(),
        };
        let source = self.source(&page);
        self.append_request(url, Some(page))?;
        Ok(source)
    }

    /// Notes a request that returned no page. It counts for the delay between requests to its site.
    pub fn note_request(&mut self, url: &Url) -> Result<(), Fault> {
        self.append_request(url, None)
    }

    fn append_request(&mut self, url: &Url, page: Option<KeptPage>) -> Result<(), Fault> {
        let line = RequestLine {
            url: url.to_string(),
            asked_at_ms: Now::read().wall_ms,
            page,
        };
        let index = self.folder.join(INDEX);
        let text = serde_json::to_string(&line).map_err(Fault::error)?;
        let written = fs::create_dir_all(&self.folder).and_then(|()| {
            let mut file = OpenOptions::new().create(true).append(true).open(&index)?;
            file.write_all(format!("{text}\n").as_bytes())
        });
        written.map_err(|error| cannot_write(&index, &error))?;
        self.lines.push(line);
        Ok(())
    }

    fn source(&self, page: &KeptPage) -> Source {
        Source {
            name: page.url.clone(),
            place: SourcePlace::File(self.folder.join(&page.file)),
            url: Url::parse(&page.url).ok(),
            content_type: page.content_type.clone(),
            is_found: false,
        }
    }
}

impl RequestLine {
    fn age(&self) -> Duration {
        let ago_ms = Now::read().wall_ms.saturating_sub(self.asked_at_ms);
        Duration::from_millis(u64::try_from(ago_ms).unwrap_or_default())
    }
}

fn file_name(url: &Url, page: &SinglePage) -> String {
    let content_type = page.content_type.as_deref();
    let extension = match charset::content_kind(content_type, &page.body) {
        _ if is_document(content_type, &page.body) => coarse_kind(&page.body).as_str(),
        Kind::Html => "html",
        Kind::Xml => "xml",
        Kind::Json => "json",
        Kind::Text | Kind::Unsupported => "txt",
    };
    let host = url
        .host_str()
        .unwrap_or_default()
        .replace([':', '[', ']'], "_");
    let hash = page_hash(url.as_str());
    let digits = hash.get(..HASH_DIGITS).unwrap_or_default();
    format!("{host}-{digits}.{extension}")
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Fault {
    Fault::error(format!("cannot write {}: {error}", path.display()))
}
