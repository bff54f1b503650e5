//! `webfill crawl`: runs a dispatcher, a supervisor and N workers on this machine, from the first seed to the summary.
//!
//! [`Crawl::prepare`] checks all settings before anything is opened; [`Crawl::run`] does the rest. It locks the state
//! folder, opens the store, starts the processes, feeds the seeds, watches the crawl until it ends ([`watch`]), writes
//! values back ([`write_back`]), and drains the processes. After a crash, the same command with `--crawl ID` continues
//! the crawl.

mod claim;
mod failures;
mod feeding_run;
mod findings;
mod flags;
mod local_notifications;
mod notifications;
mod opening;
mod options;
mod retry;
mod run_record;
mod starting_state;
mod verdict;
mod watch;
mod write_back;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use webfill_api::CrawlSpec;
use webfill_dispatcher::Endpoints;
use webfill_scheduler::excluded_sites::ExcludedSites;
use webfill_scheduler::local_crawl::{ChosenDataset, LocalRequest};
use webfill_scheduler::scope::Scope;
use webfill_service::signals;
use webfill_service::state::{StateFolder, socket_folder};
use webfill_service::{ExitStatus, Fault, log};
use webfill_store::{CrawlId, Dataset, DatasetName, RecordCounts, Store};

use crate::cli::{ProgressStyle, SummaryFormat};
use crate::control_client::ControlClient;
use crate::dataset::{DatasetPlan, NamedDataset};
use crate::feeding::{self, DatasetSeeds, FeedThread, RefreshRule, RowPages, Seeds, Source};
use crate::fleet::{self, Fleet};
use crate::mapping_files::load_mappings;
use crate::progress::Progress;
use crate::seeds::DocumentRules;
use crate::settings::Settings;
use crate::stdout::print;
use crate::summary::{Counters, FieldsByMapping, Summary};
use claim::Claim;
pub use feeding_run::feed_run;
use notifications::EndedRun;
pub use notifications::RunNotifications;
pub use options::CrawlOptions;
pub use retry::{RetryEnd, retry_actions};
use run_record::RunRecord;
pub use run_record::{RunFile, WatchedRun};
use starting_state::{OpenedCrawl, put_crawl_if_missing};
use watch::{End, Watch};
use write_back::{WriteBackRoute, WriteBackThread};

/// The name of the file in the state folder that has the settings of the crawl's processes.
const CONFIG_FILE: &str = "webfill.toml";

pub fn run(options: CrawlOptions) -> Result<ExitStatus, Fault> {
    let crawl = Crawl::prepare(options)?;
    let format = crawl.options.summary;
    let fail_on = crawl.options.fail_on.clone();
    let (summary, end) = crawl.run()?;
    let (status, failed) = verdict::exit_status(end, &summary, &fail_on);
    match format {
        SummaryFormat::Json => print(summary.json())?,
        SummaryFormat::Human => print(summary.text().trim_end())?,
    }
    if let Some(reason) = failed {
        webfill_service::say!("webfill: {reason} (--fail-on)");
    }
    Ok(status)
}

/// The settings of a crawl with these flags, checked before anything is opened.
pub fn settings_with_flags(options: &CrawlOptions) -> Result<Settings, Fault> {
    let mut settings = Settings::load(options.config.as_deref())?;
    flags::apply_flags(&mut settings, options);
    flags::set_patience(&mut settings, options);
    flags::set_watch_folder(&mut settings, options);
    settings.validate()?;
    Ok(settings)
}

/// A crawl whose flags and settings have been checked. It is ready to run.
pub struct Crawl {
    options: CrawlOptions,
    settings: Settings,
    spec: CrawlSpec,
    seeds: Option<Seeds>,
    dataset: Option<DatasetPlan>,
    dataset_name: NamedDataset,
    /// The fields that each mapping extracts.
    fields: FieldsByMapping,
    rows: Arc<RowPages>,
}

impl Crawl {
    /// Checks flags and settings, before anything is opened.
    pub fn prepare(options: CrawlOptions) -> Result<Crawl, Fault> {
        let settings = settings_with_flags(&options)?;
        flags::require_work(&options, &settings)?;
        feeding::check_urls(&options.urls)?;
        let mut seeds = options.seeds.as_deref().map(Seeds::open).transpose()?;
        let dataset = options.dataset.validate()?;
        let dataset_name = NamedDataset::choose(
            settings.dataset()?,
            options.seeds.as_deref(),
            dataset.as_ref(),
        )?;
        settings.require_contact()?;
        if let Some(run) = &options.watched_run {
            RunNotifications::check_targets(&run.watch, &settings)?;
        }
        let mappings = load_mappings(&settings.mappings)?;
        if let Some(seeds) = &mut seeds {
            seeds.set_list_cells(&mappings, &settings)?;
        }
        let spec = flags::crawl_spec(&options, &settings);
        Scope::compile(&spec).map_err(flags::scope_fault)?;
        if let Some(list) = &settings.dispatcher.exclude_sites {
            ExcludedSites::load(list).map_err(Fault::usage)?;
        }
        Ok(Crawl {
            options,
            settings,
            spec,
            seeds,
            dataset,
            dataset_name,
            fields: findings::fields_by_mapping(&mappings),
            rows: Arc::new(RowPages::new(mappings)),
        })
    }

    /// Opens the log, then runs the crawl to its end.
    pub fn run(self) -> Result<(Summary, End), Fault> {
        signals::install_handlers();
        let state = StateFolder::open(&self.settings.state, "crawl")?;
        let folder = self.settings.log.folder.clone();
        let folder = folder.unwrap_or_else(|| state.path().join("logs"));
        let _log = log::start(&folder, "crawl", &self.settings.log)?;
        self.run_in(state)
    }

    /// Runs the crawl to its end in a process that already has a log. Such a process may run several crawls, one after
    /// the other.
    pub fn run_in(mut self, state: StateFolder) -> Result<(Summary, End), Fault> {
        let started = Instant::now();
        let named_state = self.settings.state.clone();
        state.path().clone_into(&mut self.settings.state);
        let config_file = state.path().join(CONFIG_FILE);
        self.settings.write(&config_file)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Fault::error(format!("cannot start: {error}")))?;
        let runtime = Rc::new(runtime);
        let (store, dataset, claim) = match self.open_and_claim(&state, &runtime) {
            Ok(opened) => opened,
            Err(fault) => {
                state.discard_if_new();
                return Err(fault);
            }
        };
        let Some(mut record) = self.begin_run(&state)? else {
            return self.crawl_and_summarize(started, &named_state, store, dataset, claim, runtime);
        };
        self.spec.run_began_ms = Some(record.began_ms());
        self.spec.run_window_ms = record.window_ms();
        self.spec.run_period_ms = record.period_ms();
        let remaining = record.remaining_window();
        self.options.max_time = remaining.map(|left| started.elapsed() + left);
        let notifications = self.notifications();
        if let Some(notifications) = &notifications {
            notifications.note_start(&runtime, &*store)?;
        }
        let (shared, same) = (Arc::clone(&store), Rc::clone(&runtime));
        let ended = self.crawl_and_summarize(started, &named_state, shared, dataset, claim, same);
        if ended.is_err() && fleet::was_killed_at_end() && record.allow_resumption()? {
            // If the run may be resumed, it stays open, as if this process had been killed. The next process resumes it
            // and sends its notifications.
            return ended;
        }
        record.note_end(&ended);
        if let Some(notifications) = &notifications {
            notifications.enqueue(&EndedRun {
                record: record.run(),
                result: &ended,
                runtime: &runtime,
                store: &*store,
            });
        }
        // If this process is killed before the end of the run is written, the next process resumes the run and sends
        // the missing notifications.
        record.write_end()?;
        // If a notification cannot be delivered now, the next run delivers it.
        if let Some(notifications) = notifications {
            notifications.deliver();
        }
        ended
    }

    /// The notifications of a watch's run; `None` if it has no recipients.
    pub fn notifications(&self) -> Option<RunNotifications> {
        let run = self.options.watched_run.as_ref()?;
        let reports = self.options.progress != ProgressStyle::None;
        RunNotifications::from_watch(&run.watch, &self.settings, reports)
    }

    /// Feeds the crawl, waits for its end, and makes the summary. The store and the dataset are already open.
    fn crawl_and_summarize(
        mut self,
        started: Instant,
        named_state: &Path,
        store: Arc<dyn Store>,
        dataset: Option<Arc<Dataset>>,
        claim: Claim,
        runtime: Rc<tokio::runtime::Runtime>,
    ) -> Result<(Summary, End), Fault> {
        let config_file = self.settings.state.join(CONFIG_FILE);
        let mut fleet = Fleet::start(&config_file)?;
        let endpoint = Endpoints::ipc(&socket_folder(&self.settings.state)?).control;
        let mut client = ControlClient::connect(&endpoint)?;
        let (opened, retried, before) = self.open_crawl(&mut client, &mut fleet)?;
        runtime
            .block_on(put_crawl_if_missing(&*store, &self.spec))
            .map_err(feeding::store_fault)?;
        let writing_back = self.start_writing_back(dataset.as_ref(), &store)?;
        let dataset_name = self
            .dataset_name
            .given_or_known_or_default(opened.dataset()?);
        self.warn_of_shared_dataset(&dataset_name);
        let named = dataset_name.clone();
        let mut feeding =
            self.start_feeding(&opened, &endpoint, Arc::clone(&store), dataset, named)?;
        let mut watch = Watch {
            crawls: feeding.crawls(),
            id: CrawlId::new(&self.spec.app_id, &self.spec.crawl_id),
            store,
            runtime,
            progress: Progress::start(self.options.progress),
            deadline: self
                .options
                .max_time
                .map(|limit| started + claim.wait_time() + limit),
            limits: flags::crawl_limits(&self.options),
            counters: Counters::default(),
            records: RecordCounts::default(),
            count_at: Instant::now(),
            writing_back,
            hold: claim.hold(),
            was_ours: true,
        };
        let end = watch.wait_for_end(&mut client, &mut fleet, &mut feeding)?;
        watch.report_end(end);
        let fed = feeding.stop()?;
        let failures = match end {
            End::Interrupted => None,
            _ => watch.failures(self.options.dead.as_deref(), &mut client, &mut fleet)?,
        };
        watch.drain(&mut client, &mut fleet)?;
        let written_back = watch.finish_writing_back()?;
        watch.progress.finish(&watch.counters, watch.records);
        // A user who interrupts a crawl does not want to wait until its findings are counted.
        let findings = match end {
            End::Interrupted => None,
            _ => findings::count_findings(
                &watch.runtime,
                &watch.store,
                &watch.id,
                self.wanted_findings(),
            ),
        };
        let summary = Summary {
            crawl_id: self.spec.crawl_id,
            pages_before: before.pages,
            retried,
            counters: watch.counters,
            records: watch.records,
            dataset: dataset_name,
            good_seeds: fed.good,
            broken_seeds: fed.broken,
            repeated_seeds: fed.repeated,
            written_back,
            unfillable: fed.unfillable,
            findings,
            failures,
            elapsed: started.elapsed(),
            ended_early: end.reason(),
            store: self.settings.store_uri()?.to_string(),
            state: named_state.to_owned(),
        };
        Ok((summary, end))
    }

    /// Opens the crawl at the dispatcher and, if requested, queues ended tasks again. Returns the opened crawl, the
    /// number of these tasks, and the counters before the feeding.
    fn open_crawl(
        &self,
        client: &mut ControlClient,
        fleet: &mut Fleet,
    ) -> Result<(OpenedCrawl, Option<u64>, Counters), Fault> {
        let open = LocalRequest::OpenCrawl {
            spec: Box::new(self.spec.clone()),
            dataset: self.chosen_dataset(),
        };
        let opened: OpenedCrawl = client.request(&open, || fleet.restart_dead())?;
        let retry = &self.options.retry;
        let retried = retry::requeue_ended(retry, &self.spec, client, fleet)?;
        let status = LocalRequest::CrawlStatus {
            crawls: vec![opened.crawl],
            limits: None,
        };
        let before = client.request(&status, || fleet.restart_dead())?;
        Ok((opened, retried, before))
    }

    /// Which results to count at the end.
    fn wanted_findings(&self) -> findings::WantedFindings {
        let changes = self.spec.changes;
        findings::WantedFindings {
            fields: self.fields.clone(),
            changed_since_ms: changes.then(|| self.spec.run_began_ms.unwrap_or_default()),
            lists: self.rows.can_detect_gone(),
        }
    }

    /// Begins or resumes the run of a watch (a crawl with a schedule). `None` if this crawl belongs to no watch.
    fn begin_run(&self, state: &StateFolder) -> Result<Option<RunRecord>, Fault> {
        let run = self.options.watched_run.as_ref();
        run.map(|run| RunRecord::begin(run, state.path()))
            .transpose()
    }

    pub fn state_folder(&self) -> &Path {
        &self.settings.state
    }

    /// Starts writing values back to the dataset, if that is configured.
    fn start_writing_back(
        &self,
        dataset: Option<&Arc<Dataset>>,
        store: &Arc<dyn Store>,
    ) -> Result<Option<WriteBackThread>, Fault> {
        let plan = self.dataset.as_ref();
        let to = plan.and_then(|plan| Some((plan.collection_name(), plan.write_back.clone()?)));
        let route = dataset
            .zip(to)
            .map(|(dataset, (collection, to))| WriteBackRoute {
                store: Arc::clone(store),
                crawl: CrawlId::new(&self.spec.app_id, &self.spec.crawl_id),
                dataset: Arc::clone(dataset),
                collection,
                to,
            });
        route.map(WriteBackThread::start).transpose()
    }

    fn take_source(&mut self, dataset: Option<Arc<Dataset>>) -> Option<Source> {
        let Some((plan, dataset)) = self.dataset.as_ref().zip(dataset) else {
            let seeds = self.seeds.take();
            return seeds.map(|seeds| Source::Lines(Box::new(seeds)));
        };
        Some(Source::Dataset(DatasetSeeds {
            identity: plan.identity(),
            rules: DocumentRules {
                refresh: self.refresh_rule().wants_filled_fields(),
                writes_back: plan.write_back.is_some(),
                writes_to_source: plan.writes_to_source(),
                collection: plan.collection_name(),
                extracted: self.extracted_fields(),
            },
            dataset,
        }))
    }

    fn start_feeding(
        &mut self,
        opened: &OpenedCrawl,
        endpoint: &str,
        store: Arc<dyn Store>,
        dataset: Option<Arc<Dataset>>,
        dataset_name: DatasetName,
    ) -> Result<FeedThread, Fault> {
        FeedThread::start(feeding::FeedInput {
            urls: self.options.urls.clone(),
            seeds: self.take_source(dataset),
            dataset: dataset_name,
            refresh: self.refresh_rule(),
            extracted: self.extracted_fields(),
            mappings: self.settings.mappings.clone(),
            rows: Arc::clone(&self.rows),
            crawl: opened.crawl,
            spec: self.spec.clone(),
            fed_lines: opened.fed_lines,
            endpoint: endpoint.to_owned(),
            broken_file: self.file_of_crawl("broken-seeds"),
            repeated_file: self.file_of_crawl("repeated-seeds"),
            is_read_again: opened.begins_again,
            seeds_vary: self.options.seeds_vary,
            notes_dataset: opened.notes_dataset,
            store,
        })
    }

    /// The rule for filling fields again that already have a value. A run of a watch refreshes all values that were
    /// filled before the run began.
    fn refresh_rule(&self) -> RefreshRule {
        RefreshRule {
            since_ms: self.spec.run_began_ms,
            ..flags::refresh_rule(&self.options)
        }
    }

    /// The dataset to report to the dispatcher; `None` if the seeds can contain no records.
    fn chosen_dataset(&self) -> Option<ChosenDataset> {
        let has_records = self
            .seeds
            .as_ref()
            .is_none_or(|seeds| seeds.may_have_records());
        self.dataset_name
            .to_chosen_dataset()
            .filter(|_| has_records)
    }

    /// Warns that records from a pipe go into a dataset that all pipes share.
    fn warn_of_shared_dataset(&self, name: &DatasetName) {
        let has_records = self.seeds.as_ref().is_some_and(Seeds::may_have_records);
        let is_shown = has_records && self.options.progress != ProgressStyle::None;
        if is_shown && matches!(self.dataset_name, NamedDataset::OfPipe(_)) {
            webfill_service::say!(
                "webfill: records from a pipe go to the dataset `{name}`; choose another with --dataset NAME"
            );
        }
    }

    fn extracted_fields(&self) -> BTreeSet<String> {
        self.fields.values().flatten().cloned().collect()
    }

    /// The path of a file in the state folder that belongs only to this crawl.
    fn file_of_crawl(&self, name: &str) -> PathBuf {
        let id = self.spec.crawl_id.replace(':', "_");
        self.settings.state.join(format!("{name}-{id}.jsonl"))
    }
}
