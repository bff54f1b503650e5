//! Feeds a run of a watch to the dispatcher of a fleet: what `webfill crawl` does with its seeds, without
//! processes of its own. The dispatcher decides when the run is over; then the records are counted.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use webfill_api::Watch;
use webfill_dispatcher::local_crawl::LocalRequest;
use webfill_startup::{ExitStatus, Fault};
use webfill_store::{CrawlId, RecordCounts, Store};

use super::{Crawl, Opened, findings, flags, put_crawl_if_missing, unusable_store};
use crate::cli::CrawlOptions;
use crate::control_client::ControlClient;
use crate::dataset::NamedDataset;
use crate::feeding::{self, Seeds};
use crate::roles::load_mappings;
use crate::settings::Settings;

/// How often the dispatcher is asked whether the run is over.
const LOOK_EVERY: Duration = Duration::from_millis(300);

#[derive(serde::Deserialize)]
struct Run {
    watch: serde_json::Value,
    began_ms: i64,
    #[serde(flatten)]
    opened: Opened,
}

#[derive(serde::Deserialize)]
struct RunState {
    over: bool,
}

/// Feeds the run of this number of a watch, under the settings that its dispatcher has written.
pub fn feed_run(
    config: &Path,
    endpoint: &str,
    name: &str,
    run: u64,
    options_of: impl Fn(&Watch) -> Result<CrawlOptions, Fault>,
) -> Result<ExitStatus, Fault> {
    let mut client = ControlClient::connect(endpoint)?;
    let of_run = |watch: &str| watch.to_owned();
    let told: Run = client.ask(
        &LocalRequest::TellRun {
            watch: of_run(name),
            run,
        },
        || Ok(()),
    )?;
    let watch = Watch::parse(told.watch)
        .map_err(|refusal| Fault::usage(format!("{}: {}", refusal.path, refusal.message)))?;
    let mut crawl = Crawl::of_fleet(options_of(&watch)?, Settings::written(config)?)?;
    crawl.spec.run_began_ms = Some(told.began_ms);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Fault::error(format!("cannot start: {error}")))?;
    let (store, dataset) = runtime.block_on(async {
        let opened = webfill_store::open(&crawl.settings.store_uri()?, None).await;
        let store = opened.map_err(unusable_store)?.store;
        put_crawl_if_missing(&*store, &crawl.spec)
            .await
            .map_err(feeding::store_fault)?;
        Ok::<_, Fault>((store, crawl.open_dataset().await?))
    })?;
    let mut writing_back = crawl.write_back(dataset.as_ref(), &store)?;
    let dataset_name = crawl.dataset_name.or_older(told.opened.older_dataset()?);
    let mut feeding = crawl.feed(
        &told.opened,
        endpoint,
        Arc::clone(&store),
        dataset,
        dataset_name,
    )?;
    loop {
        feeding.check()?;
        if let Some(writing_back) = &mut writing_back {
            writing_back.check()?;
        }
        let question = LocalRequest::TellRunState {
            watch: of_run(name),
            run,
        };
        let state: RunState = client.ask(&question, || Ok(()))?;
        if state.over {
            break;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    let fed = feeding.stop()?;
    let written_back = writing_back
        .map(|last| last.finish(&|| false))
        .transpose()?;
    let id = CrawlId::new(&crawl.spec.app_id, &crawl.spec.crawl_id);
    let records = runtime.block_on(counted(&*store, &id))?;
    let counts = json!({
        "records": {"total": records.total, "resolved": records.resolved},
        "broken_seeds": fed.broken.count,
        "written_back": written_back.map(|written| written.records),
    });
    let counts = counts.as_object().cloned().unwrap_or_default();
    let question = LocalRequest::CountRun {
        watch: of_run(name),
        run,
        counts,
    };
    let _: serde_json::Value = client.ask(&question, || Ok(()))?;
    Ok(ExitStatus::Done)
}

async fn counted(store: &dyn Store, crawl: &CrawlId) -> Result<RecordCounts, Fault> {
    store
        .record_counts(crawl)
        .await
        .map_err(feeding::store_fault)
}

impl Crawl {
    /// A crawl of a fleet, which has its own settings.
    fn of_fleet(options: CrawlOptions, settings: Settings) -> Result<Crawl, Fault> {
        let seeds = options.seeds.as_deref().map(Seeds::open).transpose()?;
        let dataset = options.dataset.validate()?;
        let given = options.dataset_name.clone();
        let dataset_name = NamedDataset::choose(given, options.seeds.as_deref(), dataset.as_ref())?;
        let mappings = load_mappings(&settings.mappings)?;
        Ok(Crawl {
            spec: flags::spec_of(&options, &settings),
            fields: findings::fields_by_mapping(&mappings),
            options,
            settings,
            seeds,
            dataset,
            dataset_name,
        })
    }
}
