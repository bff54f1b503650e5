//! The recipients of a watch's notifications, and what they receive: the items of `notify`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::keys::NOTIFY_KEYS;
use super::{object, text, texts};
use crate::refusal::Refusal;
use crate::rule::check;

/// The keys that name a target; an item has exactly one of them.
const TARGETS: [&str; 5] = ["webhook", "mail", "command", "file", "firehose"];

/// The words of `about`.
pub(super) const ABOUT: &[&str] = &["changes", "health", "silence", "runs"];

/// The words of `when`.
pub(super) const WHEN: &[&str] = &["digest", "at_once"];

/// A recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notify {
    pub target: NotificationTarget,
    pub when: NotificationTime,
    pub about: Vec<About>,
}

/// Where notifications go.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotificationTarget {
    Webhook {
        url: String,
        /// The file of the signing key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        secret_file: Option<String>,
    },
    Mail(String),
    /// A program and its arguments.
    Command(Vec<String>),
    File(String),
    Firehose,
}

/// When notifications go out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotificationTime {
    /// One at the end of a run, with all of its findings.
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
    /// Alerts of extractions.
    Health,
    /// It no longer finds anything, or does not run.
    Silence,
    /// Each run that has ended.
    Runs,
    /// Undelivered notifications: reported to all.
    Delivery,
}

impl NotificationTarget {
    /// For people and logs, without possible secrets, such as the paths of many webhooks.
    pub fn shown(&self) -> String {
        match self {
            NotificationTarget::Webhook { url, .. } => format!("webhook {}", shown_url(url)),
            NotificationTarget::Mail(address) => format!("mail {address}"),
            NotificationTarget::Command(argv) => {
                format!("command {}", argv.first().map_or("", String::as_str))
            }
            NotificationTarget::File(file) => format!("file {file}"),
            NotificationTarget::Firehose => "firehose".into(),
        }
    }
}

/// The address of a webhook for display; its path and query may be a secret.
pub(super) fn shown_url(url: &str) -> String {
    match webfill_urls::Url::parse(url) {
        Ok(url) => {
            let origin = url.origin().ascii_serialization();
            match url.path() {
                "" | "/" if url.query().is_none() => format!("{origin}/"),
                _ => format!("{origin}/***"),
            }
        }
        Err(_) => "***".into(),
    }
}

/// Reads the items of `notify`; `path` is the place of the watch.
pub(super) fn notify_of(members: &Map<String, Value>, path: &str) -> Result<Vec<Notify>, Refusal> {
    let items = members.get("notify").and_then(Value::as_array);
    let items = items.into_iter().flatten().enumerate();
    items
        .map(|(index, item)| item_of(item, &format!("{path}.notify[{index}]")))
        .collect()
}

fn item_of(item: &Value, path: &str) -> Result<Notify, Refusal> {
    let members = object(item, path)?;
    check(NOTIFY_KEYS, members, path)?;
    let target = target_of(members, path)?;
    let when = match text(members, "when").as_deref() {
        Some("at_once") => NotificationTime::AtOnce,
        _ => NotificationTime::Digest,
    };
    let about = match members.get("about") {
        None => vec![About::Changes, About::Health, About::Silence],
        Some(_) => texts(members, "about")
            .iter()
            .filter_map(|word| about_of(word))
            .collect(),
    };
    Ok(Notify {
        target,
        when,
        about,
    })
}

fn about_of(word: &str) -> Option<About> {
    match word {
        "changes" => Some(About::Changes),
        "health" => Some(About::Health),
        "silence" => Some(About::Silence),
        "runs" => Some(About::Runs),
        _ => None,
    }
}

fn target_of(members: &Map<String, Value>, path: &str) -> Result<NotificationTarget, Refusal> {
    let named: Vec<&str> = TARGETS
        .into_iter()
        .filter(|key| members.contains_key(*key))
        .collect();
    let [name] = named[..] else {
        let why = format!("expected one of {}", TARGETS.join(", "));
        return Err(Refusal::new(path, why));
    };
    if name != "webhook" && members.contains_key("secret_file") {
        let why = "only webhooks are signed";
        return Err(Refusal::new(&format!("{path}.secret_file"), why));
    }
    let at = format!("{path}.{name}");
    let text = text(members, name).unwrap_or_default();
    match name {
        "webhook" => {
            check_webhook(&text).map_err(|why| Refusal::new(&at, why))?;
            Ok(NotificationTarget::Webhook {
                url: text,
                secret_file: super::text(members, "secret_file"),
            })
        }
        "mail" => match is_address(&text) {
            true => Ok(NotificationTarget::Mail(text)),
            false => Err(Refusal::new(
                &at,
                "expected one address such as a@b.example",
            )),
        },
        "command" => match texts(members, "command") {
            argv if argv.is_empty() => Err(Refusal::new(&at, "expected a program")),
            argv if !argv[0].starts_with('/') => Err(Refusal::new(
                &format!("{at}[0]"),
                "expected the whole path of a program: there is no shell that would look for it",
            )),
            argv if argv.iter().any(|word| word.contains('\0')) => {
                Err(Refusal::new(&at, "expected no NUL"))
            }
            argv => Ok(NotificationTarget::Command(argv)),
        },
        "file" => Ok(NotificationTarget::File(text)),
        _ if members["firehose"] == true => Ok(NotificationTarget::Firehose),
        _ => Err(Refusal::new(&at, "expected true, or leave the item out")),
    }
}

fn check_webhook(text: &str) -> Result<(), &'static str> {
    let url = webfill_urls::Url::parse(text).map_err(|_| "expected a URL")?;
    if !["http", "https"].contains(&url.scheme()) || url.host_str().is_none_or(str::is_empty) {
        return Err("expected a URL with https or http");
    }
    match url.username().is_empty() && url.password().is_none() {
        true => Ok(()),
        false => Err("expected no user and password: sign with `secret_file`"),
    }
}

/// Whether a text is one plain address: it must not end a line or name a second address.
fn is_address(text: &str) -> bool {
    let Some((user, domain)) = text.rsplit_once('@') else {
        return false;
    };
    let is_plain = |text: &str, more: &str| {
        !text.is_empty()
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || more.contains(c))
    };
    is_plain(user, ".!#$%&'*+-/=?^_`{|}~") && is_plain(domain, ".-") && text.len() <= 254
}
