//! Turns the flags of a crawl into its settings and its specification, and refuses commands without enough flags.

use std::time::Duration;

use webfill_api::CrawlSpec;
use webfill_api::scope::{ScopeError, denied_extensions_except_documents};
use webfill_scheduler::local_crawl::Limits;
use webfill_service::Fault;
use webfill_store::DatasetName;

use super::options::CrawlOptions;
use crate::feeding::RefreshRule;
use crate::settings::Settings;

pub fn apply_flags(settings: &mut Settings, options: &CrawlOptions) {
    fn set<T: Clone>(setting: &mut T, flag: &Option<T>) {
        if let Some(flag) = flag {
            setting.clone_from(flag);
        }
    }
    fn set_some<T: Clone>(setting: &mut Option<T>, flag: &Option<T>) {
        if flag.is_some() {
            setting.clone_from(flag);
        }
    }
    set(&mut settings.mappings, &options.mappings);
    set(&mut settings.store, &options.store);
    set(&mut settings.state, &options.state);
    set_some(&mut settings.cache, &options.cache);
    let dataset = options.dataset_name.as_ref();
    set_some(&mut settings.dataset, &dataset.map(DatasetName::to_string));
    let separator = options.list_separator.as_ref();
    set_some(
        &mut settings.list_separator,
        &separator.map(ToString::to_string),
    );
    set(&mut settings.supervisor.lane, &options.lane);
    set(&mut settings.supervisor.workers, &options.workers);
    if let Some(concurrency) = options.concurrency {
        settings.worker.concurrency = concurrency as usize;
    }
    let politeness = &mut settings.politeness;
    set(&mut politeness.delay, &options.delay);
    set_some(&mut politeness.contact, &options.contact);
    politeness.ignore_robots |= options.ignore_robots;
    politeness.allow_private_networks |= options.allow_private_networks;
    set_some(&mut settings.fetch.proxy, &options.proxy);
    settings
        .fetch
        .resolve
        .extend(options.resolve.iter().cloned());
    set_some(&mut settings.fetch.ca_file, &options.ca_file);
    set_some(&mut settings.archive.warc, &options.warc);
    settings.documents.read |= options.documents;
    set_some(&mut settings.documents.keep, &options.keep_documents);
    set_some(
        &mut settings.dispatcher.exclude_sites,
        &options.exclude_sites,
    );
}

/// The default of `--patience`: how long to wait for dead and failing sites.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long a run of a watch waits, without `--patience`, while all its remaining sites back off. Every crawl waits
/// this long while the machine is offline, because that is no failure of the sites.
const LONGEST_STANDSTILL: Duration = Duration::from_secs(600);

/// Sets how long the crawl waits for failing sites. A run of a watch does not wait: its failing sites back off, as in a
/// fleet, and the next run continues with them. Failures of single pages are retried while the run lasts.
pub fn set_patience(settings: &mut Settings, options: &CrawlOptions) {
    let patience = &mut settings.dispatcher.patience;
    *patience = match (&options.watched_run, options.patience) {
        (Some(_), _) => None,
        (None, Some(flag)) => Some(flag.as_secs_f64()),
        (None, None) => Some(patience.unwrap_or(PATIENCE.as_secs_f64())),
    };
}

pub fn crawl_limits(options: &CrawlOptions) -> Limits {
    let standstill = options.patience.unwrap_or(LONGEST_STANDSTILL);
    let standstill_ms = standstill.as_millis() as u64;
    Limits {
        backoffs_ms: options.watched_run.as_ref().map(|_| standstill_ms),
        offline_ms: standstill_ms,
    }
}

/// Gives a watch without a state folder one of its own, so that several watches can run side by side.
pub fn set_watch_folder(settings: &mut Settings, options: &CrawlOptions) {
    if let Some(run) = &options.watched_run
        && settings.state == Settings::default().state
    {
        settings.state = settings.state.join("watches").join(&run.watch.name);
    }
}

pub fn has_seeds(options: &CrawlOptions) -> bool {
    !options.urls.is_empty() || options.seeds.is_some() || options.dataset.records.is_some()
}

/// Converts an error in a crawl's scope into a usage error. The error begins with the key of a crawl request, such as
/// `allow_regex`, but the user has given the flag `--allow-regex`.
pub fn scope_fault(error: ScopeError) -> Fault {
    Fault::usage(format!("--{}", error.to_string().replacen('_', "-", 1)))
}

/// Refuses a command that has neither seeds nor a crawl to resume.
pub fn require_work(options: &CrawlOptions, settings: &Settings) -> Result<(), Fault> {
    let frontier = settings.state.join(webfill_scheduler::frontier::FILE_NAME);
    if has_seeds(options) || (options.crawl.is_some() && frontier.exists()) {
        return Ok(());
    }
    Err(Fault::usage(
        "nothing to crawl: give URLs, --seeds FILE or --records URI, or the --state and --crawl of a crawl to resume",
    ))
}

pub fn refresh_rule(options: &CrawlOptions) -> RefreshRule {
    let after = options.refresh_after;
    RefreshRule {
        on_entry: options.dataset.refresh,
        after_ms: after.map(|after| after.as_millis() as u64),
        since_ms: None,
    }
}

/// Whether requests are conditional (`If-None-Match`, `If-Modified-Since`). By default they are if pages are refreshed.
fn is_conditional(options: &CrawlOptions) -> bool {
    let rechecks = options.refresh_after.is_some() || options.watched_run.is_some();
    options.conditional.unwrap_or(rechecks)
}

pub fn crawl_spec(options: &CrawlOptions, settings: &Settings) -> CrawlSpec {
    let crawl_id = options.crawl.clone().unwrap_or_else(new_crawl_id);
    CrawlSpec {
        max_depth: options.depth,
        follow: options.follow,
        lane: settings.supervisor.lane,
        allowed_domains: options.allowed_domains.clone(),
        allow_regex: options.allow_regex.clone(),
        deny_regex: options.deny_regex.clone(),
        deny_extensions: denied_extensions(options, settings),
        domain_max_pages: options.domain_max_pages,
        max_pages: options.max_pages,
        refresh_after_ms: refresh_rule(options).after_ms,
        conditional: is_conditional(options),
        sitemaps: options.sitemaps,
        changes: options.changes,
        keep_bodies: options.keep_bodies,
        run_patience_ms: options
            .watched_run
            .as_ref()
            .and(crawl_limits(options).backoffs_ms),
        retry: true,
        ..CrawlSpec::new(&options.app, crawl_id)
    }
}

/// The path extensions of URLs that are skipped. If documents are read, their extensions are removed from the built-in
/// list.
fn denied_extensions(options: &CrawlOptions, settings: &Settings) -> Option<Vec<String>> {
    let with_documents = settings
        .documents
        .reads_documents()
        .then(denied_extensions_except_documents);
    options.deny_extensions.clone().or(with_documents)
}

/// A new crawl id, which sorts by time and is very likely unique.
fn new_crawl_id() -> String {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    format!(
        "{}-{:04x}",
        now.as_secs(),
        (now.subsec_nanos() ^ std::process::id()) & 0xffff
    )
}
