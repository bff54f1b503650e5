//! The keys of a watch, and of the objects within it.

use super::notify::{ABOUT, WHEN};
use crate::rule::{Key, Rule};

pub(super) const fn key(name: &'static str, rule: Rule, meaning: &'static str) -> Key {
    Key {
        name,
        required: false,
        rule,
        meaning,
    }
}

const fn required_key(name: &'static str, rule: Rule, meaning: &'static str) -> Key {
    Key {
        name,
        required: true,
        rule,
        meaning,
    }
}

/// The most bytes of an object within a watch.
const OBJECT_BYTES: usize = 1 << 16;

pub(super) const WATCH_KEYS: &[Key] = &[
    required_key(
        "name",
        Rule::Name(128),
        "The watch's name, which is the id of its crawl.",
    ),
    key(
        "app",
        Rule::Name(128),
        "The application of the crawl; `watches` by default.",
    ),
    key("urls", Rule::Texts(10_000, 4_096), "Start URLs."),
    key(
        "seeds",
        Rule::Text(4_096),
        "A file of seeds, which each run reads anew.",
    ),
    key(
        "records",
        Rule::Object(OBJECT_BYTES),
        "Documents of a MongoDB collection as records, which each run reads anew.",
    ),
    key(
        "dataset",
        Rule::Text(200),
        "The dataset that records belong to; named after their source by default.",
    ),
    key(
        "crawl",
        Rule::Object(OBJECT_BYTES),
        "Flags of `webfill crawl`, with `_` for `-`.",
    ),
    required_key(
        "schedule",
        Rule::Text(200),
        "When a run is due: `once`, `every 6h`, or five cron fields such as `0 2 * * *`.",
    ),
    key(
        "time_zone",
        Rule::Text(64),
        "The IANA time zone of the cron fields; `UTC` by default.",
    ),
    key(
        "window",
        Rule::Duration,
        "How long a run may take; then it stops gracefully.",
    ),
    key(
        "budget",
        Rule::Object(OBJECT_BYTES),
        "Budget of a run; when it is used up, the run stops gracefully.",
    ),
    key(
        "notify",
        Rule::Objects(20, OBJECT_BYTES),
        "Recipients of its notifications: each item names one target.",
    ),
    key(
        "silent_after",
        Rule::Whole(1, 100),
        "After this many runs without its usual results, the watch is silent; 3 by default.",
    ),
];

/// The keys of every item of `notify`; each kind of target adds its own.
pub(super) const NOTIFY_KEYS: &[Key] = &[
    key(
        "when",
        Rule::Word(WHEN),
        "One digest at the end of each run (the default), or each event immediately.",
    ),
    key(
        "about",
        Rule::Words(ABOUT),
        "Kinds of events; `changes`, `health` and `silence` by default.",
    ),
];

pub(super) const BUDGET_KEYS: &[Key] = &[key(
    "pages",
    Rule::Whole(1, 1 << 53),
    "Maximum number of pages of one run.",
)];

pub(super) const RECORDS_KEYS: &[Key] = &[
    required_key(
        "uri",
        Rule::Text(4_096),
        "The database: `mongodb://HOST/DATABASE`.",
    ),
    required_key("collection", Rule::Text(255), "The collection."),
    key(
        "query",
        Rule::Object(OBJECT_BYTES),
        "Only documents that match this query; extended JSON.",
    ),
    key(
        "projection",
        Rule::Object(OBJECT_BYTES),
        "The part of each document to read; expressions are allowed.",
    ),
    key(
        "write_back",
        Rule::Text(255),
        "Write found values to this collection of the same database.",
    ),
];

/// The keys of `crawl` that belong to the machine: a fleet has its own settings.
pub(super) const MACHINE_FLAGS: &[&str] = &[
    "config",
    "mappings",
    "store",
    "cache",
    "state",
    "workers",
    "concurrency",
    "delay",
    "ignore_robots",
    "contact",
    "allow_private_networks",
    "proxy",
    "resolve",
    "ca_file",
    "warc",
    "exclude_sites",
    "fail_on",
];

const PATH: Rule = Rule::Text(4_096);

const OF_MACHINE: &str = "As the flag of `webfill crawl`; only on one machine.";
const AS_FLAG: &str = "As the flag of `webfill crawl`.";

pub(super) const CRAWL_KEYS: &[Key] = &[
    key("depth", Rule::Whole(0, 65_535), AS_FLAG),
    key("follow", Rule::Word(&["mapped", "all", "none"]), AS_FLAG),
    key("lane", Rule::Word(&["http", "browser"]), AS_FLAG),
    key("allowed_domains", Rule::Texts(10_000, 253), AS_FLAG),
    key("allow_regex", Rule::Texts(1_000, 4_096), AS_FLAG),
    key("deny_regex", Rule::Texts(1_000, 4_096), AS_FLAG),
    key("deny_extensions", Rule::Texts(1_000, 20), AS_FLAG),
    key("domain_max_pages", Rule::Whole(0, 1 << 53), AS_FLAG),
    key("sitemaps", Rule::Flag, AS_FLAG),
    key("keep_bodies", Rule::Flag, AS_FLAG),
    key(
        "patience",
        Rule::Duration,
        "A run ends when everything left is backing off for longer; `10m` by default.",
    ),
    key("refresh", Rule::Flag, AS_FLAG),
    key(
        "conditional",
        Rule::Flag,
        "As the flag of `webfill crawl`; `true` by default.",
    ),
    key(
        "changes",
        Rule::Flag,
        "Whether changes of pages are detected, as by the flag of `webfill crawl`. Default true.",
    ),
    key("config", PATH, OF_MACHINE),
    key("mappings", PATH, OF_MACHINE),
    key("store", PATH, OF_MACHINE),
    key("cache", PATH, OF_MACHINE),
    key("state", PATH, OF_MACHINE),
    key("workers", Rule::Whole(1, 999), OF_MACHINE),
    key("concurrency", Rule::Whole(1, 10_000), OF_MACHINE),
    key("delay", Rule::Seconds(0.0, 86_400.0), OF_MACHINE),
    key("ignore_robots", Rule::Flag, OF_MACHINE),
    key("contact", PATH, OF_MACHINE),
    key("allow_private_networks", Rule::Flag, OF_MACHINE),
    key("proxy", PATH, OF_MACHINE),
    key("resolve", Rule::Texts(1_000, 4_096), OF_MACHINE),
    key("ca_file", PATH, OF_MACHINE),
    key("warc", PATH, OF_MACHINE),
    key("exclude_sites", PATH, OF_MACHINE),
    key("fail_on", Rule::Texts(10, 40), OF_MACHINE),
];
