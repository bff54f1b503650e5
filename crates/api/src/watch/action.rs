//! Actions on the watches of a fleet: `watch_add`, `watch_list`, `watch_show`, `watch_run`,
//! `watch_pause`, `watch_resume`, `watch_remove`.

use serde_json::{Map, Value};

use super::Watch;
use crate::action::UUID;
use crate::refusal::Refusal;
use crate::rule::{Key, Rule, check_members};

/// An action on the watches of a fleet.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchAction {
    pub order: WatchOrder,
    pub uuid: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum WatchOrder {
    /// Adds a watch, or changes the one with its name.
    Add(Box<Watch>),
    List,
    /// Shows the watch with this name, and this many of its last runs.
    Show(String, u64),
    /// Runs the watch now.
    Run(String),
    /// Begins no further run of the watch until it is resumed.
    Pause(String),
    Resume(String),
    /// Removes the watch; the records of its runs stay.
    Remove(String),
}

impl WatchOrder {
    /// The action's name.
    pub fn name(&self) -> &'static str {
        match self {
            WatchOrder::Add(_) => "watch_add",
            WatchOrder::List => "watch_list",
            WatchOrder::Show(..) => "watch_show",
            WatchOrder::Run(_) => "watch_run",
            WatchOrder::Pause(_) => "watch_pause",
            WatchOrder::Resume(_) => "watch_resume",
            WatchOrder::Remove(_) => "watch_remove",
        }
    }
}

/// How many runs are shown by default, and at most.
const RUNS_SHOWN: u64 = 10;
const MOST_RUNS_SHOWN: u64 = 1_000;

const ACTION: Key = Key {
    name: "action",
    required: true,
    rule: Rule::Text(20),
    meaning: "What to do.",
};

const NAME: Key = Key {
    name: "name",
    required: true,
    rule: Rule::Name(128),
    meaning: "The watch.",
};

const LIST_KEYS: &[Key] = &[ACTION, UUID];
const NAME_KEYS: &[Key] = &[ACTION, UUID, NAME];
const SHOW_KEYS: &[Key] = &[
    ACTION,
    UUID,
    NAME,
    Key {
        name: "runs",
        required: false,
        rule: Rule::Whole(0, MOST_RUNS_SHOWN),
        meaning: "How many of the last runs are shown.",
    },
];
const ADD_KEYS: &[Key] = &[
    ACTION,
    UUID,
    Key {
        name: "watch",
        required: true,
        rule: Rule::Object(1 << 16),
        meaning: "The watch.",
    },
];

/// Parses an action on watches; `None` if it is another action.
pub(crate) fn parse_watch_action(
    action: &str,
    members: &Map<String, Value>,
) -> Result<Option<WatchAction>, Refusal> {
    let text = |key: &str| members.get(key).and_then(Value::as_str);
    let named =
        |keys| check_members(keys, members, "$").map(|()| text("name").unwrap_or_default().into());
    let order = match action {
        "watch_list" => check_members(LIST_KEYS, members, "$").map(|()| WatchOrder::List)?,
        "watch_show" => {
            let name = named(SHOW_KEYS)?;
            let runs = members.get("runs").and_then(Value::as_u64);
            WatchOrder::Show(name, runs.unwrap_or(RUNS_SHOWN))
        }
        "watch_run" => WatchOrder::Run(named(NAME_KEYS)?),
        "watch_pause" => WatchOrder::Pause(named(NAME_KEYS)?),
        "watch_resume" => WatchOrder::Resume(named(NAME_KEYS)?),
        "watch_remove" => WatchOrder::Remove(named(NAME_KEYS)?),
        "watch_add" => {
            check_members(ADD_KEYS, members, "$")?;
            let watch = members.get("watch").cloned().unwrap_or_default();
            let watch = Watch::parse_at(watch, "$.watch")?;
            watch.check_for_fleet("$.watch")?;
            WatchOrder::Add(Box::new(watch))
        }
        _ => return Ok(None),
    };
    let uuid = text("uuid").map(str::to_owned);
    Ok(Some(WatchAction { order, uuid }))
}
