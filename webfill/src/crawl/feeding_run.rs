//! Feeds a run of a watch to the dispatcher of a fleet, as `webfill crawl` does with its seeds, but without starting
//! processes. When the dispatcher has decided that the run is over, its records are counted.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use webfill_api::{Refusal, Watch};
use webfill_scheduler::WatchSources;
use webfill_scheduler::local_crawl::LocalRequest;
use webfill_service::{ExitStatus, Fault};
use webfill_store::{CrawlId, Dataset, RecordCounts, Store};

use super::opening::unusable_store;
use super::options::CrawlOptions;
use super::{Crawl, OpenedCrawl, findings, flags, put_crawl_if_missing};
use crate::control_client::ControlClient;
use crate::dataset::NamedDataset;
use crate::feeding::{self, RowPages, Seeds};
use crate::mapping_files::load_mappings;
use crate::settings::Settings;

/// How often to ask the dispatcher whether the run is over.
const POLL_EVERY: Duration = Duration::from_millis(300);

#[derive(serde::Deserialize)]
struct Run {
    watch: Value,
    began_ms: i64,
    #[serde(flatten)]
    opened: OpenedCrawl,
}

#[derive(serde::Deserialize)]
struct RunState {
    over: bool,
}

/// Feeds run number `run` of the watch `name`, with the settings that its dispatcher has written.
pub fn feed_run(
    config: &Path,
    endpoint: &str,
    name: &str,
    run: u64,
    options_of: impl Fn(&Watch) -> Result<CrawlOptions, Fault>,
) -> Result<ExitStatus, Fault> {
    let mut asking = RunRequests {
        client: ControlClient::connect(endpoint)?,
        watch: name.to_owned(),
        run,
    };
    let found = asking.request_run()?;
    let watch = Watch::parse(found.watch)
        .map_err(|refusal| Fault::usage(format!("{}: {}", refusal.path, refusal.message)))?;
    let settings = Settings::load_written(config)?;
    let sources = settings.watch_sources()?;
    let refused = |refusal: Refusal| Fault::usage(refusal.message);
    sources.check(&watch, "$").map_err(refused)?;
    let mut crawl = Crawl::for_fleet(options_of(&watch)?, settings, &sources)?;
    crawl.spec.run_began_ms = Some(found.began_ms);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Fault::error(format!("cannot start: {error}")))?;
    let (store, dataset) = runtime.block_on(crawl.open_run())?;
    let mut writing_back = crawl.start_writing_back(dataset.as_ref(), &store)?;
    let dataset_name = crawl
        .dataset_name
        .given_or_known_or_default(found.opened.dataset()?);
    let shared = Arc::clone(&store);
    let mut feeding =
        crawl.start_feeding(&found.opened, endpoint, shared, dataset, dataset_name)?;
    while !asking.is_over()? {
        feeding.check_thread()?;
        if let Some(writing_back) = &mut writing_back {
            writing_back.check_thread()?;
        }
        std::thread::sleep(POLL_EVERY);
    }
    let fed = feeding.stop()?;
    let written_back = writing_back.map(|last| last.finish(&|| false));
    let written_back = written_back.transpose()?;
    let id = CrawlId::new(&crawl.spec.app_id, &crawl.spec.crawl_id);
    let records = runtime.block_on(count_records(&*store, &id))?;
    asking.store_counts(&json!({
        "records": {"total": records.total, "resolved": records.resolved},
        "broken_seeds": fed.broken.count,
        "written_back": written_back.map(|written| written.records),
    }))?;
    Ok(ExitStatus::Done)
}

/// A client that asks the dispatcher about the run.
struct RunRequests {
    client: ControlClient,
    watch: String,
    run: u64,
}

impl RunRequests {
    fn request_run(&mut self) -> Result<Run, Fault> {
        let (watch, run) = (self.watch.clone(), self.run);
        let question = LocalRequest::GetRun { watch, run };
        self.client.request(&question, || Ok(()))
    }

    fn is_over(&mut self) -> Result<bool, Fault> {
        let (watch, run) = (self.watch.clone(), self.run);
        let question = LocalRequest::GetRunState { watch, run };
        let state: RunState = self.client.request(&question, || Ok(()))?;
        Ok(state.over)
    }

    /// Adds counts to the dispatcher's record of the run.
    fn store_counts(&mut self, counts: &Value) -> Result<(), Fault> {
        let (watch, run) = (self.watch.clone(), self.run);
        let counts = counts.as_object().cloned().unwrap_or_default();
        let question = LocalRequest::CountRun { watch, run, counts };
        let _: Value = self.client.request(&question, || Ok(()))?;
        Ok(())
    }
}

async fn count_records(store: &dyn Store, crawl: &CrawlId) -> Result<RecordCounts, Fault> {
    store
        .record_counts(crawl)
        .await
        .map_err(feeding::store_fault)
}

impl Crawl {
    /// Opens the store, adds the crawl to it if it is missing, and opens the dataset.
    async fn open_run(&self) -> Result<(Arc<dyn Store>, Option<Arc<Dataset>>), Fault> {
        let opened = webfill_store::open(&self.settings.store_uri()?, None).await;
        let store = opened.map_err(unusable_store)?.store;
        let put = put_crawl_if_missing(&*store, &self.spec).await;
        put.map_err(feeding::store_fault)?;
        Ok((store, self.open_dataset().await?))
    }

    /// Prepares the crawl with the settings of its fleet, and with seeds from the seeds folder.
    fn for_fleet(
        options: CrawlOptions,
        settings: Settings,
        sources: &WatchSources,
    ) -> Result<Crawl, Fault> {
        let open = |path: &Path| {
            let file = sources.open_seeds(&path.to_string_lossy());
            Seeds::from_file(path, file.map_err(Fault::usage)?)
        };
        let mut seeds = options.seeds.as_deref().map(open).transpose()?;
        // Resolve relative paths against the seeds folder, not this process's working folder. A file that is not found
        // would count as a pipe, and all watches would share the dataset of pipes.
        let place = |path: &Path| sources.seeds_path(&path.to_string_lossy());
        let seeds_path = options.seeds.as_deref().map(place).transpose();
        let seeds_path = seeds_path.map_err(Fault::usage)?;
        let dataset = options.dataset.validate()?;
        let given = options.dataset_name.clone();
        let dataset_name = NamedDataset::choose(given, seeds_path.as_deref(), dataset.as_ref())?;
        let mappings = load_mappings(&settings.mappings)?;
        if let Some(seeds) = &mut seeds {
            seeds.set_list_cells(&mappings, &settings)?;
        }
        Ok(Crawl {
            spec: flags::crawl_spec(&options, &settings),
            fields: findings::fields_by_mapping(&mappings),
            rows: Arc::new(RowPages::new(mappings)),
            options,
            settings,
            seeds,
            dataset,
            dataset_name,
        })
    }
}
