//! A watch: a crawl that runs repeatedly, as one JSON object. The same object is read by `webfill watch run FILE` on
//! one machine and by the dispatcher of a fleet.
//!
//! The members of `crawl` are the flags of `webfill crawl`, with `_` for `-`. Some of them belong to the machine
//! ([`CrawlFlag::is_machine_flag`]); a fleet has its own settings for those.

mod action;
mod keys;
mod members;
mod notify;
mod run;
mod spec;
mod target;
#[cfg(test)]
mod tests;

use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};

pub(crate) use self::action::parse_watch_action;
pub use self::action::{WatchAction, WatchOrder};
use self::keys::{BUDGET_KEYS, CRAWL_KEYS, MACHINE_FLAGS, RECORDS_KEYS, WATCH_KEYS};
use self::members::{expect_object, get_duration_ms, get_text, get_texts};
pub use self::notify::{About, NotificationTime, Notify};
use self::notify::{notify_keys, parse_notify};
pub use self::run::{RunEnd, WatchRun};
pub use self::target::NotificationTarget;
use crate::refusal::Refusal;
use crate::rule::{Key, check_members};
use crate::schedule::{Schedule, time_zone};
use crate::schema::{add_members, object_schema};
use crate::scope::{ScopeError, check_domains, compile_requested_patterns};

/// The application of a watch without one of its own.
const DEFAULT_APP: &str = "watches";

/// After this many runs without its usual findings a watch is silent, unless it sets another number.
const SILENT_AFTER: u64 = 3;

/// A valid watch.
#[derive(Debug, Clone, PartialEq)]
pub struct Watch {
    pub name: String,
    pub app: String,
    pub urls: Vec<String>,
    /// The path of the file of seeds.
    pub seeds: Option<String>,
    pub records: Option<WatchRecords>,
    pub dataset: Option<String>,
    /// The members of `crawl`: flags of `webfill crawl`.
    pub flags: Vec<CrawlFlag>,
    pub schedule: Schedule,
    /// How long a run may take.
    pub window_ms: Option<i64>,
    /// How many pages a run may fetch.
    pub max_pages: Option<u64>,
    /// The recipients of the watch's notifications.
    pub notify: Vec<Notify>,
    /// After this many consecutive runs without findings, the watch is silent.
    pub silent_after: u64,
    /// The watch as it was given.
    pub json: Value,
}

/// The documents of a MongoDB collection, as records.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchRecords {
    pub uri: String,
    pub collection: String,
    /// The filter of the documents, in MongoDB's Extended JSON.
    pub query: Option<String>,
    pub projection: Option<String>,
    pub write_back: Option<String>,
}

/// A flag of `webfill crawl` with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct CrawlFlag {
    /// The name of the member: that of the flag, with `_` for `-`.
    pub key: String,
    pub value: Value,
}

impl CrawlFlag {
    /// Whether the flag concerns the machine that crawls, and not the crawl.
    pub fn is_machine_flag(&self) -> bool {
        MACHINE_FLAGS.contains(&self.key.as_str())
    }

    /// The flag as arguments on the command line of `webfill crawl`.
    pub fn arguments(&self) -> Vec<String> {
        let flag = format!("--{}", self.key.replace('_', "-"));
        let with = |value: &Value| match value {
            Value::String(text) => format!("{flag}={text}"),
            other => format!("{flag}={other}"),
        };
        match &self.value {
            // The default of `conditional` is not fixed, so its value is always passed.
            value @ Value::Bool(_) if self.key == "conditional" => vec![with(value)],
            Value::Bool(false) => Vec::new(),
            Value::Bool(true) => vec![flag],
            // An empty list denies no extension, which differs from the flag left out.
            Value::Array(list) if list.is_empty() && self.key == "deny_extensions" => {
                vec![format!("{flag}=")]
            }
            Value::Array(list) => list.iter().map(with).collect(),
            value => vec![with(value)],
        }
    }
}

impl Watch {
    /// Reads a watch; nothing is opened.
    pub fn parse(message: Value) -> Result<Watch, Refusal> {
        Watch::parse_at(message, "$")
    }

    /// Parses a watch within a message, at this JSON path.
    pub(crate) fn parse_at(message: Value, path: &str) -> Result<Watch, Refusal> {
        let members = expect_object(&message, path)?;
        check_members(WATCH_KEYS, members, path)?;
        let crawl = get_checked_object(members, "crawl", CRAWL_KEYS, path)?;
        let budget = get_checked_object(members, "budget", BUDGET_KEYS, path)?;
        let records = get_checked_object(members, "records", RECORDS_KEYS, path)?;
        let watch = Watch {
            name: get_text(members, "name").unwrap_or_default(),
            app: get_text(members, "app").unwrap_or_else(|| DEFAULT_APP.to_owned()),
            urls: get_texts(members, "urls"),
            seeds: get_text(members, "seeds"),
            records: records.map(WatchRecords::from_members),
            dataset: get_text(members, "dataset"),
            flags: crawl.map(parse_flags).unwrap_or_default(),
            schedule: parse_schedule(members, path)?,
            window_ms: get_duration_ms(members, "window"),
            max_pages: budget.and_then(|budget| budget.get("pages")?.as_u64()),
            notify: parse_notify(members, path)?,
            silent_after: members
                .get("silent_after")
                .and_then(Value::as_u64)
                .unwrap_or(SILENT_AFTER),
            json: message.clone(),
        };
        watch.check_input(path)?;
        watch.check_scope(path)?;
        Ok(watch)
    }

    fn check_input(&self, path: &str) -> Result<(), Refusal> {
        if self.urls.is_empty() && self.seeds.is_none() && self.records.is_none() {
            let why = "there is nothing to crawl: give `urls`, `seeds` or `records`";
            return Err(Refusal::new(path, why));
        }
        if self.seeds.is_some() && self.records.is_some() {
            let why = "`seeds` and `records` exclude each other";
            return Err(Refusal::new(&format!("{path}.records"), why));
        }
        if self.seeds.as_deref() == Some("-") {
            let why = "a watch reads its seeds again in each run: expected a file";
            return Err(Refusal::new(&format!("{path}.seeds"), why));
        }
        for (index, url) in self.urls.iter().enumerate() {
            webfill_urls::canonical_url(url, None)
                .map_err(|why| Refusal::new(&format!("{path}.urls[{index}]"), why))?;
        }
        if self.window_ms.is_some_and(|window_ms| window_ms < 1_000) {
            let why = "expected a duration from 1s on";
            return Err(Refusal::new(&format!("{path}.window"), why));
        }
        Ok(())
    }

    fn check_scope(&self, path: &str) -> Result<(), Refusal> {
        let refused = |error: ScopeError| {
            Refusal::new(&format!("{path}.crawl.{}", error.path()), error.fault())
        };
        check_domains(&self.flag_texts("allowed_domains")).map_err(refused)?;
        for list in ["allow_regex", "deny_regex"] {
            compile_requested_patterns(list, &self.flag_texts(list)).map_err(refused)?;
        }
        Ok(())
    }

    /// Checks that a fleet can run the watch, which must not set any flag of a machine: a fleet's machines have their
    /// own settings.
    pub fn check_for_fleet(&self, path: &str) -> Result<(), Refusal> {
        if let Some(flag) = self.flags.iter().find(|flag| flag.is_machine_flag()) {
            let why = "this is a setting of the fleet's machines, not of a watch: leave it out";
            return Err(Refusal::new(&format!("{path}.crawl.{}", flag.key), why));
        }
        Ok(())
    }

    /// The watch for display, without passwords and other possible secrets.
    pub fn without_secrets(&self) -> Value {
        let mut shown = self.json.clone();
        if let Some(records) = &self.records {
            shown["records"]["uri"] = without_password(&records.uri).into();
        }
        let items = shown.get_mut("notify").and_then(Value::as_array_mut);
        items.into_iter().flatten().for_each(target::hide_secrets);
        shown
    }

    pub fn flag(&self, key: &str) -> Option<&Value> {
        let flag = self.flags.iter().find(|flag| flag.key == key);
        flag.map(|flag| &flag.value)
    }

    fn flag_texts(&self, key: &str) -> Vec<String> {
        let list = self.flag(key).and_then(Value::as_array);
        let texts = list.into_iter().flatten().filter_map(Value::as_str);
        texts.map(str::to_owned).collect()
    }

    /// The command line of `webfill crawl`, without the command itself, for a run of this watch on one
    /// machine.
    pub fn arguments(&self) -> Vec<String> {
        let mut arguments = vec![
            format!("--crawl={}", self.name),
            format!("--app={}", self.app),
        ];
        let mut give = |flag: &str, value: &Option<String>| {
            arguments.extend(value.as_ref().map(|value| format!("--{flag}={value}")));
        };
        give("seeds", &self.seeds);
        give("dataset", &self.dataset);
        give("max-pages", &self.max_pages.map(|pages| pages.to_string()));
        if let Some(records) = &self.records {
            give("records", &Some(records.uri.clone()));
            give("records-collection", &Some(records.collection.clone()));
            give("records-query", &records.query);
            give("records-projection", &records.projection);
            give("write-back", &records.write_back);
        }
        arguments.extend(self.flags.iter().flat_map(CrawlFlag::arguments));
        if self.flag("changes").is_none() {
            arguments.push("--changes".into());
        }
        arguments.push("--".into());
        arguments.extend(self.urls.iter().cloned());
        arguments
    }
}

impl Watch {
    /// Whether the watch detects changes, as it does unless it turns that off.
    pub fn detects_changes(&self) -> bool {
        self.flag("changes") != Some(&Value::Bool(false))
    }
}

impl WatchRecords {
    fn from_members(members: &Map<String, Value>) -> WatchRecords {
        let json = |key| members.get(key).map(Value::to_string);
        WatchRecords {
            uri: get_text(members, "uri").unwrap_or_default(),
            collection: get_text(members, "collection").unwrap_or_default(),
            query: json("query"),
            projection: json("projection"),
            write_back: get_text(members, "write_back"),
        }
    }
}

/// An address for display, without its password.
fn without_password(uri: &str) -> String {
    let Some((scheme, rest)) = uri.split_once("://") else {
        return "***".into();
    };
    match rest.rsplit_once('@') {
        Some((_, place)) => format!("{scheme}://***@{place}"),
        None => uri.to_owned(),
    }
}

fn parse_flags(members: &Map<String, Value>) -> Vec<CrawlFlag> {
    let flags = members.iter().map(|(key, value)| CrawlFlag {
        key: key.clone(),
        value: value.clone(),
    });
    flags.collect()
}

fn parse_schedule(members: &Map<String, Value>, path: &str) -> Result<Schedule, Refusal> {
    let zone = match get_text(members, "time_zone") {
        None => TimeZone::UTC,
        Some(name) => {
            time_zone(&name).map_err(|why| Refusal::new(&format!("{path}.time_zone"), why))?
        }
    };
    let schedule = get_text(members, "schedule").unwrap_or_default();
    Schedule::parse(&schedule, zone).map_err(|why| Refusal::new(&format!("{path}.schedule"), why))
}

/// A member that is an object with keys of its own, which are checked.
fn get_checked_object<'m>(
    members: &'m Map<String, Value>,
    name: &str,
    keys: &[Key],
    path: &str,
) -> Result<Option<&'m Map<String, Value>>, Refusal> {
    let Some(value) = members.get(name) else {
        return Ok(None);
    };
    let path = format!("{path}.{name}");
    let inner = expect_object(value, &path)?;
    check_members(keys, inner, &path)?;
    Ok(Some(inner))
}

/// Makes the JSON Schema (draft 2020-12) of a watch from the tables of its keys.
pub fn watch_schema() -> Value {
    let mut schema = object_schema(WATCH_KEYS);
    for (name, keys) in [
        ("crawl", CRAWL_KEYS),
        ("budget", BUDGET_KEYS),
        ("records", RECORDS_KEYS),
    ] {
        let described = schema["properties"][name]["description"].take();
        schema["properties"][name] = object_schema(keys);
        schema["properties"][name]["description"] = described;
    }
    let described = schema["properties"]["notify"]["description"].take();
    schema["properties"]["notify"]["items"] = object_schema(&notify_keys());
    schema["properties"]["notify"]["description"] = described;
    let mut titled = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "webfill watch",
        "description": "A crawl that runs repeatedly. Beyond this schema, schedule, time zone, \
                        URLs, domains and patterns are checked, too; `urls`, `seeds` or `records` \
                        is required.",
    });
    add_members(&mut titled, schema);
    titled
}
