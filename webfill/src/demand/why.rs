//! `webfill why`: shows where a URL is now in the crawls of a running fleet, and why.

use clap::Args;
use serde_json::{Value, json};
use webfill_service::{ExitStatus, Fault};

use super::actions::print_answer;
use super::connection::ConnectionOptions;
use super::table::format_cell;

#[derive(Debug, Args)]
pub struct WhyOptions {
    /// URL, as fed or linked
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
    /// Print the dispatcher's answer as JSON
    #[arg(long)]
    pub json: bool,
}

pub fn print_why(options: WhyOptions) -> Result<ExitStatus, Fault> {
    let (app, crawl) = (options.app.as_deref(), options.crawl.as_deref());
    let answer = request_why(&options.connection, &options.url, app, crawl)?;
    if answer["crawls"].as_array().is_some_and(Vec::is_empty) && (app.is_some() || crawl.is_some())
    {
        return Err(Fault::error(unknown_crawl(app, crawl)));
    }
    print_answer(&answer, options.json, format_answer)
}

fn unknown_crawl(app: Option<&str>, crawl: Option<&str>) -> String {
    let subject = match (app, crawl) {
        (Some(app), Some(crawl)) => format!("crawl `{crawl}` of the application `{app}`"),
        (None, Some(crawl)) => format!("crawl `{crawl}`"),
        (app, None) => format!("crawl of the application `{}`", app.unwrap_or_default()),
    };
    format!("no {subject}: check --app and --crawl; `webfill status` counts the known crawls")
}

/// Asks the dispatcher about a URL in all crawls. Each request covers only some of the crawls.
pub fn request_why(
    connection: &ConnectionOptions,
    url: &str,
    app: Option<&str>,
    crawl: Option<&str>,
) -> Result<Value, Fault> {
    let mut connection = connection.connect()?;
    let mut question = why_request(url, app, crawl);
    let mut answer = connection.send_action(&question)?;
    while let Some(next) = answer["next"].as_str() {
        question["after"] = next.into();
        append_part(&mut answer, connection.send_action(&question)?);
    }
    forget_guesses(&mut answer);
    Ok(answer)
}

/// Appends the next part of the answer to the parts received so far.
fn append_part(answer: &mut Value, mut more: Value) {
    answer["next"] = more["next"].take();
    let checked = [&*answer, &more].map(|part| part["crawls_checked"].as_u64());
    answer["crawls_checked"] = checked.into_iter().flatten().sum::<u64>().into();
    if let (Value::Array(crawls), Value::Array(more)) =
        (&mut answer["crawls"], more["crawls"].take())
    {
        crawls.extend(more);
    }
}

/// If any crawl knows the URL, drops the crawls that do not know it. For those, the answer only guesses what would
/// happen to the URL.
fn forget_guesses(answer: &mut Value) {
    let Value::Array(crawls) = &mut answer["crawls"] else {
        return;
    };
    let is_known = |crawl: &Value| crawl["state"] != "unknown";
    if crawls.iter().any(is_known) {
        crawls.retain(is_known);
    }
}

fn why_request(url: &str, app: Option<&str>, crawl: Option<&str>) -> Value {
    let mut question = json!({"action": "why", "url": url});
    if let Some(app) = app {
        question["appid"] = app.into();
    }
    if let Some(crawl) = crawl {
        question["crawlid"] = crawl.into();
    }
    question
}

/// Renders the answer as one sentence per crawl.
fn format_answer(answer: &Value) -> String {
    let crawls = answer["crawls"].as_array().into_iter().flatten();
    let mut lines: Vec<String> = crawls
        .map(|crawl| {
            format!(
                "{}/{}: {}",
                format_cell(&crawl["appid"]),
                format_cell(&crawl["crawlid"]),
                format_cell(&crawl["text"])
            )
        })
        .collect();
    if lines.is_empty() {
        lines.push("no such crawl".into());
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_has_one_sentence_for_each_crawl() {
        let answer = json!({"crawls": [
            {"appid": "a", "crawlid": "1", "text": "it ended with `ok`"},
            {"appid": "a", "crawlid": "2", "text": "it is queued"},
        ]});
        assert_eq!(
            format_answer(&answer),
            "a/1: it ended with `ok`\na/2: it is queued"
        );
        assert_eq!(format_answer(&json!({"crawls": []})), "no such crawl");
    }

    #[test]
    fn parts_of_an_answer_are_joined_and_guesses_are_dropped() {
        let reported = |id: &str, state: &str| json!({"crawlid": id, "state": state});
        let mut answer =
            json!({"crawls": [reported("1", "done")], "crawls_checked": 10_000, "next": "7"});
        let more = json!({
            "crawls": [reported("2", "unknown"), reported("3", "unknown")],
            "crawls_checked": 6,
            "next": null,
        });
        let mut unknown = json!({"crawls": [], "crawls_checked": 10_000, "next": "7"});
        append_part(&mut unknown, more.clone());
        append_part(&mut answer, more);
        for answer in [&mut answer, &mut unknown] {
            forget_guesses(answer);
            assert_eq!(
                (&answer["crawls_checked"], &answer["next"]),
                (&json!(10_006), &Value::Null)
            );
        }
        assert_eq!(answer["crawls"], json!([reported("1", "done")]));
        assert_eq!(unknown["crawls"].as_array().map(Vec::len), Some(2));
    }
}
