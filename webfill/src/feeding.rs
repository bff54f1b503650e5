//! Feeds seeds: reads the input, puts its records into the store, hands its URLs to the
//! dispatcher, on a thread beside the one that watches the crawl.
//!
//! A batch is answered when it is durable, together with how far the input has been read, so a
//! resumed crawl goes on behind the last answer. Lines that cannot be read are listed in a file.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};
use webfill_dispatcher::control::{Request, SeedUrl};
use webfill_dispatcher::crawl_spec::CrawlSpec;
use webfill_startup::Fault;
use webfill_store::{CrawlId, Record, RecordState, Store, StoreError};

use crate::control_client::ControlClient;
use crate::seeds::{Seed, SeedFault, SeedReader, SeedRequest};
use crate::summary::{BrokenSeed, BrokenSeeds};

/// Seeds handed over in one go.
const BATCH: usize = 500;

/// Broken seeds told in the summary; the file has all.
const TOLD: usize = 5;

const STORE_RETRY: Duration = Duration::from_millis(500);

/// The keys of the crawls that are fed; it grows while seeds are read.
pub type Crawls = Arc<Mutex<Vec<u32>>>;

/// What is fed, to which crawl.
pub struct Input {
    /// From the command line: read after the seeds.
    pub urls: Vec<String>,
    pub seeds: Option<PathBuf>,
    /// The command's own crawl, and what it asks for.
    pub crawl: u32,
    pub spec: CrawlSpec,
    /// How much of the input is durable from an earlier run.
    pub fed_lines: u64,
    pub endpoint: String,
    /// Where broken seeds are listed.
    pub broken_file: PathBuf,
    pub store: Arc<dyn Store>,
}

/// The thread.
pub struct Feeding {
    over: Arc<AtomicBool>,
    crawls: Crawls,
    thread: Option<JoinHandle<Result<BrokenSeeds, Fault>>>,
    broken: BrokenSeeds,
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
            broken: BrokenSeeds::default(),
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

    /// Stops reading, if there is more to read, and tells what was broken.
    pub fn stop(mut self) -> Result<BrokenSeeds, Fault> {
        self.over.store(true, Ordering::Relaxed);
        self.join()?;
        Ok(self.broken)
    }

    fn join(&mut self) -> Result<(), Fault> {
        if let Some(thread) = self.thread.take() {
            let ended = thread
                .join()
                .map_err(|_| Fault::error("the feeding thread panicked"))?;
            self.broken = ended?;
        }
        Ok(())
    }
}

/// Judges the input before anything is started.
pub fn check(seeds: Option<&Path>) -> Result<(), Fault> {
    match seeds {
        Some(path) if path.as_os_str() != "-" => {
            SeedReader::open(path).map(drop).map_err(Fault::usage)
        }
        _ => Ok(()),
    }
}

struct Feeder {
    input: Input,
    over: Arc<AtomicBool>,
    crawls: Crawls,
    /// By application and crawl id: the crawls that seeds have named.
    named: HashMap<CrawlId, u32>,
    client: ControlClient,
    runtime: tokio::runtime::Runtime,
    broken: BrokenSeeds,
    broken_file: Option<BufWriter<File>>,
    batch: Vec<Seed>,
}

impl Feeder {
    fn new(input: Input, over: Arc<AtomicBool>, crawls: Crawls) -> Result<Feeder, Fault> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Fault::error(format!("cannot start feeding: {error}")))?;
        Ok(Feeder {
            client: ControlClient::connect(&input.endpoint)?,
            input,
            over,
            crawls,
            named: HashMap::new(),
            runtime,
            broken: BrokenSeeds::default(),
            broken_file: None,
            batch: Vec::with_capacity(BATCH),
        })
    }

    fn run(mut self) -> Result<BrokenSeeds, Fault> {
        let mut position = Position::of(self.input.seeds.as_deref());
        let fed = position.lines_of(self.input.fed_lines);
        if let Some(path) = self.input.seeds.clone() {
            for seed in SeedReader::open(&path).map_err(Fault::usage)? {
                match seed {
                    Ok(seed) => {
                        position.line = seed.line;
                        // A request is fed again when resuming: its crawl must be opened again.
                        if seed.line > fed || seed.request.is_some() {
                            self.batch.push(seed);
                        }
                    }
                    Err(fault) => self.note_broken(&fault)?,
                }
                if self.batch.len() >= BATCH {
                    self.hand_over(&position)?;
                }
                if self.is_over() {
                    return self.finish();
                }
            }
        }
        self.take_urls()?;
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

    /// The command line's URLs count as lines after the last.
    fn take_urls(&mut self) -> Result<(), Fault> {
        for (index, url) in self.input.urls.clone().into_iter().enumerate() {
            let line = index as u64 + 1;
            match webfill_urls::canonical(&url, None) {
                Ok(_) => self.batch.push(Seed::of_url(line, url)),
                Err(refusal) => self.note_broken(&SeedFault {
                    line,
                    reason: refusal.to_string(),
                    text: url,
                })?,
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<BrokenSeeds, Fault> {
        if let Some(mut file) = self.broken_file.take() {
            file.flush().map_err(|error| self.cannot_list(&error))?;
        }
        Ok(self.broken)
    }

    /// Records first, so that no page comes before the record that it fills.
    fn hand_over(&mut self, position: &Position) -> Result<(), Fault> {
        let batch = std::mem::take(&mut self.batch);
        let open = self.put_records(&batch)?;
        let mut fed: BTreeMap<u32, Vec<SeedUrl>> = BTreeMap::new();
        for (seed, is_open) in batch.into_iter().zip(open) {
            if !is_open {
                continue;
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
        if let Some(crawl) = self.named.get(&id) {
            return Ok(Some(*crawl));
        }
        let spec = Box::new(named_crawl(request, &self.input.spec));
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
                self.note_broken(&SeedFault {
                    line: seed.line,
                    reason: refusal.message,
                    text: id.to_string(),
                })?;
                Ok(None)
            }
        }
    }

    /// Puts the records of a batch; tells for each seed whether there is anything to do for it.
    fn put_records(&mut self, batch: &[Seed]) -> Result<Vec<bool>, Fault> {
        let records: Vec<Record> = batch.iter().filter_map(record_of).collect();
        if records.is_empty() {
            return Ok(vec![true; batch.len()]);
        }
        let crawl_id = CrawlId::new(&self.input.spec.app_id, &self.input.spec.crawl_id);
        let mut states = loop {
            let now_ms = now_ms();
            let put = self
                .input
                .store
                .put_records(&crawl_id, records.clone(), now_ms);
            let states = self.runtime.block_on(put);
            if !states
                .iter()
                .any(|state| state.as_ref().is_err_and(StoreError::is_retry))
            {
                break states.into_iter();
            }
            if self.is_over() {
                return Ok(vec![false; batch.len()]);
            }
            std::thread::sleep(STORE_RETRY);
        };
        let mut open = Vec::with_capacity(batch.len());
        for seed in batch {
            if seed.id.is_none() {
                open.push(true);
                continue;
            }
            open.push(match states.next() {
                Some(Ok(state)) => state == RecordState::Open,
                Some(Err(error)) if error.is_fatal() => return Err(store_fault(error)),
                Some(Err(error)) => {
                    self.note_broken(&SeedFault {
                        line: seed.line,
                        reason: error.to_string(),
                        text: seed.id.clone().unwrap_or_default(),
                    })?;
                    false
                }
                None => false,
            });
        }
        Ok(open)
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

    fn note_broken(&mut self, fault: &SeedFault) -> Result<(), Fault> {
        if self.broken_file.is_none() {
            let file =
                File::create(&self.input.broken_file).map_err(|error| self.cannot_list(&error))?;
            self.broken_file = Some(BufWriter::new(file));
            self.broken.file = Some(self.input.broken_file.clone());
        }
        self.broken.count += 1;
        if self.broken.first.len() < TOLD {
            self.broken.first.push(BrokenSeed {
                line: fault.line,
                reason: fault.reason.clone(),
            });
        }
        let line = json!({"line": fault.line, "reason": fault.reason, "text": fault.text});
        let written = self
            .broken_file
            .as_mut()
            .map(|file| writeln!(file, "{line}"));
        written
            .unwrap_or(Ok(()))
            .map_err(|error| self.cannot_list(&error))
    }

    fn cannot_list(&self, error: &std::io::Error) -> Fault {
        let file = self.input.broken_file.display();
        Fault::fatal(format!("cannot list broken seeds in {file}: {error}"))
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

/// The crawl that a request names: its own settings, else a request's defaults; what links are
/// followed and how fresh pages must be is the command's to say.
fn named_crawl(request: &SeedRequest, command: &CrawlSpec) -> CrawlSpec {
    let number = |key| request.settings.get(key).and_then(Value::as_u64);
    let text = |key| {
        request
            .settings
            .get(key)
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let texts = |key| {
        let list = request.settings.get(key).and_then(Value::as_array)?;
        Some(
            list.iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect::<Vec<_>>(),
        )
    };
    CrawlSpec {
        max_depth: number("maxdepth").unwrap_or(0) as u16,
        priority: number("priority").unwrap_or(50) as u8,
        follow: command.follow,
        useragent: text("useragent"),
        attrs: request.settings.get("attrs").cloned(),
        allowed_domains: texts("allowed_domains").unwrap_or_default(),
        allow_regex: texts("allow_regex").unwrap_or_default(),
        deny_regex: texts("deny_regex").unwrap_or_default(),
        deny_extensions: texts("deny_extensions"),
        domain_max_pages: number("domain_max_pages"),
        max_pages: None,
        refresh_after_ms: command.refresh_after_ms,
        expires_at_ms: number("expires").map(|seconds| seconds.saturating_mul(1_000)),
        ..CrawlSpec::new(&request.app_id, &request.crawl_id)
    }
}

fn record_of(seed: &Seed) -> Option<Record> {
    Some(Record {
        id: seed.id.clone()?,
        fields: seed.fields.clone().unwrap_or_default(),
        want: seed.want.clone(),
    })
}

pub fn store_fault(error: StoreError) -> Fault {
    if error.is_fatal() {
        Fault::fatal(error)
    } else {
        Fault::error(error)
    }
}

pub fn now_ms() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since_epoch| since_epoch.as_millis() as i64)
}

/// How far a file has been read, bound to the file: the number means nothing for another one.
struct Position {
    /// Of the file's beginning; 0 for standard input, which is always read anew.
    fingerprint: u64,
    line: u64,
}

const LINE_BITS: u32 = 40;
const FINGERPRINT_BYTES: usize = 4_096;

impl Position {
    fn of(seeds: Option<&Path>) -> Position {
        let fingerprint = seeds.and_then(fingerprint).unwrap_or(0);
        Position {
            fingerprint,
            line: 0,
        }
    }

    /// The lines of this file that an earlier run has fed.
    fn lines_of(&self, fed_lines: u64) -> u64 {
        let same_file = self.fingerprint != 0 && fed_lines >> LINE_BITS == self.fingerprint;
        if same_file {
            fed_lines & ((1 << LINE_BITS) - 1)
        } else {
            0
        }
    }

    fn fed_lines(&self) -> u64 {
        self.fingerprint << LINE_BITS | self.line
    }
}

/// 23 bits of the file's beginning; nothing for what cannot be read twice.
fn fingerprint(path: &Path) -> Option<u64> {
    use std::io::Read;
    let file = File::open(path)
        .ok()
        .filter(|file| file.metadata().is_ok_and(|meta| meta.is_file()))?;
    let mut beginning = Vec::new();
    file.take(FINGERPRINT_BYTES as u64)
        .read_to_end(&mut beginning)
        .ok()?;
    let hash = webfill_urls::content_hash(&beginning);
    let bits = u64::from_str_radix(hash.get(..8)?, 16).ok()?;
    Some(bits & 0x7f_ffff | 1)
}
