//! The kinds of notification targets: the keys of each kind, and how it is read and shown. `webfill_notifications` has
//! the permissions and the delivery of each kind.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::keys::key;
use super::members::{get_text, get_texts};
use crate::refusal::Refusal;
use crate::rule::{Key, Rule};

/// Where notifications go.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotificationTarget {
    Webhook {
        url: String,
        /// The file with the signing key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        secret_file: Option<String>,
    },
    Mail(String),
    /// A program and its arguments.
    Command(Vec<String>),
    File(String),
    Firehose,
}

impl NotificationTarget {
    /// The target as shown to people and in logs. Parts that may be secrets are hidden, such as the paths of webhooks.
    pub fn without_secrets(&self) -> String {
        match self {
            NotificationTarget::Webhook { url, .. } => format!("webhook {}", redact_url(url)),
            NotificationTarget::Mail(address) => format!("mail {address}"),
            NotificationTarget::Command(argv) => {
                format!("command {}", argv.first().map_or("", String::as_str))
            }
            NotificationTarget::File(file) => format!("file {file}"),
            NotificationTarget::Firehose => "firehose".into(),
        }
    }
}

/// A kind of notification target, such as a webhook or a mail address.
struct Kind {
    /// The key that names a target of this kind.
    key: Key,
    /// A further key, and the fault to report if a target of another kind has it.
    more: Option<(Key, &'static str)>,
    read: fn(&Map<String, Value>) -> Result<NotificationTarget, TargetFault>,
    /// Makes the displayed form of a target whose text may be a secret.
    hidden: Option<fn(&str) -> String>,
}

/// A fault, and the index of the faulty entry; no index if the whole value is faulty.
type TargetFault = (Option<usize>, &'static str);

/// All kinds; an item of `notify` names exactly one target.
static KINDS: [Kind; 5] = [
    Kind {
        key: key("webhook", Rule::Text(4_096), "A URL to post JSON to."),
        more: Some((
            key(
                "secret_file",
                Rule::Text(4_096),
                "The file with the key that signs each post.",
            ),
            "only webhooks are signed",
        )),
        read: parse_webhook,
        hidden: Some(redact_url),
    },
    Kind {
        key: key("mail", Rule::Text(254), "A mail address."),
        more: None,
        read: parse_mail,
        hidden: None,
    },
    Kind {
        key: key(
            "command",
            Rule::Texts(64, 4_096),
            "A program and its arguments; it gets JSON on standard input.",
        ),
        more: None,
        read: parse_command,
        hidden: None,
    },
    Kind {
        key: key(
            "file",
            Rule::Text(4_096),
            "A file to append lines of JSON to.",
        ),
        more: None,
        read: |members| {
            Ok(NotificationTarget::File(
                get_text(members, "file").unwrap_or_default(),
            ))
        },
        hidden: None,
    },
    Kind {
        key: key(
            "firehose",
            Rule::Flag,
            "Notifications are published on the firehose; `true`.",
        ),
        more: None,
        read: |members| match members["firehose"] == true {
            true => Ok(NotificationTarget::Firehose),
            false => Err((None, "expected true, or leave the item out")),
        },
        hidden: None,
    },
];

/// The keys of all kinds of targets.
pub(super) fn keys() -> impl Iterator<Item = Key> {
    KINDS.iter().flat_map(|kind| {
        let more = kind.more.map(|(key, _)| key);
        std::iter::once(kind.key).chain(more)
    })
}

/// Reads the target that an item of `notify` names.
pub(super) fn parse(
    members: &Map<String, Value>,
    path: &str,
) -> Result<NotificationTarget, Refusal> {
    let mut named = KINDS
        .iter()
        .filter(|kind| members.contains_key(kind.key.name));
    let (Some(kind), None) = (named.next(), named.next()) else {
        let names: Vec<&str> = KINDS.iter().map(|kind| kind.key.name).collect();
        let why = format!("expected one of {}", names.join(", "));
        return Err(Refusal::new(path, why));
    };
    let name = kind.key.name;
    let others = KINDS.iter().filter(|other| other.key.name != name);
    for (key, why) in others.filter_map(|other| other.more) {
        if members.contains_key(key.name) {
            return Err(Refusal::new(&format!("{path}.{}", key.name), why));
        }
    }
    (kind.read)(members).map_err(|(entry, why)| {
        let entry = entry.map_or_else(String::new, |entry| format!("[{entry}]"));
        Refusal::new(&format!("{path}.{name}{entry}"), why)
    })
}

/// Hides possible secrets in an item of `notify`.
pub(super) fn hide_secrets(item: &mut Value) {
    for kind in &KINDS {
        if let (Some(hidden), Some(Value::String(text))) =
            (kind.hidden, item.get_mut(kind.key.name))
        {
            *text = hidden(text);
        }
    }
}

fn parse_webhook(members: &Map<String, Value>) -> Result<NotificationTarget, TargetFault> {
    let url = get_text(members, "webhook").unwrap_or_default();
    check_webhook(&url).map_err(|why| (None, why))?;
    Ok(NotificationTarget::Webhook {
        url,
        secret_file: get_text(members, "secret_file"),
    })
}

fn parse_mail(members: &Map<String, Value>) -> Result<NotificationTarget, TargetFault> {
    let address = get_text(members, "mail").unwrap_or_default();
    match is_address(&address) {
        true => Ok(NotificationTarget::Mail(address)),
        false => Err((None, "expected one address such as a@b.example")),
    }
}

fn parse_command(members: &Map<String, Value>) -> Result<NotificationTarget, TargetFault> {
    match get_texts(members, "command") {
        argv if argv.is_empty() => Err((None, "expected a program")),
        argv if !argv[0].starts_with('/') => Err((
            Some(0),
            "expected the whole path of a program: there is no shell that would look for it",
        )),
        argv if argv.iter().any(|word| word.contains('\0')) => Err((None, "expected no NUL")),
        argv => Ok(NotificationTarget::Command(argv)),
    }
}

/// The address of a webhook for display; its path and query may be a secret.
fn redact_url(url: &str) -> String {
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

/// Whether a text is one plain mail address. It must not end a line or name a second address.
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
