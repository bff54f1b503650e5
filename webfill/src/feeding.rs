//! Feeds the seeds of a local crawl, on a thread beside the one that watches the crawl: reads the input, puts records
//! into the store, and sends URLs and crawl requests to the dispatcher.
//!
//! The dispatcher answers when a batch and the position in the input are durable. So a resumed crawl continues after
//! the last answered batch. An edited input is read from its start. A resumed crawl feeds all crawl requests again, so
//! that it knows their crawls and waits for them. Unusable lines are listed in a file.

mod broken_list;
mod documents;
mod feeder;
mod list_file;
mod position;
mod reading;
mod records;
mod repeated_list;
mod requests;
mod row_pages;
mod unfillable;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use webfill_api::CrawlSpec;
use webfill_service::Fault;
use webfill_store::{DatasetName, Store};

use crate::summary::{BrokenSeeds, RepeatedSeeds};
pub use documents::DatasetSeeds;
use feeder::Feeder;
pub use reading::{Seeds, Source};
pub use records::{RefreshRule, now_ms, store_fault};
pub use row_pages::RowPages;

/// The keys of the crawls that are fed; the list grows while crawl requests are read.
pub type Crawls = Arc<Mutex<Vec<u32>>>;

/// The seeds, and the crawl that they are fed to.
pub struct FeedInput {
    /// URLs from the command line, which are fed after the seeds.
    pub urls: Vec<String>,
    pub seeds: Option<Source>,
    /// The dataset that the records belong to.
    pub dataset: DatasetName,
    pub refresh: RefreshRule,
    /// The command's own crawl, and its settings.
    pub crawl: u32,
    pub spec: CrawlSpec,
    /// How far in the input an earlier run has durably fed the seeds.
    pub fed_lines: u64,
    pub endpoint: String,
    /// The fields that mappings extract, and the folder of mappings.
    pub extracted: BTreeSet<String>,
    pub mappings: PathBuf,
    /// Recognises pages that list rows.
    pub rows: Arc<RowPages>,
    /// The file that lists broken seeds.
    pub broken_file: PathBuf,
    /// The file that lists lines repeating the record of another line.
    pub repeated_file: PathBuf,
    /// Whether an earlier run has read the whole input. The user may have moved lines since.
    pub is_read_again: bool,
    /// Whether different seeds are expected in each run. Then changed seeds are not reported.
    pub seeds_vary: bool,
    /// Whether to report the dataset to the dispatcher when the first record is read.
    pub notes_dataset: bool,
    pub store: Arc<dyn Store>,
}

/// The results of reading the input.
#[derive(Debug, Default)]
pub struct FeedResult {
    /// The number of valid seeds, including those that are already complete.
    pub good: u64,
    pub broken: BrokenSeeds,
    pub repeated: RepeatedSeeds,
    /// Some of the fields that records want but no mapping extracts.
    pub unfillable: BTreeSet<String>,
}

/// The handle of the feeding thread.
pub struct FeedThread {
    over: Arc<AtomicBool>,
    crawls: Crawls,
    messages: Receiver<String>,
    thread: Option<JoinHandle<Result<FeedResult, Fault>>>,
    fed: FeedResult,
}

impl FeedThread {
    pub fn start(input: FeedInput) -> Result<FeedThread, Fault> {
        let over = Arc::new(AtomicBool::new(false));
        let crawls: Crawls = Arc::new(Mutex::new(vec![input.crawl]));
        let (sender, messages) = mpsc::channel();
        let shared = (Arc::clone(&over), Arc::clone(&crawls));
        let thread = std::thread::Builder::new()
            .name("feeding".into())
            .spawn(move || Feeder::new(input, shared.0, shared.1, sender)?.run())
            .map_err(|error| Fault::error(format!("cannot start feeding: {error}")))?;
        Ok(FeedThread {
            over,
            crawls,
            messages,
            thread: Some(thread),
            fed: FeedResult::default(),
        })
    }

    /// The crawls that are fed: the command's own, and those named by crawl requests.
    pub fn crawls(&self) -> Crawls {
        Arc::clone(&self.crawls)
    }

    /// Messages for the user about the input, during the crawl. Each is returned once.
    pub fn take_messages(&self) -> impl Iterator<Item = String> {
        self.messages.try_iter()
    }

    /// Returns the fault that ended the thread, if one did.
    pub fn check_thread(&mut self) -> Result<(), Fault> {
        match &self.thread {
            Some(thread) if thread.is_finished() => self.join(),
            _ => Ok(()),
        }
    }

    /// Stops reading, even before the end of the input. Returns the findings so far.
    pub fn stop(mut self) -> Result<FeedResult, Fault> {
        self.over.store(true, Ordering::Relaxed);
        self.join()?;
        Ok(self.fed)
    }

    fn join(&mut self) -> Result<(), Fault> {
        if let Some(thread) = self.thread.take() {
            let ended = thread
                .join()
                .map_err(|_| Fault::error("the feeding thread panicked"))?;
            self.fed = ended?;
        }
        Ok(())
    }
}

/// Checks the URLs from the command line. Unlike lines of a file, each of them must be valid.
pub fn check_urls(urls: &[String]) -> Result<(), Fault> {
    for url in urls {
        webfill_urls::canonical_url(url, None).map_err(|error| {
            let advice = match Path::new(url).is_file() {
                true => format!("; to crawl the URLs in this file, write --seeds {url}"),
                false => String::new(),
            };
            Fault::usage(format!("{error}{advice}"))
        })?;
    }
    Ok(())
}
