//! `webfill prune`: drops finished crawls, through a running dispatcher or in a state folder that no process uses. It
//! can also drop old pages of a store.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use serde_json::{Value, json};
use webfill_scheduler::frontier::{Frontier, FrontierConfig, FrontierError, applications_in_file};
use webfill_service::state::StateFolder;
use webfill_service::{ExitStatus, Fault};

use super::actions::{new_action, print_answer};
use super::connection::ConnectionOptions;
use super::prune_store::prune_store;
use super::table::{count_with_noun, without_control_characters};
use crate::backup::require_frontier;
use crate::cli::parse_age;
use crate::settings::Settings;

#[derive(Debug, Args)]
#[command(override_usage = "\
    webfill prune APPID CRAWLID [OPTIONS]\n       \
    webfill prune APPID --older-than DURATION [OPTIONS]\n       \
    webfill prune --all --older-than DURATION [OPTIONS]\n       \
    webfill prune --store URI --older-than DURATION [--json]")]
pub struct PruneOptions {
    /// Application id; that of `webfill crawl` is `local`
    #[arg(value_name = "APPID", required_unless_present_any = ["store", "all"])]
    pub app_id: Option<String>,
    /// Prune old crawls of all applications; on the dispatcher's machine, with its settings
    #[arg(long, requires = "older_than", conflicts_with_all = ["app_id", "crawl_id", "state", "store"])]
    pub all: bool,
    /// Crawl id [default: all old crawls of the application]
    #[arg(value_name = "CRAWLID", required_unless_present = "older_than")]
    pub crawl_id: Option<String>,
    /// Only crawls idle for longer than this, or pages older than it: 90s, 15m, 2h, 1d; a unit is required
    #[arg(long, value_name = "DURATION", value_parser = parse_age)]
    pub older_than: Option<Duration>,
    /// Prune in this state folder while no dispatcher uses it, and free all unused space
    #[arg(long, value_name = "DIR", conflicts_with_all = ["dispatcher", "keys", "config"])]
    pub state: Option<PathBuf>,
    /// Prune old pages from this store instead, of all crawls
    ///
    /// Also removes their log entries and the page texts kept for repairs. Finished crawls stay.
    #[arg(long, value_name = "URI", requires = "older_than",
        conflicts_with_all = ["app_id", "state", "dispatcher", "keys", "config"])]
    pub store: Option<String>,
    #[command(flatten)]
    pub connection: ConnectionOptions,
    /// Print the dispatcher's answer as JSON
    #[arg(long)]
    pub json: bool,
}

pub fn prune(options: PruneOptions) -> Result<ExitStatus, Fault> {
    match (&options.store, &options.app_id) {
        (Some(store), _) => {
            let answer = prune_store(store, options.older_than.unwrap_or_default())?;
            print_answer(&answer, options.json, |answer| {
                let pages = count_with_noun(&answer["total_pages"], "page", "pages");
                let entries = count_with_noun(&answer["total_log_entries"], "entry", "entries");
                let samples = count_with_noun(&answer["total_samples"], "sample", "samples");
                format!("{pages} and {entries} of their log dropped, and {samples} of pages")
            })
        }
        (None, None) => prune_all_applications(&options),
        (None, Some(app_id)) => prune_crawls(&options, app_id),
    }
}

/// Prunes the crawls of one application after another. If a dispatcher cannot drop everything at once, the remaining
/// crawls are dropped the next time.
fn prune_all_applications(options: &PruneOptions) -> Result<ExitStatus, Fault> {
    let settings = Settings::load(options.connection.config.as_deref())?;
    require_frontier(&settings.state)?;
    let applications = applications_in_file(&settings.state)?;
    for app_id in &applications {
        prune_crawls(options, app_id)?;
    }
    Ok(ExitStatus::Done)
}

fn prune_crawls(options: &PruneOptions, app_id: &str) -> Result<ExitStatus, Fault> {
    let answer = match &options.state {
        Some(state) => prune_folder(state, app_id, options)?,
        None => {
            let mut action = new_action("prune", app_id, options.crawl_id.as_deref());
            if let Some(older_than) = options.older_than {
                action["older_than"] = older_than.as_secs().into();
            }
            options.connection.connect()?.send_action(&action)?
        }
    };
    let of = without_control_characters(app_id);
    print_answer(&answer, options.json, |answer| {
        let crawls = count_with_noun(&answer["total_crawls"], "crawl", "crawls");
        let tasks = count_with_noun(&answer["total_tasks"], "URL", "URLs");
        let more = match answer["has_more"] == true {
            true => "; more remain: run the command again",
            false => "",
        };
        format!("{of}: {crawls} with {tasks} pruned{more}")
    })
}

/// Prunes a state folder that no dispatcher uses. Unlike a dispatcher, this drops everything in one step.
fn prune_folder(state: &Path, app_id: &str, options: &PruneOptions) -> Result<Value, Fault> {
    require_frontier(state)?;
    let folder = StateFolder::open(state, "dispatcher")?;
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_ms = since_epoch.map_or(0, |passed| passed.as_millis() as i64);
    let older_ms = options
        .older_than
        .map_or(0, |older| older.as_millis() as i64);
    let frontier = Frontier::open(folder.path(), FrontierConfig::default(), now_ms);
    let pruned = frontier.and_then(|mut frontier| {
        let crawl_id = options.crawl_id.as_deref();
        if let Some(crawl_id) = crawl_id
            && let Some(why) = refusal_to_prune(&mut frontier, app_id, crawl_id)?
        {
            return Ok(Err(Fault::error(format!("{app_id}/{crawl_id}: {why}"))));
        }
        prune_all(&mut frontier, app_id, crawl_id, now_ms - older_ms).map(Ok)
    });
    let (crawls, tasks) = pruned.map_err(Fault::error)??;
    if let (Some(crawl_id), 0) = (&options.crawl_id, crawls) {
        return Err(Fault::error(format!(
            "{app_id}/{crawl_id}: active since the time of --older-than, or this machine's clock went back"
        )));
    }
    Ok(json!({"action": "prune", "total_crawls": crawls, "total_tasks": tasks, "has_more": false}))
}

/// Why a crawl that the user has named cannot be dropped; `None` if it can.
fn refusal_to_prune(
    frontier: &mut Frontier,
    app_id: &str,
    crawl_id: &str,
) -> Result<Option<String>, FrontierError> {
    let Some(crawl) = frontier.crawls().find(app_id, crawl_id)? else {
        return Ok(Some("no such crawl".into()));
    };
    let status = frontier.crawls().status(crawl)?;
    let left = status.queued + status.leased;
    Ok((left > 0).then(|| {
        let are = if left == 1 { "is" } else { "are" };
        format!("{left} of its URLs {are} not done: finish or stop it first")
    }))
}

fn prune_all(
    frontier: &mut Frontier,
    app_id: &str,
    crawl_id: Option<&str>,
    unchanged_since_ms: i64,
) -> Result<(usize, u64), FrontierError> {
    let (mut crawls, mut tasks) = (0, 0);
    loop {
        let detached = frontier.pruning().detach_crawls(
            app_id,
            crawl_id,
            unchanged_since_ms,
            &BTreeSet::new(),
        )?;
        crawls += detached.crawls.len();
        tasks += detached.tasks;
        frontier.commit()?;
        while let Some(mut walk) = frontier.pruning().begin_walk()? {
            while !walk.is_over() {
                frontier.pruning().delete_slice(&mut walk)?;
                frontier.commit()?;
            }
        }
        if !detached.has_more {
            frontier.pruning().commit_and_release_pages()?;
            return Ok((crawls, tasks));
        }
    }
}
