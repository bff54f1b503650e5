//! Feeds seeds: reads the input, puts its records into the store, hands its URLs to the
//! dispatcher, on a thread beside the one that watches the crawl.
//!
//! A batch is answered when it is durable, together with how far the input has been read, so a
//! resumed crawl goes on behind the last answer. Lines that cannot be read are listed in a file.

mod broken_list;
mod documents;
mod named_crawl;
mod places;
mod position;
mod reading;
mod records;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use serde_json::Value;
use webfill_dispatcher::control::{Request, SeedUrl};
use webfill_dispatcher::crawl_spec::CrawlSpec;
use webfill_startup::Fault;
use webfill_store::{CrawlId, Store};
use webfill_wire::Lane;

use crate::control_client::ControlClient;
use crate::seeds::{Seed, SeedFault};
use crate::summary::BrokenSeeds;
use broken_list::BrokenList;
pub use documents::DatasetSeeds;
use named_crawl::named_crawl;
use position::Position;
use reading::{Chunk, Next, Reading};
pub use reading::{Seeds, Source};
use records::{Put, Records};
pub use records::{now_ms, store_fault};

/// Seeds handed over in one go.
const BATCH: usize = 500;

/// Fields told that no mapping extracts.
const UNFILLABLE_TOLD: usize = 20;

/// The keys of the crawls that are fed; it grows while seeds are read.
pub type Crawls = Arc<Mutex<Vec<u32>>>;

/// What is fed, to which crawl.
pub struct Input {
    /// From the command line: read after the seeds.
    pub urls: Vec<String>,
    pub seeds: Option<Source>,
    /// See [`Records::refresh`].
    pub refresh: bool,
    /// The command's own crawl, and what it asks for.
    pub crawl: u32,
    pub spec: CrawlSpec,
    /// How much of the input is durable from an earlier run.
    pub fed_lines: u64,
    pub endpoint: String,
    /// The fields that mappings extract.
    pub extracted: BTreeSet<String>,
    /// Where broken seeds are listed.
    pub broken_file: PathBuf,
    pub store: Arc<dyn Store>,
}

/// What was found in the input.
#[derive(Debug, Default)]
pub struct Fed {
    pub broken: BrokenSeeds,
    /// Fields that records want and that no mapping extracts; the first few.
    pub unfillable: BTreeSet<String>,
}

/// The thread.
pub struct Feeding {
    over: Arc<AtomicBool>,
    crawls: Crawls,
    thread: Option<JoinHandle<Result<Fed, Fault>>>,
    fed: Fed,
}

impl Feeding {
    pub fn start(input: Input) -> Result<Feeding, Fault> {
        let over = Arc::new(AtomicBool::new(false));
        let crawls: Crawls = Arc::new(Mutex::new(vec![input.crawl]));
        let told = (Arc::clone(&over), Arc::clone(&crawls));
        let thread = std::thread::Builder::new()
            .name("feeding".into())
            .spawn(move || Feeder::new(input, told.0, told.1)?.run())
            .map_err(|error| Fault::error(format!("cannot start feeding: {error}")))?;
        Ok(Feeding {
            over,
            crawls,
            thread: Some(thread),
            fed: Fed::default(),
        })
    }

    /// The crawls that have seeds: the command's own, and those that its seeds name.
    pub fn crawls(&self) -> Crawls {
        Arc::clone(&self.crawls)
    }

    /// Tells whether it was ended by a fault.
    pub fn check(&mut self) -> Result<(), Fault> {
        match &self.thread {
            Some(thread) if thread.is_finished() => self.join(),
            _ => Ok(()),
        }
    }

    /// Stops reading, if there is more to read, and tells what was found.
    pub fn stop(mut self) -> Result<Fed, Fault> {
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

/// Judges URLs that were typed: unlike lines of a file, each of them must be right.
pub fn check_urls(urls: &[String]) -> Result<(), Fault> {
    for url in urls {
        webfill_urls::canonical(url, None).map_err(Fault::usage)?;
    }
    Ok(())
}

struct Feeder {
    input: Input,
    over: Arc<AtomicBool>,
    crawls: Crawls,
    /// By application and crawl id: the crawls that seeds have named.
    named: HashMap<CrawlId, u32>,
    client: ControlClient,
    records: Records,
    broken: BrokenList,
    /// Seeds are told by their documents' ids, not by lines.
    is_dataset: bool,
    unfillable: BTreeSet<String>,
    batch: Vec<Seed>,
}

impl Feeder {
    fn new(input: Input, over: Arc<AtomicBool>, crawls: Crawls) -> Result<Feeder, Fault> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Fault::error(format!("cannot start feeding: {error}")))?;
        let records = Records {
            store: Arc::clone(&input.store),
            crawl: CrawlId::new(&input.spec.app_id, &input.spec.crawl_id),
            refresh: input.refresh,
            over: Arc::clone(&over),
            runtime,
        };
        Ok(Feeder {
            client: ControlClient::connect(&input.endpoint)?,
            broken: BrokenList::new(input.broken_file.clone()),
            is_dataset: matches!(input.seeds, Some(Source::Dataset(_))),
            unfillable: BTreeSet::new(),
            input,
            over,
            crawls,
            named: HashMap::new(),
            records,
            batch: Vec::with_capacity(BATCH),
        })
    }

    fn run(mut self) -> Result<Fed, Fault> {
        let position = match self.input.seeds.take() {
            Some(seeds) => self.take_seeds(seeds)?,
            None => Position::NOWHERE,
        };
        if self.is_over() {
            return self.finish();
        }
        let urls = std::mem::take(&mut self.input.urls).into_iter();
        self.batch.extend(urls.map(|url| Seed::of_url(0, url)));
        self.hand_over(&position)?;
        let crawls = self
            .crawls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        for crawl in crawls {
            self.ask(&Request::EndOfSeeds { crawl })?;
        }
        self.finish()
    }

    fn finish(self) -> Result<Fed, Fault> {
        Ok(Fed {
            broken: self.broken.finish()?,
            unfillable: self.unfillable,
        })
    }

    /// Reads on as long as there is time; tells how far it came. The last seeds stay in the batch.
    fn take_seeds(&mut self, source: Source) -> Result<Position, Fault> {
        let mut reading = Reading::start(source, self.input.fed_lines)?;
        let mut position = reading.position;
        if position.line > 0 {
            self.broken.go_on();
        }
        let fed = position.lines_of(self.input.fed_lines);
        while !self.is_over() {
            match reading.next()? {
                Next::Seed(seed) => {
                    position.line = seed.line;
                    self.note_unfillable(&seed.want);
                    // A request is fed again when resuming: its crawl must be opened again.
                    if seed.line > fed || seed.request.is_some() {
                        self.batch.push(seed);
                    }
                }
                Next::Broken(fault) => self.broken.add(&fault)?,
                Next::Chunk(chunk) => {
                    position.line = chunk.read;
                    self.take_chunk(chunk)?;
                    self.hand_over(&position)?;
                }
                Next::Pause if !self.batch.is_empty() => self.hand_over(&position)?,
                Next::Pause => {}
                Next::End => break,
            }
            if self.batch.len() >= BATCH {
                self.hand_over(&position)?;
            }
        }
        Ok(position)
    }

    fn take_chunk(&mut self, chunk: Chunk) -> Result<(), Fault> {
        for seed in chunk.seeds {
            match seed {
                Ok(seed) => {
                    self.note_unfillable(&seed.want);
                    self.batch.push(seed);
                }
                Err(fault) => self.broken.add(&fault)?,
            }
        }
        Ok(())
    }

    /// A misnamed column would otherwise show only in its staying empty.
    fn note_unfillable(&mut self, want: &[String]) {
        for name in want {
            if self.unfillable.len() < UNFILLABLE_TOLD && !self.input.extracted.contains(name) {
                self.unfillable.insert(name.clone());
            }
        }
    }

    /// Records first, so that no page comes before the record that it fills. What is not handed
    /// over because the crawl ends is not counted as read either.
    fn hand_over(&mut self, position: &Position) -> Result<(), Fault> {
        let batch = std::mem::take(&mut self.batch);
        let Some(put) = self.records.put(&batch)? else {
            return Ok(());
        };
        let mut fed: BTreeMap<u32, Vec<SeedUrl>> = BTreeMap::new();
        for (seed, put) in batch.into_iter().zip(put) {
            match put {
                Put::Open => {}
                Put::NothingToDo => continue,
                Put::Refused(reason) => {
                    self.refuse(seed, reason)?;
                    continue;
                }
            }
            let Some(crawl) = self.crawl_of(&seed)? else {
                continue;
            };
            let records: Vec<String> = seed.id.into_iter().collect();
            let urls = seed.urls.into_iter();
            fed.entry(crawl)
                .or_default()
                .extend(urls.map(|url| SeedUrl {
                    url,
                    records: records.clone(),
                }));
        }
        // The own crawl comes last: it says how far the input is durable.
        let own = fed.remove(&self.input.crawl).unwrap_or_default();
        for (crawl, seeds) in fed {
            self.feed(crawl, seeds, 0)?;
        }
        self.feed(self.input.crawl, own, position.fed_lines())
    }

    /// Lists a seed whose record the store does not take.
    fn refuse(&mut self, seed: Seed, reason: String) -> Result<(), Fault> {
        let id = seed.id.unwrap_or_default();
        self.broken.add(&SeedFault {
            line: seed.line,
            document: self.is_dataset.then(|| id.clone()),
            reason,
            text: id,
        })
    }

    fn feed(&mut self, crawl: u32, seeds: Vec<SeedUrl>, fed_lines: u64) -> Result<(), Fault> {
        let request = Request::FeedSeeds {
            crawl,
            seeds,
            fed_lines,
        };
        self.ask(&request).map(drop)
    }

    /// The crawl that a seed belongs to; opens the one that it names. None if that is refused.
    fn crawl_of(&mut self, seed: &Seed) -> Result<Option<u32>, Fault> {
        let Some(request) = &seed.request else {
            return Ok(Some(self.input.crawl));
        };
        let id = CrawlId::new(&request.app_id, &request.crawl_id);
        let spec = Box::new(named_crawl(request, &self.input.spec));
        if spec.lane == Lane::Browser && self.input.spec.lane != Lane::Browser {
            self.broken.add(&SeedFault {
                line: seed.line,
                document: None,
                reason: "`spiderid` is browser, which needs --lane browser".into(),
                text: id.to_string(),
            })?;
            return Ok(None);
        }
        if let Some(crawl) = self.named.get(&id) {
            return Ok(Some(*crawl));
        }
        match self.ask(&Request::OpenCrawl { spec }) {
            Ok(None) => Ok(None),
            Ok(Some(answer)) => {
                let crawl = answer["crawl"].as_u64().unwrap_or_default() as u32;
                self.named.insert(id, crawl);
                let mut crawls = self.crawls.lock().unwrap_or_else(PoisonError::into_inner);
                if !crawls.contains(&crawl) {
                    crawls.push(crawl);
                }
                Ok(Some(crawl))
            }
            Err(refusal) => {
                self.broken.add(&SeedFault {
                    line: seed.line,
                    document: None,
                    reason: refusal.message,
                    text: id.to_string(),
                })?;
                Ok(None)
            }
        }
    }

    /// Asks until there is an answer; none if the crawl is over before.
    fn ask(&mut self, request: &Request) -> Result<Option<Value>, Fault> {
        let over = Arc::clone(&self.over);
        let answer = self
            .client
            .ask(request, || match over.load(Ordering::Relaxed) {
                true => Err(Fault::error("the crawl is over")),
                false => Ok(()),
            });
        match answer {
            Err(_) if self.is_over() => Ok(None),
            answer => answer.map(Some),
        }
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}
