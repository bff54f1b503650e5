//! `webfill lists`: shows how far each list of a crawl was read, and how many of its rows are gone. It uses only the
//! store.

use std::collections::BTreeSet;
use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};
use webfill_followers::row_lists;
use webfill_service::{ExitStatus, Fault};
use webfill_store::{
    CheckedRows, CrawlId, GoneMarking, ListPass, ListState, ListedPage, Lists, Store, StoreUri,
    check_and_mark_missing_rows, iso_time, open_existing, page_id, read_list, split_record_key,
};
use webfill_wire::Outcome;

use crate::cli::parse_id;
use crate::demand::table::{table, without_control_characters};
use crate::stdout::print;
use crate::summary::ListCounts;

#[derive(Debug, Args)]
pub struct ListsOptions {
    /// Crawl id
    #[arg(long, value_name = "ID", value_parser = parse_id)]
    pub crawl: String,
    /// Application id; that of watches is `watches`
    #[arg(long, value_name = "ID", default_value = "local", value_parser = parse_id)]
    pub app: String,
    /// Store to read
    #[arg(
        long,
        value_name = "URI",
        default_value = "sqlite:webfill.db",
        env = "WEBFILL_STORE"
    )]
    pub store: String,
    /// Show only lists that are not complete
    #[arg(long)]
    pub unfinished: bool,
    /// Mark rows that are gone, as a crawl does at its end
    #[arg(long)]
    pub judge: bool,
    /// Confirm that the missing rows of a list are gone, even if most are missing; URL of the list's first page
    #[arg(long, value_name = "URL", conflicts_with_all = ["judge", "unfinished"])]
    pub confirm: Option<String>,
    /// Print one JSON object per list, each on its own line
    #[arg(long)]
    pub json: bool,
}

const HEADS: [&str; 6] = ["list", "record", "pages", "rows", "gone", "state"];

/// Runs `webfill lists`.
pub fn run(options: ListsOptions) -> Result<ExitStatus, Fault> {
    let uri: StoreUri = options.store.parse().map_err(Fault::usage)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|error| Fault::error(format!("cannot start: {error}")))?;
    runtime.block_on(print_lists(&options, &uri))?;
    Ok(ExitStatus::Done)
}

async fn print_lists(options: &ListsOptions, uri: &StoreUri) -> Result<(), Fault> {
    let store: Arc<dyn Store> = open_existing(uri).await.map_err(Fault::error)?;
    let crawl = CrawlId::new(&options.app, &options.crawl);
    if store
        .get_crawl(&crawl)
        .await
        .map_err(Fault::error)?
        .is_none()
    {
        let CrawlId { app_id, crawl_id } = crawl;
        return Err(Fault::usage(format!(
            "--crawl {crawl_id}: no such crawl of application {app_id} in {uri}"
        )));
    }
    let mut shown = ShownLists::default();
    if let Some(url) = &options.confirm {
        let (list, judged) = confirm_gone(&*store, &crawl, url).await?;
        shown.add(&list, &judged, options)?;
    } else {
        let marks = match options.judge {
            true => GoneMarking::Believed,
            false => GoneMarking::Nothing,
        };
        let mut lists = Lists::new(&store, &crawl);
        while let Some(list) = lists.next().await.map_err(Fault::error)? {
            let judged = check_and_mark_missing_rows(&*store, &list, marks).await;
            let judged = judged.map_err(Fault::error)?;
            row_lists::log_rows(&list, &judged);
            shown.add(&list, &judged, options)?;
        }
    }
    shown.print_table(options)
}

/// Marks the rows that a list no longer holds as gone, even if most rows are missing.
async fn confirm_gone(
    store: &dyn Store,
    crawl: &CrawlId,
    url: &str,
) -> Result<(ListPass, Vec<CheckedRows>), Fault> {
    let refused = |why: String| Fault::usage(format!("--confirm {url}: {why}"));
    let id = page_id(&crawl.app_id, &crawl.crawl_id, url);
    let pages = store.listed_pages(vec![id]).await.map_err(Fault::error)?;
    let is_first = |page: &&ListedPage| page.list.as_ref().is_some_and(|list| list.first == url);
    let Some(first) = pages.iter().find(is_first) else {
        let crawl_id = &crawl.crawl_id;
        return Err(refused(format!(
            "no list of crawl {crawl_id} starts there; `webfill lists --crawl {crawl_id}` prints all"
        )));
    };
    let list = read_list(store, crawl, first).await.map_err(Fault::error)?;
    if list.complete.is_empty() {
        let why = "its mapping lacks `\"complete\": true`, so its missing rows are not gone";
        return Err(refused(why.into()));
    }
    if list.state != ListState::Complete {
        let state = describe_state(&list, &[]);
        return Err(refused(format!(
            "only a complete list shows which rows are gone, and it is {state}"
        )));
    }
    let judged = check_and_mark_missing_rows(store, &list, GoneMarking::Confirmed).await;
    let judged = judged.map_err(Fault::error)?;
    if let Some(doubt) = judged.iter().find_map(|one| one.doubt) {
        let why = doubt.text();
        return Err(refused(format!(
            "{why}: crawl it again, with all of its pages"
        )));
    }
    row_lists::log_rows(&list, &judged);
    Ok((list, judged))
}

/// The selected lists, as rows of the printed table.
#[derive(Default)]
struct ShownLists {
    counts: ListCounts,
    /// The outcomes of failed pages, for the command that retries these pages.
    failed: BTreeSet<String>,
    rows: Vec<Vec<String>>,
}

impl ShownLists {
    fn add(
        &mut self,
        list: &ListPass,
        judged: &[CheckedRows],
        options: &ListsOptions,
    ) -> Result<(), Fault> {
        self.counts.add(list, judged);
        let failed = list.breaches.iter().filter_map(failed_outcome);
        self.failed.extend(failed);
        if options.unfinished && list.state == ListState::Complete {
            return Ok(());
        }
        match options.json {
            true => print(list_json(list, judged))?,
            false => self.rows.push(list_row(list, judged)),
        }
        Ok(())
    }

    fn print_table(self, options: &ListsOptions) -> Result<(), Fault> {
        if options.json {
            return Ok(());
        }
        let mut parts = Vec::new();
        if !self.rows.is_empty() {
            parts.push(table(&HEADS, &self.rows));
        }
        parts.push(format!("lists: {}", self.counts.text()));
        if self.counts.has_doubts() {
            let hint = "if a list has really lost its rows, mark them as gone with `--confirm URL`";
            parts.push(hint.into());
        }
        if !self.failed.is_empty() {
            let failed: Vec<&str> = self.failed.iter().map(String::as_str).collect();
            let failed = failed.join(",");
            let (app, id) = (&options.app, &options.crawl);
            parts.push(format!(
                "to fetch failed pages again: the command of the crawl with `--crawl {id} --retry {failed}`, \
                 or `webfill retry {app} {id} --outcome {failed}` in a fleet"
            ));
        }
        print(parts.join("\n\n"))
    }
}

/// The outcome of the failed page, if that is why the list is incomplete.
fn failed_outcome(breach: &webfill_store::IncompleteReason) -> Option<String> {
    let outcome: Outcome = breach.why.parse().ok()?;
    (outcome != Outcome::Ok).then(|| outcome.as_str().to_owned())
}

fn count_gone(judged: &[CheckedRows]) -> u64 {
    judged.iter().map(|one| one.rows.gone).sum()
}

fn record_ids(list: &ListPass) -> Vec<&str> {
    let ids = list.records.iter().map(|key| split_record_key(key).1);
    ids.collect()
}

fn list_row(list: &ListPass, judged: &[CheckedRows]) -> Vec<String> {
    let more = if list.is_end_known { "" } else { "+" };
    let gone = match list.complete.is_empty() {
        true => String::from("-"),
        false => count_gone(judged).to_string(),
    };
    let records = match record_ids(list).as_slice() {
        [] => String::from("-"),
        ids => without_control_characters(&ids.join(", ")),
    };
    vec![
        without_control_characters(&list.first),
        records,
        format!("{} of {}{more}", list.pages_done, list.pages_known),
        list.rows.to_string(),
        gone,
        describe_state(list, judged),
    ]
}

/// The state of a list for people, with the reason.
fn describe_state(list: &ListPass, judged: &[CheckedRows]) -> String {
    let why = |breach: &webfill_store::IncompleteReason| {
        format!(
            "{} at {}",
            breach.why,
            without_control_characters(&breach.url)
        )
    };
    let first = list.breaches.first().map(why).unwrap_or_default();
    match list.state {
        ListState::Complete => match judged.iter().find_map(|one| one.doubt) {
            Some(doubt) => format!("complete, but no row is gone: {}", doubt.text()),
            None => String::from("complete"),
        },
        ListState::Open => format!("open: {first}"),
        ListState::BrokenOff => format!("broken off: {first}"),
    }
}

fn list_json(list: &ListPass, judged: &[CheckedRows]) -> Value {
    let datasets = judged.iter().map(|one| {
        json!({
            "dataset": one.dataset,
            "held": one.rows.held,
            "seen": one.rows.seen,
            "missing": one.rows.unseen,
            "gone": one.rows.gone,
            "newly_gone": one.rows.newly_gone,
            "doubt": one.doubt,
        })
    });
    json!({
        "list": list.first,
        "mapping": list.mapping,
        "records": record_ids(list),
        "state": list.state,
        "pages_done": list.pages_done,
        "pages_known": list.pages_known,
        "is_end_known": list.is_end_known,
        "rows": list.rows,
        "began_at": iso_time(list.began_ms),
        "breaches": list.breaches,
        "datasets": datasets.collect::<Vec<_>>(),
    })
}
