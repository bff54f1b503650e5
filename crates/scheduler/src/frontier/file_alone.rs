//! Reads a URL's state directly from the frontier's file, while no dispatcher answers. The file is only read, so this
//! is possible at any time. The index of seen URLs belongs to the dispatcher, so all tasks are searched.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, Result, params};
use serde_json::Value;
use webfill_service::Fault;

use super::model::TaskId;
use super::stored_urls::shorten_url;
use super::task_reports::{TaskStage, read_report};
use super::{FILE_NAME, schema};
use crate::task_json::{explain_end, task_json};

/// The maximum number of crawls to report.
const MOST_LISTED: i64 = 20;

/// The tasks of a canonical URL in the crawls with these ids, the latest crawl first, explained as a dispatcher
/// would; `None` if there is no file.
pub fn tasks_in_file(
    state: &Path,
    url: &str,
    (app_id, crawl_id): (Option<&str>, Option<&str>),
    now_ms: i64,
) -> std::result::Result<Option<Vec<Value>>, Fault> {
    let path = state.join(FILE_NAME);
    if !path.exists() {
        return Ok(None);
    }
    let named = (app_id, crawl_id);
    tasks_json(&open_read_only(&path)?, url, named, now_ms)
        .map(Some)
        .map_err(|error| read_fault(&path, &error))
}

/// The applications that have crawls in the file of a state folder; the file must exist.
pub fn applications_in_file(state: &Path) -> std::result::Result<Vec<String>, Fault> {
    let path = state.join(FILE_NAME);
    let db = open_read_only(&path)?;
    let sql = "SELECT DISTINCT app_id FROM crawls WHERE app_id <> '' ORDER BY app_id";
    db.prepare(sql)
        .and_then(|mut select| select.query_map([], |row| row.get(0))?.collect())
        .map_err(|error| read_fault(&path, &error))
}

fn read_fault(path: &Path, error: &dyn std::fmt::Display) -> Fault {
    Fault::error(format!("cannot read {}: {error}", path.display()))
}

fn open_read_only(path: &Path) -> std::result::Result<Connection, Fault> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags).map_err(|error| read_fault(path, &error))?;
    schema::check_format(&db, path).map_err(Fault::error)?;
    Ok(db)
}

fn tasks_json(
    db: &Connection,
    url: &str,
    (app_id, crawl_id): (Option<&str>, Option<&str>),
    now_ms: i64,
) -> Result<Vec<Value>> {
    let Ok(parsed) = webfill_urls::Url::parse(url) else {
        return Ok(Vec::new());
    };
    let site = webfill_urls::site(&parsed);
    let sql = "SELECT max(task_rows.id), app_id, crawls.crawl_id FROM task_rows
                   JOIN crawls ON crawls.id = task_rows.crawl
               WHERE site = (SELECT id FROM sites WHERE name = ?1) AND url = ?2 AND app_id <> ''
                   AND (?3 IS NULL OR app_id = ?3) AND (?4 IS NULL OR crawls.crawl_id = ?4)
               GROUP BY task_rows.crawl ORDER BY task_rows.crawl DESC LIMIT ?5";
    let mut select = db.prepare(sql)?;
    let short = shorten_url(url, &site);
    let values = params![site, short, app_id, crawl_id, MOST_LISTED];
    let found = select.query_map(values, |row| {
        Ok((row.get::<_, i64>(0)? as TaskId, row.get(1)?, row.get(2)?))
    })?;
    let found: Vec<(TaskId, String, String)> = found.collect::<Result<_>>()?;
    let mut answers = Vec::new();
    for (task, app_id, crawl_id) in found {
        let Some(report) = read_report(db, task)? else {
            continue;
        };
        let mut one = task_json(&report, &app_id, &crawl_id);
        let text = match report.stage {
            TaskStage::Done {
                outcome,
                status_code,
                at_ms,
            } => explain_end(&report, (outcome, status_code, at_ms), now_ms),
            TaskStage::Leased => {
                "it is leased, by the file of a dispatcher that does not answer".into()
            }
            TaskStage::Queued { .. } => {
                "it is queued, by the file of a dispatcher that does not answer".into()
            }
        };
        one["text"] = Value::String(text);
        answers.push(one);
    }
    Ok(answers)
}
