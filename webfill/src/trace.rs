//! `webfill trace`: shows the history of one URL in chronological order. It reads the dispatcher's state, the page in
//! the store, and the logs of all processes, which may come from many machines.
//!
//! Log lines belong to the history if they name the URL, or one of its tasks together with the task's crawl. With
//! `log.level = "info,journey=debug"`, each step is logged.

mod feeders;
mod logs;
mod steps;

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use webfill_scheduler::frontier::tasks_in_file;
use webfill_service::{ExitStatus, Fault};
use webfill_store::{StoreUri, open_existing, page_id};

use self::feeders::Feeders;
use self::logs::{CrawlFilter, TaskName, read_logs};
use self::steps::{Step, render_history};
use crate::demand::{ConnectionOptions, request_why};
use crate::feeding::now_ms;
use crate::settings::Settings;
use crate::stdout::print;

#[derive(Debug, Args)]
pub struct TraceOptions {
    /// URL, as fed or linked
    #[arg(value_name = "URL")]
    pub url: String,
    /// Only in crawls of this application
    #[arg(long, value_name = "APPID")]
    pub app: Option<String>,
    /// Only in crawls of this id
    #[arg(long, value_name = "CRAWLID")]
    pub crawl: Option<String>,
    /// Folder of log files, of one machine or collected from several [default: this machine's]
    #[arg(long, value_name = "DIR")]
    pub logs: Option<PathBuf>,
    /// Store of the page [default: the settings']
    #[arg(long, value_name = "URI")]
    pub store: Option<String>,
    /// State folder of the dispatcher, read if it does not answer [default: the settings']
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    #[command(flatten)]
    pub connection: ConnectionOptions,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

pub fn run(options: TraceOptions) -> Result<ExitStatus, Fault> {
    let settings = Settings::load(options.connection.config.as_deref())?;
    let url = webfill_urls::canonical_url_with_route(&options.url, None)
        .map_err(|refusal| Fault::usage(format!("`{}`: {refusal}", options.url)))?
        .to_string();
    let mut missing = Vec::new();
    let (app, crawl) = (options.app.as_deref(), options.crawl.as_deref());
    let crawls = match request_why(&options.connection, &url, app, crawl) {
        Ok(answer) => answer["crawls"].as_array().cloned().unwrap_or_default(),
        Err(fault) => {
            let state = options.state.unwrap_or_else(|| settings.state.clone());
            let (crawls, what) = read_frontier(&state, &url, (app, crawl), &fault);
            missing.push(what);
            crawls
        }
    };
    let folder = options.logs.unwrap_or_else(|| settings.log_folder());
    let tasks: Vec<TaskName> = crawls.iter().filter_map(TaskName::from_crawl).collect();
    let named = named_crawls(&crawls, app, crawl);
    let knowing = crawls.iter().filter(|crawl| crawl["state"] != "unknown");
    let feeders = Feeders::new(knowing.filter_map(crawl_ids));
    let found = read_logs(&folder, &url, CrawlFilter { app, crawl }, tasks, feeders);
    missing.extend(found.missing);
    let mut steps = found.steps;
    let store = options.store.unwrap_or_else(|| settings.store.clone());
    match load_pages(&store, &named, &url) {
        Ok(pages) => steps.extend(pages.iter().map(Step::from_page)),
        Err(fault) => missing.push(format!("the page in the store: {fault}")),
    }
    steps.sort_by_key(Step::sort_key);
    if !steps.iter().any(|step| step.event == "leased") {
        let what = "each step, which is logged with log.level = \"info,journey=debug\"";
        missing.push(what.into());
    }
    match options.json {
        true => {
            let steps: Vec<Value> = steps.iter().map(Step::json).collect();
            print(json!({"url": url, "crawls": crawls, "steps": steps, "missing": missing}))?;
        }
        false => print(render_history(&url, &crawls, &steps, &missing))?,
    }
    Ok(ExitStatus::Done)
}

/// Reads the crawls that know the URL from the dispatcher's file, if the dispatcher does not answer. Also returns a
/// note on what the file does not contain.
fn read_frontier(
    state: &Path,
    url: &str,
    named: (Option<&str>, Option<&str>),
    silent: &Fault,
) -> (Vec<Value>, String) {
    match tasks_in_file(state, url, named, now_ms()) {
        Ok(Some(crawls)) => {
            let what = format!("the dispatcher's data beyond its file: {silent}");
            (crawls, what)
        }
        Ok(None) => (Vec::new(), format!("the dispatcher's data: {silent}")),
        Err(fault) => {
            let what = format!("the dispatcher's data: {silent}; {fault}");
            (Vec::new(), what)
        }
    }
}

/// The application and id of each crawl whose page is looked up: those that know the URL, or the one named by the user.
fn named_crawls(crawls: &[Value], app: Option<&str>, crawl: Option<&str>) -> Vec<(String, String)> {
    let mut named: Vec<(String, String)> = crawls.iter().filter_map(crawl_ids).collect();
    if let (true, Some(app), Some(crawl)) = (named.is_empty(), app, crawl) {
        named.push((app.to_owned(), crawl.to_owned()));
    }
    named
}

/// The application and the id of a crawl.
fn crawl_ids(crawl: &Value) -> Option<(String, String)> {
    let text = |key: &str| crawl[key].as_str().map(str::to_owned);
    Some((text("appid")?, text("crawlid")?))
}

/// Loads the stored pages of a URL in these crawls.
fn load_pages(store: &str, crawls: &[(String, String)], url: &str) -> Result<Vec<Value>, Fault> {
    if crawls.is_empty() {
        return Ok(Vec::new());
    }
    let uri: StoreUri = store.parse().map_err(Fault::usage)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Fault::error)?;
    runtime.block_on(async {
        let store = open_existing(&uri).await.map_err(Fault::error)?;
        let ids = crawls.iter().map(|(app, crawl)| page_id(app, crawl, url));
        let mut pages = Vec::new();
        let mut keep = |page: Value| {
            pages.push(page);
            Ok(())
        };
        store
            .pages(ids.collect(), &mut keep)
            .await
            .map_err(Fault::error)?;
        Ok(pages)
    })
}
