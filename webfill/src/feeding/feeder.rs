//! The feeding thread: reads seeds in batches, puts their records into the store, and sends their URLs and requests to
//! the dispatcher.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, PoisonError};

use serde_json::Value;
use webfill_api::Refusal;
use webfill_scheduler::local_crawl::{LineRequest, LocalRequest, SeedUrl};
use webfill_service::Fault;
use webfill_store::{CrawlId, record_key};
use webfill_wire::Lane;

use super::broken_list::BrokenList;
use super::position::Position;
use super::reading::{Chunk, InputItem, ReadStart, ReadThread, Source};
use super::records::{Records, SeedState};
use super::repeated_list::RepeatedList;
use super::requests::{FedRequests, SeedRequests};
use super::{Crawls, FeedInput, FeedResult, unfillable};
use crate::control_client::ControlClient;
use crate::seeds::{Seed, SeedFault};

/// How many seeds are sent to the dispatcher together.
const BATCH: usize = 500;

/// The summary names at most this many fields that no mapping extracts.
const MOST_UNFILLABLE: usize = 20;

/// Feeds the seeds of one input to a crawl.
pub(super) struct Feeder {
    input: FeedInput,
    over: Arc<AtomicBool>,
    crawls: Crawls,
    client: ControlClient,
    records: Records,
    good: u64,
    broken: BrokenList,
    repeated: RepeatedList,
    /// Whether the seeds are documents. Messages name a document by its id, other seeds by their line number.
    is_dataset: bool,
    unfillable: BTreeSet<String>,
    messages: Sender<String>,
    batch: Vec<Seed>,
}

impl Feeder {
    pub(super) fn new(
        input: FeedInput,
        over: Arc<AtomicBool>,
        crawls: Crawls,
        messages: Sender<String>,
    ) -> Result<Feeder, Fault> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Fault::error(format!("cannot start feeding: {error}")))?;
        let records = Records {
            store: Arc::clone(&input.store),
            crawl: CrawlId::new(&input.spec.app_id, &input.spec.crawl_id),
            dataset: input.dataset.clone(),
            refresh: input.refresh,
            over: Arc::clone(&over),
            runtime,
        };
        Ok(Feeder {
            client: ControlClient::connect(&input.endpoint)?,
            good: 0,
            broken: BrokenList::new(input.broken_file.clone()),
            repeated: RepeatedList::new(input.repeated_file.clone()),
            is_dataset: matches!(input.seeds, Some(Source::Dataset(_))),
            unfillable: BTreeSet::new(),
            messages,
            input,
            over,
            crawls,
            records,
            batch: Vec::with_capacity(BATCH),
        })
    }

    pub(super) fn run(mut self) -> Result<FeedResult, Fault> {
        let position = match self.input.seeds.take() {
            Some(seeds) => self.feed_seeds(seeds)?,
            None => Position::NOWHERE,
        };
        if self.is_over() {
            return self.finish();
        }
        let urls = std::mem::take(&mut self.input.urls).into_iter();
        self.batch.extend(urls.map(|url| Seed::from_url(0, url)));
        self.send_batch(&position)?;
        let crawls = self
            .crawls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        for crawl in crawls {
            self.request(&LocalRequest::EndOfSeeds { crawl })?;
        }
        self.finish()
    }

    fn finish(self) -> Result<FeedResult, Fault> {
        Ok(FeedResult {
            good: self.good,
            broken: self.broken.finish()?,
            repeated: self.repeated.finish()?,
            unfillable: self.unfillable,
        })
    }

    /// Feeds the input until its end or the end of the crawl. Returns the position reached. The last seeds are then
    /// still in the batch, so they are not sent yet.
    fn feed_seeds(&mut self, source: Source) -> Result<Position, Fault> {
        let mut reading = ReadThread::start(source, self.input.fed_lines)?;
        let mut position = Position::NOWHERE;
        let mut fed = 0;
        while !self.is_over() {
            match reading.next()? {
                InputItem::Start(start) => {
                    self.apply_start(&start);
                    (position, fed) = (start.position, start.fed);
                }
                InputItem::Seed(mut seed, mark) => {
                    position.advance(mark);
                    if self.input.refresh.wants_filled_fields() {
                        seed.want_extracted_fields(&self.input.extracted);
                    }
                    self.note_unfillable(&seed.want);
                    if self.list_if_browser_missing(&seed)? {
                        continue;
                    }
                    // A resumed crawl feeds crawl requests again. So their crawls become known again, and the command
                    // waits for them.
                    match seed.line > fed || seed.request.is_some() {
                        true => self.batch.push(seed),
                        false => self.good += 1,
                    }
                }
                InputItem::Broken(fault) => self.broken.add(&fault)?,
                InputItem::Chunk(chunk) => {
                    position.advance(chunk.mark);
                    self.add_chunk(chunk)?;
                    self.send_batch(&position)?;
                }
                InputItem::Pause if !self.batch.is_empty() => self.send_batch(&position)?,
                InputItem::Pause => {}
                InputItem::End => break,
            }
            if self.batch.len() >= BATCH {
                self.send_batch(&position)?;
            }
        }
        Ok(position)
    }

    fn apply_start(&mut self, start: &ReadStart) {
        if start.position.line() > 0 {
            // Documents that were fed are not read again, so keep the broken seeds that an earlier run has listed.
            self.broken.keep_existing();
        }
        if start.fed > 0 {
            // Lines that were fed before are read again, but not stored. So keep the repeated seeds that an earlier run
            // has listed.
            self.repeated.keep_existing();
        }
        if start.is_changed && !self.input.seeds_vary {
            let message =
                "the seeds have changed since they were read: reading all from the first one";
            // An error means that the crawl is over and nobody receives messages.
            let _ = self.messages.send(message.to_owned());
        }
    }

    fn add_chunk(&mut self, chunk: Chunk) -> Result<(), Fault> {
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

    /// Notes wanted fields that no mapping extracts, and reports each immediately. Otherwise the user would notice only
    /// after hours that a misspelt column stays empty.
    fn note_unfillable(&mut self, want: &[String]) {
        for name in want {
            if self.unfillable.len() < MOST_UNFILLABLE
                && !self.input.extracted.contains(name)
                && self.unfillable.insert(name.clone())
            {
                let message = unfillable::unfillable_message(
                    name,
                    &self.input.extracted,
                    &self.input.mappings,
                );
                // An error means that the crawl is over and nobody receives messages.
                let _ = self.messages.send(message);
            }
        }
    }

    /// Sends the batch. Records go to the store first, so that no page is stored before the record it fills. If the
    /// crawl ends meanwhile, the position in the input is not stored either.
    fn send_batch(&mut self, position: &Position) -> Result<(), Fault> {
        let batch = std::mem::take(&mut self.batch);
        self.report_dataset(&batch)?;
        let Some(taken) = self.records.put_records(&batch, position)? else {
            return Ok(());
        };
        let mut own = Vec::new();
        let mut requests = SeedRequests::default();
        for (seed, taken) in batch.into_iter().zip(taken) {
            let earlier = taken.earlier_line.filter(|_| !self.input.is_read_again);
            if let (Some(earlier), Some(id)) = (earlier, &seed.id) {
                self.repeated.add(seed.line, earlier, id)?;
            }
            if let SeedState::Refused(reason) = taken.put {
                self.list_refused(seed, reason)?;
                continue;
            }
            self.good += 1;
            if matches!(taken.put, SeedState::NothingToDo)
                && !self.input.rows.any_lists_rows(&seed.urls)
            {
                continue;
            }
            if let Some(request) = seed.request {
                requests.add(seed.line, *request);
                continue;
            }
            let key = |id: String| record_key(&self.input.dataset, &id);
            let records: Vec<String> = seed.id.map(key).into_iter().collect();
            let urls = seed.urls.into_iter();
            own.extend(urls.map(|url| SeedUrl {
                url,
                records: records.clone(),
            }));
        }
        for message in requests.into_messages() {
            self.feed_requests(message)?;
        }
        // Flush the files of broken and repeated seeds first, because lines that count as fed are never listed again.
        self.repeated.flush()?;
        self.broken.flush()?;
        // The command's own crawl comes last, because the dispatcher stores the position in the input together with its
        // batch.
        self.feed_urls(own, position.fed_lines())
    }

    /// Reports the dataset of the crawl's records to the dispatcher, once, before the first record is stored.
    fn report_dataset(&mut self, batch: &[Seed]) -> Result<(), Fault> {
        if !self.input.notes_dataset || batch.iter().all(|seed| seed.id.is_none()) {
            return Ok(());
        }
        self.input.notes_dataset = false;
        let dataset = self.input.dataset.to_string();
        let crawl = self.input.crawl;
        self.request(&LocalRequest::NoteDataset { crawl, dataset })
            .map(drop)
    }

    /// Lists a seed whose record was refused by the store.
    fn list_refused(&mut self, seed: Seed, reason: String) -> Result<(), Fault> {
        let id = seed.id.unwrap_or_default();
        self.broken.add(&SeedFault {
            line: seed.line,
            document: self.is_dataset.then(|| id.clone()),
            path: None,
            reason,
            text: id,
        })
    }

    fn feed_urls(&mut self, seeds: Vec<SeedUrl>, fed_lines: u64) -> Result<(), Fault> {
        let request = LocalRequest::FeedSeeds {
            crawl: self.input.crawl,
            seeds,
            fed_lines,
        };
        self.request(&request).map(drop)
    }

    /// Feeds crawl requests, each into the crawl that it names.
    fn feed_requests(&mut self, requests: Vec<LineRequest>) -> Result<(), Fault> {
        let message = LocalRequest::FeedRequests {
            command: self.input.crawl,
            requests,
        };
        let Some(answer) = self.request(&message)? else {
            return Ok(());
        };
        let fed: FedRequests = serde_json::from_value(answer)
            .map_err(|error| Fault::error(format!("the dispatcher's answer: {error}")))?;
        let mut crawls = self.crawls.lock().unwrap_or_else(PoisonError::into_inner);
        for crawl in fed.crawls {
            if !crawls.contains(&crawl) {
                crawls.push(crawl);
            }
        }
        drop(crawls);
        if let LocalRequest::FeedRequests { requests, .. } = &message {
            for refused in &fed.refused {
                self.good -= 1;
                self.broken.add(&refused.to_seed_fault(requests))?;
            }
        }
        Ok(())
    }

    /// Lists a crawl request as broken if it wants the lane `browser` and this command's workers have no browsers.
    /// Otherwise the crawl would wait forever.
    fn list_if_browser_missing(&mut self, seed: &Seed) -> Result<bool, Fault> {
        let request = seed.request.as_deref();
        let Some(request) = request.filter(|request| request.needs_browser) else {
            return Ok(false);
        };
        if self.input.spec.lane == Lane::Browser {
            return Ok(false);
        }
        let why = "`spiderid` is browser, which needs --lane browser";
        let refusal = Refusal::new("$.spiderid", why);
        let text = request.json.to_string();
        self.broken.add(&SeedFault::from_refusal(
            seed.line,
            refusal,
            text.as_bytes(),
        ))?;
        Ok(true)
    }

    /// Repeats the request until there is an answer. `None` if the crawl is over first.
    fn request(&mut self, request: &LocalRequest) -> Result<Option<Value>, Fault> {
        let over = Arc::clone(&self.over);
        let answer = self
            .client
            .request(request, || match over.load(Ordering::Relaxed) {
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
