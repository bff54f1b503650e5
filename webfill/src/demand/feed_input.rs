//! Checks the first line of a feed, before anything is sent: a list of URLs, a table, a JSON array or a binary file is
//! refused as a whole, with the command that reads it.

use std::path::Path;

use serde_json::Value;
use webfill_service::Fault;

use crate::seeds::lines::{Line, LineText, Lines};

/// The most lines that are read ahead to find the first one with content.
const MOST_LINES_AHEAD: usize = 1_000;

/// Refuses an input that does not consist of crawl requests. All lines can still be read from `lines`.
pub(super) fn check_first_line(path: &Path, lines: &mut Lines) -> Result<(), Fault> {
    let mut ahead: Vec<Line> = Vec::new();
    let mut refusal = None;
    let mut has_content = false;
    while ahead.len() < MOST_LINES_AHEAD
        && !has_content
        && let Some(line) = lines.next()
    {
        if let LineText::Whole(text) = &line.text {
            let trimmed = text.trim_ascii();
            has_content = !trimmed.is_empty() && !trimmed.starts_with(b"#");
            refusal = if has_content {
                refusal_of(trimmed, path)
            } else {
                None
            };
        } else {
            has_content = true;
        }
        ahead.push(line);
    }
    let number = ahead.last().map_or(0, |line| line.number);
    if !has_content && ahead.len() < MOST_LINES_AHEAD {
        webfill_service::say!(
            "webfill: {} has no crawl requests: it is empty",
            shown(path)
        );
    }
    lines.put_back(ahead);
    match refusal {
        None => Ok(()),
        Some(why) => Err(Fault::usage(format!(
            "line {number} of {} {why}",
            shown(path)
        ))),
    }
}

fn shown(path: &Path) -> String {
    match path.as_os_str() == "-" {
        true => String::from("standard input"),
        false => path.display().to_string(),
    }
}

/// Why a line cannot begin a feed, and which command reads such a file. `None` for JSON objects, right or wrong.
fn refusal_of(line: &[u8], path: &Path) -> Option<String> {
    let path = shown(path);
    let Ok(text) = std::str::from_utf8(line) else {
        return Some(String::from(
            "is not text in UTF-8: crawl requests are JSON lines in UTF-8",
        ));
    };
    if text.contains('\0') {
        return Some(String::from(
            "is binary: crawl requests are JSON lines in UTF-8",
        ));
    }
    if text.starts_with('[') {
        return Some(format!(
            "begins a JSON array, but crawl requests are JSON lines, an object on each: \
             jq -c '.[]' {path} | webfill feed -"
        ));
    }
    if text.starts_with('{') {
        return is_record(text).then(|| {
            format!(
                "is a record, not a crawl request: `webfill crawl --seeds {path}` crawls records"
            )
        });
    }
    if is_url(text) {
        return Some(format!(
            "is a URL, not a crawl request: `webfill crawl --seeds {path}` crawls it; \
             for this dispatcher, wrap each URL: \
             jq -Rc '{{url: ., appid: \"APP\", crawlid: \"CRAWL\"}}' {path} | webfill feed -"
        ));
    }
    if text.contains([',', ';', '\t']) {
        return Some(format!(
            "is not JSON, and looks like a table: `webfill fill {path}` completes a table, \
             `webfill crawl --seeds {path}` crawls its links"
        ));
    }
    Some(String::from(
        "is not a JSON object: crawl requests are JSON lines, such as \
         {\"url\": \"https://a.example/\", \"appid\": \"shop\", \"crawlid\": \"spring\"}",
    ))
}

fn is_record(text: &str) -> bool {
    let parsed: Option<Value> = serde_json::from_str(text).ok();
    let has = |key: &str| {
        parsed
            .as_ref()
            .is_some_and(|value| value.get(key).is_some())
    };
    (has("urls") || has("fields") || has("want")) && !has("appid")
}

pub(super) fn is_url(text: &str) -> bool {
    let lower = text.get(..8).unwrap_or(text).to_ascii_lowercase();
    lower.starts_with("http://") || lower.starts_with("https://")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_for_other_files_is_named() {
        for (line, part) in [
            ("https://a.example/", "webfill crawl --seeds list"),
            ("id,url,name", "webfill fill list"),
            ("[", "jq -c '.[]' list"),
            (
                r#"{"id": "1", "urls": ["https://a.example/"]}"#,
                "is a record",
            ),
            ("a\0b", "binary"),
            ("hello", "not a JSON object"),
        ] {
            let refusal = refusal_of(line.as_bytes(), Path::new("list")).unwrap();
            assert!(refusal.contains(part), "{line}: {refusal}");
        }
        assert!(refusal_of(b"\xff\xd8", Path::new("list")).is_some());
        assert_eq!(
            refusal_of(br#"{"url": "x", "appid": "a"}"#, Path::new("l")),
            None
        );
        assert_eq!(refusal_of(b"{broken", Path::new("l")), None);
    }
}
