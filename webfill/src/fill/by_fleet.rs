//! Fetches pages through a running fleet: URLs are fed as crawl requests, and the pages are read from the fleet's
//! store. This process fetches nothing, and the fleet decides when it requests each page.
//!
//! The ids of a table's crawls are written into its folder before the first URL is fed, and a crawl accepts each URL
//! only once. So a client that was killed can feed the same URLs again, and waits for the remaining ones. New URLs go
//! to the first crawl that is not over. Pages to refresh, or that the store has dropped, go to a further crawl, because
//! in the same crawl they would be duplicates. Failed pages are queued again in the crawl where they failed.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use webfill_dispatcher::Endpoints;
use webfill_service::signals::{self, SignalRequest};
use webfill_service::{ExitStatus, Fault};
use webfill_store::{CrawlId, StoreUri};
use webfill_wire::Lane;
use webfill_wire::keys::ClientKeys;

use super::nouns::count_with_noun;
use super::options::FillWebOptions;
use super::project::Project;
use super::transient_ends;
use crate::cli::ProgressStyle;
use crate::control_client::ControlClient;
use crate::crawl::retry_actions;
use crate::demand::{ConnectionOptions, control_socket_list, control_sockets};
use crate::feeding::now_ms;
use crate::mapping_command::writing::write_atomically;
use crate::progress::lines::Counts;
use crate::progress::print_sentence;
use crate::settings::Settings;

/// The most URLs in one message.
const BATCH: usize = 1_000;

/// How long to wait for the first answer of a dispatcher. After that answer, waiting has no limit.
const FIRST_ANSWER: Duration = Duration::from_secs(10);

/// How often to request the state of the crawls, and how often to check for signals during the wait.
const ASK_EVERY: Duration = Duration::from_millis(500);
const POLL_EVERY: Duration = Duration::from_millis(50);

/// How often the reasons for waiting are printed.
const PRINT_EVERY: Duration = Duration::from_secs(60);

/// The default wait for sites that do not answer, when only such sites are left.
const PATIENCE: Duration = Duration::from_secs(120);

/// The dispatcher's names of those reasons for waiting that mean a failing site.
const FAILING: [&str; 4] = ["backoff", "retry", "block", "limit"];

/// A part of the dispatcher's answer about a crawl that it has pruned or never had.
const UNKNOWN_CRAWL: &str = "has no crawl of this id";

/// The most characters of the table's name in the id of a crawl. An id may have 200 characters.
const NAME_CHARS: usize = 100;

/// The crawls of a table, as they are stored in its folder.
#[derive(Debug, Default, Serialize, Deserialize)]
struct TableCrawls {
    app: String,
    /// The ids of the crawls, with the oldest first.
    crawls: Vec<String>,
}

/// The pages to fetch.
#[derive(Debug, Default)]
pub struct FetchOrder {
    /// URLs that were never fetched before.
    pub new: Vec<String>,
    /// URLs of pages to refresh. `is_in_newest` is whether the newest crawl has already fetched some of them.
    pub old: Vec<String>,
    pub is_in_newest: bool,
    /// URLs of failed pages to queue again, by the index of their crawl.
    pub failed: BTreeMap<usize, Vec<String>>,
}

/// How the wait for the fleet ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitResult {
    /// Each URL has its outcome.
    Done,
    /// Only sites that do not answer have pages left. These pages stay queued.
    OutOfPatience,
    /// A crawl was stopped or has expired.
    Stopped,
}

/// Fetches the pages of a table through the fleet.
pub struct FleetFetcher {
    pub store: StoreUri,
    endpoints: Vec<Endpoints>,
    keys: Option<ClientKeys>,
    lane: Option<Lane>,
    patience: Duration,
    progress: ProgressStyle,
    file: PathBuf,
    name: String,
    crawls: TableCrawls,
    /// The number of URLs in the last order that were already in their crawls.
    pub duplicates: u64,
}

impl FleetFetcher {
    /// Returns `None` if the command has no `--dispatcher`.
    pub fn from_options(
        options: &FillWebOptions,
        project: &Project,
    ) -> Result<Option<FleetFetcher>, Fault> {
        let Some(dispatcher) = &options.dispatcher else {
            return Ok(None);
        };
        let mut settings = Settings::load(options.config.as_deref())?;
        if let Some(store) = &options.store {
            settings.store.clone_from(store);
        }
        let connection = ConnectionOptions {
            dispatcher: Some(dispatcher.clone()),
            keys: options.keys.clone(),
            config: options.config.clone(),
        };
        let (endpoints, keys) = connection.resolve()?;
        let file = project.fleet_file();
        let crawls = read(&file)?;
        if !crawls.crawls.is_empty() && crawls.app != options.app {
            return Err(Fault::usage(format!(
                "the pages of this table are those of the application {}: give --app {0}, or delete {} to fetch them again",
                crawls.app,
                file.display()
            )));
        }
        Ok(Some(FleetFetcher {
            store: settings.store_uri()?,
            endpoints,
            keys,
            lane: options.lane,
            patience: options.patience.unwrap_or(PATIENCE),
            progress: options.progress,
            file,
            name: project.name(),
            crawls: TableCrawls {
                app: options.app.clone(),
                ..crawls
            },
            duplicates: 0,
        }))
    }

    /// The crawls of the table, with the oldest first.
    pub fn crawls(&self) -> Vec<CrawlId> {
        let crawls = self.crawls.crawls.iter();
        crawls
            .map(|crawl| CrawlId::new(&self.crawls.app, crawl))
            .collect()
    }

    /// Makes the fleet fetch these pages, and waits until it has finished.
    pub fn fetch_and_wait(&mut self, orders: &FetchOrder) -> Result<WaitResult, Fault> {
        let mut dispatcher = Dispatcher::connect(self)?;
        let mut places = BTreeSet::new();
        let mut new = orders.new.clone();
        for (&place, urls) in &orders.failed {
            if self.is_over(&mut dispatcher, place)? {
                new.extend(urls.iter().cloned());
            } else {
                places.insert(place);
            }
        }
        let ends = transient_ends::ends()?;
        for &place in &places {
            for action in retry_actions(&ends, &self.crawls.app, &self.crawls.crawls[place]) {
                dispatcher.request_until_answered(&action)?;
            }
        }
        self.duplicates = 0;
        if !new.is_empty() {
            let place = self.first_open_crawl(&mut dispatcher)?;
            self.feed(&mut dispatcher, place, &new)?;
            places.insert(place);
        }
        if !orders.old.is_empty() {
            let place = self.next_crawl_for_fetched(&mut dispatcher, orders.is_in_newest)?;
            self.feed(&mut dispatcher, place, &orders.old)?;
            places.insert(place);
        }
        let crawls: Vec<&str> = places
            .iter()
            .map(|&place| self.crawls.crawls[place].as_str())
            .collect();
        self.wait(&mut dispatcher, &crawls)
    }

    fn feed(
        &mut self,
        dispatcher: &mut Dispatcher,
        place: usize,
        urls: &[String],
    ) -> Result<(), Fault> {
        for some in urls.chunks(BATCH) {
            let requests: Vec<Value> = some
                .iter()
                .map(|url| self.crawl_request(place, url))
                .collect();
            let answer = dispatcher.request_until_answered(&requests)?;
            self.duplicates += answer["skipped"]["duplicate"].as_u64().unwrap_or(0);
        }
        Ok(())
    }

    /// The crawl for URLs that were never fetched: the first one that still accepts URLs.
    fn first_open_crawl(&mut self, dispatcher: &mut Dispatcher) -> Result<usize, Fault> {
        for place in 0..self.crawls.crawls.len() {
            if !self.is_over(dispatcher, place)? {
                return Ok(place);
            }
        }
        self.begin_crawl()?;
        Ok(self.crawls.crawls.len() - 1)
    }

    /// The crawl for URLs that an earlier crawl has fetched: the newest one, or a new one if the newest has fetched
    /// them.
    fn next_crawl_for_fetched(
        &mut self,
        dispatcher: &mut Dispatcher,
        is_in_newest: bool,
    ) -> Result<usize, Fault> {
        let newest = self.crawls.crawls.len().checked_sub(1).filter(|at| *at > 0);
        if let Some(newest) = newest.filter(|_| !is_in_newest)
            && !self.is_over(dispatcher, newest)?
        {
            return Ok(newest);
        }
        self.begin_crawl()?;
        Ok(self.crawls.crawls.len() - 1)
    }

    /// Whether a crawl accepts no more URLs, because it was stopped, has expired, or was pruned.
    fn is_over(&self, dispatcher: &mut Dispatcher, place: usize) -> Result<bool, Fault> {
        let info = dispatcher.request_until_answered(&json!({
            "action": "info",
            "appid": self.crawls.app,
            "crawlid": self.crawls.crawls[place],
        }));
        match info {
            Ok(info) => Ok(matches!(
                info["state"].as_str(),
                Some("stopped" | "expired")
            )),
            Err(unknown) if unknown.message.contains(UNKNOWN_CRAWL) => Ok(true),
            Err(fault) => Err(fault),
        }
    }

    /// The crawl request for a URL. Links are not followed, because only the pages that the table links to are needed.
    fn crawl_request(&self, place: usize, url: &str) -> Value {
        let spider = match self.lane {
            Some(Lane::Browser) => "browser",
            _ => "link",
        };
        json!({
            "url": url,
            "appid": self.crawls.app,
            "crawlid": self.crawls.crawls[place],
            "spiderid": spider,
            "maxdepth": 0,
            "keep_bodies": true,
        })
    }

    /// Begins a crawl with a new id, which is stored before it is used.
    fn begin_crawl(&mut self) -> Result<(), Fault> {
        let random = std::process::id() & 0xffff;
        // An id must not contain white space or a slash.
        let plain = |c: char| match c.is_ascii_alphanumeric() || "-_.".contains(c) {
            true => c,
            false => '_',
        };
        let name: String = self.name.chars().take(NAME_CHARS).map(plain).collect();
        let id = format!("{name}-{}-{random:04x}", now_ms());
        self.crawls.crawls.push(id);
        let json = serde_json::to_vec_pretty(&self.crawls).map_err(Fault::error)?;
        write_atomically(&self.file, &json)
    }

    fn wait(&self, dispatcher: &mut Dispatcher, crawls: &[&str]) -> Result<WaitResult, Fault> {
        let began = Instant::now();
        let mut failing_since = None;
        let mut printed = None;
        let mut counts = Counts::default();
        loop {
            let (mut left, mut is_failing, mut reasons) = (0, true, Vec::new());
            for crawl in crawls {
                let info = dispatcher.request_until_answered(&json!({
                    "action": "info",
                    "appid": self.crawls.app,
                    "crawlid": crawl,
                    "uuid": format!("fill-{}", now_ms()),
                }))?;
                match info["state"].as_str() {
                    Some("finished") => continue,
                    Some("stopped" | "expired") => return Ok(WaitResult::Stopped),
                    _ => {}
                }
                left += info["total_pending"].as_u64().unwrap_or(1);
                left += info["leased"].as_u64().unwrap_or(0);
                is_failing &= is_only_failing(&info);
                let waits = info["waits"].as_array().into_iter().flatten();
                reasons.extend(waits.filter_map(|wait| wait["text"].as_str().map(str::to_owned)));
                if left == 0 {
                    // The crawl has no tasks left but is not finished, because its last outcome is not written to the
                    // store yet. Wait for it.
                    left = 1;
                }
            }
            if left == 0 {
                return Ok(WaitResult::Done);
            }
            if !is_failing {
                failing_since = None;
            } else if failing_since.get_or_insert_with(Instant::now).elapsed() > self.patience {
                return Ok(WaitResult::OutOfPatience);
            }
            let is_due = printed.map_or(began, |at| at).elapsed() > PRINT_EVERY;
            let reasons = reasons.join("; ");
            if self.progress == ProgressStyle::Json {
                counts.show(json!({"kind": "fleet", "left": left, "waiting": reasons}));
            } else if is_due {
                printed = Some(Instant::now());
                let sentence = format!(
                    "{} left at the fleet{}{reasons}",
                    count_with_noun(left as usize, "page"),
                    if reasons.is_empty() { "" } else { ": " }
                );
                print_sentence(self.progress, &sentence);
            }
            let next = Instant::now() + ASK_EVERY;
            while Instant::now() < next {
                check_signals()?;
                std::thread::sleep(POLL_EVERY);
            }
        }
    }
}

/// Whether a crawl waits only for sites that do not answer.
fn is_only_failing(info: &Value) -> bool {
    let waits = info["waits"].as_array();
    let is_failing = |wait: &Value| {
        let what = wait["for"].as_str();
        what.is_some_and(|what| FAILING.contains(&what))
    };
    info["leased"].as_u64() == Some(0)
        && waits.is_some_and(|waits| !waits.is_empty() && waits.iter().all(is_failing))
}

fn check_signals() -> Result<(), Fault> {
    match signals::received_request() {
        SignalRequest::Nothing => Ok(()),
        _ => Err(Fault::interrupted(
            "interrupted: the fleet fetches the pages it was given; run the same command again to resume",
        )),
    }
}

fn read(file: &PathBuf) -> Result<TableCrawls, Fault> {
    let unread = |error: String| Fault::error(format!("cannot read {}: {error}", file.display()));
    match std::fs::read(file) {
        Ok(json) => serde_json::from_slice(&json).map_err(|error| unread(error.to_string())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(TableCrawls::default()),
        Err(error) => Err(unread(error.to_string())),
    }
}

/// The connection to the dispatcher, which may restart at any time. Each request is repeated until it is answered,
/// because a repeated request changes nothing.
struct Dispatcher {
    client: ControlClient,
    endpoint: String,
    has_keys: bool,
    was_answered: bool,
    progress: ProgressStyle,
}

impl Dispatcher {
    fn connect(fleet: &FleetFetcher) -> Result<Dispatcher, Fault> {
        let endpoint = control_socket_list(&fleet.endpoints);
        Ok(Dispatcher {
            client: ControlClient::connect_with(
                control_sockets(&fleet.endpoints),
                fleet.keys.clone(),
            )?,
            endpoint,
            has_keys: fleet.keys.is_some(),
            was_answered: false,
            progress: fleet.progress,
        })
    }

    fn request_until_answered(&mut self, question: &impl Serialize) -> Result<Value, Fault> {
        let asked = Instant::now();
        let was_reported = Cell::new(false);
        let (endpoint, has_keys, was_answered) = (&self.endpoint, self.has_keys, self.was_answered);
        let progress = self.progress;
        let answer = self.client.request(question, || {
            check_signals()?;
            if asked.elapsed() < FIRST_ANSWER {
                return Ok(());
            }
            if !was_answered {
                let why = match has_keys {
                    true => "is this key on its list?",
                    false => "without keys?",
                };
                return Err(Fault::error(format!(
                    "the dispatcher at {endpoint} has not answered for {} s: does it run there, and {why}",
                    FIRST_ANSWER.as_secs()
                )));
            }
            if !was_reported.replace(true) {
                let sentence = format!("waiting for the dispatcher at {endpoint}");
                print_sentence(progress, &sentence);
            }
            Ok(())
        });
        self.was_answered |= answer.is_ok();
        // The fleet has refused the request because of its own state, so this is not a usage error of the command.
        answer.map_err(|fault| Fault {
            status: match fault.status {
                ExitStatus::Usage => ExitStatus::Error,
                status => status,
            },
            ..fault
        })
    }
}
