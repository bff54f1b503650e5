//! `webfill reload`: makes the fleet reload mappings and settings.

use clap::Args;
use serde_json::{Value, json};
use webfill_service::{ExitStatus, Fault};

use super::actions::print_answer;
use super::connection::ConnectionOptions;
use super::table::without_control_characters;

#[derive(Debug, Args)]
pub struct ReloadOptions {
    #[command(flatten)]
    pub connection: ConnectionOptions,
    /// Print the dispatcher's answer as JSON
    #[arg(long)]
    pub json: bool,
}

pub fn reload(options: ReloadOptions) -> Result<ExitStatus, Fault> {
    let question = json!({"action": "reload"});
    let answer = options.connection.connect()?.send_action(&question)?;
    print_answer(&answer, options.json, format_answer)
}

fn format_answer(answer: &Value) -> String {
    let mappings = &answer["mappings"];
    let mut lines = vec![match mappings["changed"] == true {
        true => format!("mappings: changed, {} files", mappings["files"]),
        false => String::from("mappings: unchanged"),
    }];
    for (key, meaning) in [
        ("changed", "settings changed"),
        ("needs_restart", "settings that need a restart"),
    ] {
        let names = answer[key].as_array().into_iter().flatten();
        let names: Vec<String> = names
            .filter_map(Value::as_str)
            .map(without_control_characters)
            .collect();
        if !names.is_empty() {
            lines.push(format!("{meaning}: {}", names.join(", ")));
        }
    }
    lines.join("\n")
}
