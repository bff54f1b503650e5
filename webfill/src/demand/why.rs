//! `webfill why`: where a URL is now in the crawls of a running fleet, and why.

use clap::Args;
use serde_json::{Value, json};
use webfill_startup::{ExitStatus, Fault};

use super::actions::answered;
use super::connection::ConnectionOptions;
use super::table::cell;

#[derive(Debug, Args)]
pub struct WhyOptions {
    /// The URL, as it was fed or is linked
    #[arg(value_name = "URL")]
    pub url: String,
    /// Only in crawls of this application
    #[arg(long, value_name = "APPID")]
    pub app: Option<String>,
    /// Only in crawls of this id
    #[arg(long, value_name = "CRAWLID")]
    pub crawl: Option<String>,
    #[command(flatten)]
    pub connection: ConnectionOptions,
    /// The dispatcher's answer as it is
    #[arg(long)]
    pub json: bool,
}

pub fn why(options: WhyOptions) -> Result<ExitStatus, Fault> {
    let question = question(
        &options.url,
        options.app.as_deref(),
        options.crawl.as_deref(),
    );
    let answer = options.connection.connect()?.act(&question)?;
    answered(&answer, options.json, in_words)
}

/// The dispatcher's answer.
pub fn ask_why(
    connection: &ConnectionOptions,
    url: &str,
    app: Option<&str>,
    crawl: Option<&str>,
) -> Result<Value, Fault> {
    connection.connect()?.act(&question(url, app, crawl))
}

fn question(url: &str, app: Option<&str>, crawl: Option<&str>) -> Value {
    let mut question = json!({"action": "why", "url": url});
    if let Some(app) = app {
        question["appid"] = app.into();
    }
    if let Some(crawl) = crawl {
        question["crawlid"] = crawl.into();
    }
    question
}

/// A sentence for each crawl.
fn in_words(answer: &Value) -> String {
    let crawls = answer["crawls"].as_array().into_iter().flatten();
    let mut lines: Vec<String> = crawls
        .map(|told| {
            format!(
                "{}/{}: {}",
                cell(&told["appid"]),
                cell(&told["crawlid"]),
                cell(&told["text"])
            )
        })
        .collect();
    if lines.is_empty() {
        lines.push("the dispatcher knows no such crawl".into());
    }
    if answer["left_out"] == true {
        lines.push(format!(
            "only {} crawls were looked at, those that were opened last: name one by --app and --crawl",
            cell(&answer["crawls_looked_at"])
        ));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_crawl_has_its_sentence() {
        let answer = json!({
            "crawls": [
                {"appid": "a", "crawlid": "1", "text": "it ended with `ok`"},
                {"appid": "a", "crawlid": "2", "text": "it is queued"},
            ],
            "crawls_looked_at": 1_000,
            "left_out": true,
        });
        let told = in_words(&answer);
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(lines[..2], ["a/1: it ended with `ok`", "a/2: it is queued"]);
        assert!(lines[2].contains("1000 crawls"), "{told}");
        assert_eq!(
            in_words(&json!({"crawls": []})),
            "the dispatcher knows no such crawl"
        );
    }
}
