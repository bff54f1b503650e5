//! Describes the progress of a crawl in sentences: what it waits for, its pace, its estimated finish, and its longest
//! running tasks.

use serde_json::Value;
use webfill_store::iso_time;

use super::table::{format_cell, without_control_characters};

/// Describes the progress, with one line for each known fact.
pub(super) fn progress_lines(answer: &Value) -> Vec<String> {
    let waits = answer["waits"].as_array().into_iter().flatten();
    let mut lines: Vec<String> = waits.map(|wait| format_cell(&wait["text"])).collect();
    let scripts = &answer["scripts"]["text"];
    lines.extend((!scripts.is_null()).then(|| format_cell(scripts)));
    lines.extend(describe_pace(answer));
    if let Value::Object(oldest) = &answer["oldest_lease"] {
        let part = |key: &str| oldest.get(key).map(format_cell).unwrap_or_default();
        let since = oldest.get("since").map(format_time).unwrap_or_default();
        lines.push(format!(
            "longest running: {} at {} since {since}",
            part("url"),
            part("supervisor"),
        ));
    }
    lines
}

/// The pace and the estimated finish of the pending tasks, as far as they are known, in one sentence.
fn describe_pace(answer: &Value) -> Option<String> {
    let per_second = answer["done_per_second"].as_f64();
    let pace = per_second.map(|pace| match pace {
        pace if pace >= 0.095 => format!("{} tasks a second", format_rounded(pace)),
        pace if pace > 0.0 => format!("{} tasks an hour", format_rounded(pace * 3_600.0)),
        _ => "nothing has finished recently".into(),
    });
    let end = match (
        answer["estimated_end"].as_f64(),
        answer["not_before"].as_f64(),
    ) {
        (Some(_), _) => Some(format!(
            "estimated finish of the pending tasks: {}",
            format_time(&answer["estimated_end"])
        )),
        (None, Some(_)) => Some(format!(
            "earliest finish of the pending tasks, by the delays of their sites: {}",
            format_time(&answer["not_before"])
        )),
        (None, None) => None,
    };
    let without = &answer["estimate_without"];
    let end = end.map(|end| match without["tasks"].as_u64() {
        Some(1) => format!("{end}, without 1 task of sites in trouble"),
        Some(tasks) => format!("{end}, without {tasks} tasks of sites in trouble"),
        None => end,
    });
    match (pace, end) {
        (Some(pace), Some(end)) => Some(format!("{pace}: {end}")),
        (one, other) => one.or(other),
    }
}

fn format_rounded(number: f64) -> String {
    match number {
        number if number >= 9.95 => format!("{number:.0}"),
        number => format!("{}", (number * 10.0).round() / 10.0),
    }
}

/// Formats seconds since the epoch as a time.
pub(super) fn format_time(seconds: &Value) -> String {
    match seconds.as_f64() {
        Some(seconds) => without_control_characters(&iso_time((seconds * 1_000.0) as i64)),
        None => format_cell(&Value::Null),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_finish_is_estimated_only_if_it_can_be_known() {
        let said = |pace, not_before, end| {
            let answer =
                json!({"done_per_second": pace, "not_before": not_before, "estimated_end": end});
            progress_lines(&answer).join("; ")
        };
        assert_eq!(said(json!(null), json!(null), json!(null)), "");
        assert_eq!(
            said(json!(0.0), json!(null), json!(null)),
            "nothing has finished recently"
        );
        assert_eq!(
            said(json!(12.3), json!(1), json!(60)),
            "12 tasks a second: estimated finish of the pending tasks: 1970-01-01T00:01:00.000Z"
        );
        assert_eq!(
            said(json!(null), json!(60), json!(null)),
            "earliest finish of the pending tasks, by the delays of their sites: 1970-01-01T00:01:00.000Z"
        );
        assert_eq!(
            said(json!(0.01), json!(null), json!(null)),
            "36 tasks an hour"
        );
        let answer = json!({"estimated_end": 60, "estimate_without": {"sites": 2, "tasks": 40}});
        assert_eq!(
            progress_lines(&answer).join("; "),
            "estimated finish of the pending tasks: 1970-01-01T00:01:00.000Z, without 40 tasks of sites in trouble"
        );
    }
}
