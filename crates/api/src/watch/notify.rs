//! The recipients of a watch's notifications, and what they receive: the items of `notify`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::keys::NOTIFY_KEYS;
use super::members::{expect_object, get_text, get_texts};
use super::target::{self, NotificationTarget};
use crate::refusal::Refusal;
use crate::rule::{Key, check_members};

/// The words that `about` may contain: the subjects of notifications.
pub(super) const ABOUT: &[&str] = &["changes", "health", "silence", "runs"];

/// The words that `when` may have: the times of notifications.
pub(super) const WHEN: &[&str] = &["digest", "at_once"];

/// A recipient of a watch's notifications.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notify {
    pub target: NotificationTarget,
    pub when: NotificationTime,
    pub about: Vec<About>,
}

/// When notifications go out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotificationTime {
    /// One notification at the end of a run, with all of its findings.
    Digest,
    AtOnce,
}

impl NotificationTime {
    pub fn as_str(self) -> &'static str {
        match self {
            NotificationTime::Digest => "digest",
            NotificationTime::AtOnce => "at_once",
        }
    }
}

/// The subject of notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// Pages that are new, changed, gone, or back.
    Changes,
    /// Alerts about mappings that extract less than before.
    Health,
    /// The watch no longer finds anything, or does not run.
    Silence,
    /// The end of each run.
    Runs,
    /// Undelivered notifications, which are reported to all recipients.
    Delivery,
}

/// The keys of an item of `notify`: the keys of each kind of target, and the keys that every item has.
pub(super) fn notify_keys() -> Vec<Key> {
    target::keys().chain(NOTIFY_KEYS.iter().copied()).collect()
}

/// Reads the items of `notify`; `path` is the JSON path of the watch.
pub(super) fn parse_notify(
    members: &Map<String, Value>,
    path: &str,
) -> Result<Vec<Notify>, Refusal> {
    let items = members.get("notify").and_then(Value::as_array);
    let items = items.into_iter().flatten().enumerate();
    items
        .map(|(index, item)| parse_notify_item(item, &format!("{path}.notify[{index}]")))
        .collect()
}

fn parse_notify_item(item: &Value, path: &str) -> Result<Notify, Refusal> {
    let members = expect_object(item, path)?;
    check_members(&notify_keys(), members, path)?;
    let target = target::parse(members, path)?;
    let when = match get_text(members, "when").as_deref() {
        Some("at_once") => NotificationTime::AtOnce,
        _ => NotificationTime::Digest,
    };
    let about = match members.get("about") {
        None => vec![About::Changes, About::Health, About::Silence],
        Some(_) => get_texts(members, "about")
            .iter()
            .filter_map(|word| parse_about(word))
            .collect(),
    };
    Ok(Notify {
        target,
        when,
        about,
    })
}

fn parse_about(word: &str) -> Option<About> {
    match word {
        "changes" => Some(About::Changes),
        "health" => Some(About::Health),
        "silence" => Some(About::Silence),
        "runs" => Some(About::Runs),
        _ => None,
    }
}
