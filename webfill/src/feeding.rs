//! Feeds seeds: reads the input, puts its records into the store, hands its URLs to the
//! dispatcher, on a thread beside the one that watches the crawl.
//!
//! A batch is answered when it is durable, together with how far the input has been read, so a
//! resumed crawl goes on behind the last answer. Lines that cannot be read are listed in a file.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};
use webfill_dispatcher::control::{Request, SeedUrl};
use webfill_startup::Fault;
use webfill_store::{CrawlId, Record, RecordState, Store, StoreError};

use crate::control_client::ControlClient;
use crate::seeds::{Seed, SeedFault, SeedReader};
use crate::summary::{BrokenSeed, BrokenSeeds};

/// Seeds handed over in one go.
const BATCH: usize = 500;

/// Broken seeds told in the summary; the file has all.
const TOLD: usize = 5;

const STORE_RETRY: Duration = Duration::from_millis(500);

/// What is fed, to which crawl.
pub struct Input {
    /// From the command line: read after the seeds.
    pub urls: Vec<String>,
    pub seeds: Option<PathBuf>,
    pub crawl: u32,
    pub crawl_id: CrawlId,
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
    thread: Option<JoinHandle<Result<BrokenSeeds, Fault>>>,
    broken: BrokenSeeds,
}

impl Feeding {
    pub fn start(input: Input) -> Result<Feeding, Fault> {
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        let thread = std::thread::Builder::new()
            .name("feeding".into())
            .spawn(move || Feeder::new(input, told)?.run())
            .map_err(|error| Fault::error(format!("cannot start feeding: {error}")))?;
        Ok(Feeding {
            over,
            thread: Some(thread),
            broken: BrokenSeeds::default(),
        })
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
    client: ControlClient,
    runtime: tokio::runtime::Runtime,
    broken: BrokenSeeds,
    broken_file: Option<BufWriter<File>>,
    batch: Vec<Seed>,
}

impl Feeder {
    fn new(input: Input, over: Arc<AtomicBool>) -> Result<Feeder, Fault> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Fault::error(format!("cannot start feeding: {error}")))?;
        Ok(Feeder {
            client: ControlClient::connect(&input.endpoint)?,
            input,
            over,
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
                        if seed.line > fed {
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
        let crawl = self.input.crawl;
        self.ask(&Request::EndOfSeeds { crawl })?;
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
        if self.batch.is_empty() {
            return Ok(());
        }
        let batch = std::mem::take(&mut self.batch);
        let open = self.put_records(&batch)?;
        let mut seeds = Vec::with_capacity(batch.len());
        let mut lines = Vec::with_capacity(batch.len());
        for (seed, is_open) in batch.into_iter().zip(open) {
            if !is_open {
                continue;
            }
            for url in seed.urls {
                lines.push(seed.line);
                seeds.push(SeedUrl {
                    url,
                    records: seed.id.clone().into_iter().collect(),
                });
            }
        }
        self.ask(&Request::FeedSeeds {
            crawl: self.input.crawl,
            seeds,
            fed_lines: position.fed_lines(),
        })?;
        Ok(())
    }

    /// Puts the records of a batch; tells for each seed whether there is anything to do for it.
    fn put_records(&mut self, batch: &[Seed]) -> Result<Vec<bool>, Fault> {
        let records: Vec<Record> = batch.iter().filter_map(record_of).collect();
        if records.is_empty() {
            return Ok(vec![true; batch.len()]);
        }
        let mut states = loop {
            let now_ms = now_ms();
            let put = self
                .input
                .store
                .put_records(&self.input.crawl_id, records.clone(), now_ms);
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

fn now_ms() -> i64 {
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
