//! `webfill drain`: makes supervisors finish their current fetches, give back their other tasks, and end.

use clap::Args;
use serde_json::{Value, json};
use webfill_service::{ExitStatus, Fault};

use super::actions::print_answer;
use super::connection::ConnectionOptions;
use super::table::without_control_characters;

#[derive(Debug, Args)]
pub struct DrainOptions {
    /// Supervisor to drain [default: all that are connected]
    #[arg(long, value_name = "NAME")]
    pub supervisor: Option<String>,
    #[command(flatten)]
    pub connection: ConnectionOptions,
    /// Print the dispatcher's answer as JSON
    #[arg(long)]
    pub json: bool,
}

/// Requests the drain and waits until the supervisors have left. A supervisor that is lost instead is reported and
/// counts as a failure.
pub fn drain(options: DrainOptions) -> Result<ExitStatus, Fault> {
    let mut action = json!({"action": "drain"});
    if let Some(name) = &options.supervisor {
        action["supervisor"] = name.as_str().into();
    }
    let answer = options.connection.drain(&action)?;
    print_answer(&answer, options.json, format_answer)?;
    match join_names(&answer["lost"]) {
        lost if lost.is_empty() => Ok(ExitStatus::Done),
        lost => Err(Fault::error(format!(
            "lost while draining, their tasks go to others: {lost}"
        ))),
    }
}

fn format_answer(answer: &Value) -> String {
    match join_names(&answer["drained"]) {
        drained if drained.is_empty() => {
            String::from("nothing drained: no supervisor is connected")
        }
        drained => format!("drained: {drained}"),
    }
}

fn join_names(list: &Value) -> String {
    let names = list.as_array().into_iter().flatten();
    let names: Vec<String> = names
        .filter_map(Value::as_str)
        .map(without_control_characters)
        .collect();
    names.join(", ")
}
