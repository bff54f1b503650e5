//! `webfill status`: the state of the fleet.

use clap::Args;
use serde_json::{Value, json};
use webfill_startup::{ExitStatus, Fault};

use super::connection::ConnectionOptions;
use super::table::{cell, pairs, table, visible};
use crate::stdout::tell;

#[derive(Debug, Args)]
pub struct StatusOptions {
    #[command(flatten)]
    pub connection: ConnectionOptions,
    /// The dispatcher's answer as it is
    #[arg(long)]
    pub json: bool,
}

pub fn status(options: StatusOptions) -> Result<ExitStatus, Fault> {
    let question = json!({"action": "status"});
    let answer = options.connection.connect()?.act(&question)?;
    match options.json {
        true => tell(&answer)?,
        false => tell(format_answer(&answer))?,
    }
    Ok(ExitStatus::Done)
}

/// The answer for people, whatever members it has: plain values as pairs, lists of objects as tables,
/// objects of numbers as a line.
fn format_answer(answer: &Value) -> String {
    let Value::Object(answer) = answer else {
        return cell(answer);
    };
    let mut plain = Vec::new();
    let mut tables = Vec::new();
    for (key, value) in answer {
        match value {
            Value::Array(rows) if rows.iter().any(Value::is_object) => {
                tables.push(format!("{}\n{}", key.replace('_', " "), of_objects(rows)));
            }
            Value::Object(counts) => {
                let counts = counts
                    .iter()
                    .map(|(name, count)| format!("{} {}", cell(count), visible(name)));
                plain.push((key.as_str(), counts.collect::<Vec<_>>().join(", ")));
            }
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(cell).collect();
                plain.push((key.as_str(), items.join(", ")));
            }
            value => plain.push((key.as_str(), cell(value))),
        }
    }
    let plain: Vec<(String, String)> = plain
        .into_iter()
        .map(|(key, value)| (key.replace('_', " "), value))
        .collect();
    let plain: Vec<(&str, String)> = plain
        .iter()
        .map(|(key, value)| (key.as_str(), value.clone()))
        .collect();
    std::iter::once(pairs(&plain))
        .chain(tables)
        .collect::<Vec<_>>()
        .join("\n\n")
}

/// A table with a column for each key of the first object.
fn of_objects(rows: &[Value]) -> String {
    let keys: Vec<&String> = rows[0]
        .as_object()
        .into_iter()
        .flat_map(|row| row.keys())
        .collect();
    let heads: Vec<String> = keys.iter().map(|key| key.replace('_', " ")).collect();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| keys.iter().map(|key| cell(&row[key.as_str()])).collect())
        .collect();
    table(&heads, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_dispatcher_tells_is_shown() {
        let answer = json!({
            "version": "0.1.0",
            "queued": 12,
            "outcomes": {"ok": 5, "timeout": 1},
            "supervisors": [{"id": "vm-01", "held_tasks": 4}, {"id": "vm-02", "held_tasks": 11}],
        });
        let expected = "\
version   0.1.0
queued    12
outcomes  5 ok, 1 timeout

supervisors
id     held tasks
vm-01           4
vm-02          11";
        assert_eq!(format_answer(&answer), expected);
    }
}
