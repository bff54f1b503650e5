//! `webfill retry`: queues ended tasks of a crawl again.

use clap::Args;
use serde_json::Value;
use webfill_service::{ExitStatus, Fault};
use webfill_wire::Outcome;

use super::actions::{new_action, print_answer};
use super::connection::ConnectionOptions;
use super::table::{format_cell, without_control_characters};

#[derive(Debug, Args)]
pub struct RetryOptions {
    /// Application id
    #[arg(value_name = "APPID")]
    pub app_id: String,
    /// Crawl id
    #[arg(value_name = "CRAWLID")]
    pub crawl_id: String,
    /// Tasks with one of these outcomes; repeatable, or separated by commas
    #[arg(long, value_name = "OUTCOME", value_delimiter = ',', required = true)]
    pub outcome: Vec<Outcome>,
    /// Only tasks with one of these HTTP statuses; repeatable, or separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub status: Vec<u16>,
    /// Only tasks of this site: a registrable domain, or an IP address
    #[arg(long, value_name = "SITE")]
    pub site: Option<String>,
    #[command(flatten)]
    pub connection: ConnectionOptions,
    /// Print the dispatcher's answer as JSON
    #[arg(long)]
    pub json: bool,
}

pub fn retry(options: RetryOptions) -> Result<ExitStatus, Fault> {
    let mut action = retry_action(&options.app_id, &options.crawl_id, &options.outcome);
    if !options.status.is_empty() {
        action["status"] = options.status.into();
    }
    if let Some(site) = options.site {
        action["site"] = site.into();
    }
    let answer = options.connection.connect()?.send_action(&action)?;
    let crawl = without_control_characters(&format!("{}/{}", options.app_id, options.crawl_id));
    print_answer(&answer, options.json, |answer| {
        let requeued = format_cell(&answer["total_requeued"]);
        format!("{crawl}: {requeued} finished URLs re-queued")
    })
}

/// The action that queues the tasks of a crawl with these outcomes again.
pub fn retry_action(app_id: &str, crawl_id: &str, outcomes: &[Outcome]) -> Value {
    let mut action = new_action("retry", app_id, Some(crawl_id));
    let names = outcomes.iter().map(|outcome| outcome.as_str());
    action["outcome"] = names.collect();
    action
}
