//! The JSON report on a stored task. It is the same whether the dispatcher makes it or a program that reads the
//! dispatcher's file.

use serde_json::{Value, json};
use webfill_wire::Outcome;

use crate::frontier::{TaskReport, TaskStage};
use crate::wording::{format_time, pluralize, to_seconds};

/// The parts of an answer that come from the task's own row.
pub(crate) fn task_json(task: &TaskReport, app_id: &str, crawl_id: &str) -> Value {
    let mut answer = json!({
        "appid": app_id,
        "crawlid": crawl_id,
        "task": task.id,
        "site": task.site_name,
        "depth": task.depth,
        "priority": task.priority,
        "deliveries": task.deliveries,
        "parent": task.parent,
        "records": {"total": task.records, "resolved": task.resolved},
        "tries": tries_json(task),
    });
    match task.stage {
        TaskStage::Done {
            outcome,
            status_code,
            at_ms,
        } => {
            answer["state"] = "ended".into();
            answer["outcome"] = outcome.as_str().into();
            answer["status_code"] = status_code.into();
            answer["ended"] = at_ms.map(to_seconds).into();
        }
        TaskStage::Leased => answer["state"] = "leased".into(),
        TaskStage::Queued { not_before_ms } => {
            answer["state"] = "queued".into();
            if not_before_ms > 0 {
                answer["not_before"] = to_seconds(not_before_ms).into();
            }
        }
    }
    answer
}

/// Why a task ended with its outcome.
pub(crate) fn explain_end(
    task: &TaskReport,
    (outcome, status_code, at_ms): (Outcome, Option<u16>, Option<i64>),
    now_ms: i64,
) -> String {
    let status = status_code.map_or(String::new(), |code| format!(" (status {code})"));
    let at = at_ms.map_or(String::new(), |at_ms| {
        format!(" at {}", format_time(at_ms, now_ms))
    });
    let is_needless = task.records > 0 && task.resolved == task.records;
    let why = match outcome {
        Outcome::Stopped if is_needless => {
            ", because all records that wanted it were complete".into()
        }
        Outcome::Stopped => ", because its crawl was stopped, or its site excluded".into(),
        Outcome::Expired => ", because its crawl had expired".into(),
        Outcome::Disallowed => ": robots.txt disallows it".into(),
        Outcome::Crashed => {
            format!(
                ": it has killed {}",
                pluralize(task.deaths.into(), "worker")
            )
        }
        _ => String::new(),
    };
    let deliveries = match task.deliveries {
        0 => ", without being handed out".into(),
        n => format!(", after {}", format_deliveries(n)),
    };
    format!("it ended with `{outcome}`{status}{at}{why}{deliveries}")
}

fn tries_json(task: &TaskReport) -> Vec<Value> {
    let tries = task.failed_attempts.iter();
    tries
        .map(|attempt| {
            json!({
                "outcome": attempt.outcome,
                "status_code": attempt.status_code,
                "ended": to_seconds(attempt.ended_at_ms),
            })
        })
        .collect()
}

fn format_deliveries(n: u32) -> String {
    match n {
        1 => "1 delivery".into(),
        n => format!("{n} deliveries"),
    }
}
