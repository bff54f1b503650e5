//! A crawl request: one URL to crawl, with the application and the crawl that it belongs to and,
//! optionally, settings of that crawl. The keys have the names of Scrapy Cluster.
//!
//! The table [`KEYS`] is the only list of keys: requests are checked by it, and the JSON Schema in
//! `docs/reference/crawl-request.schema.json` is compared with it ([`crate::schema()`]). [`RequestParser`] checks
//! what a table cannot express: the URL, the domains, the patterns, and whether `expires` is in the future.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::refusal::Refusal;
use crate::rule::{Key, LAST_SECOND, Rule, check_members};
use crate::scope::{self, PatternSet, ScopeError};
use crate::spec_changes::SpecChanges;
use crate::spider::Spider;

/// The refusal of a JSON value that is not an object.
pub(crate) const NOT_AN_OBJECT: &str = "expected a crawl request, which is an object";

/// The priority of a request that names none.
const DEFAULT_PRIORITY: u8 = 50;

/// Every key of a crawl request.
pub(crate) const KEYS: &[Key] = &[
    Key {
        name: "url",
        required: true,
        rule: Rule::Text(4 * webfill_urls::MAX_URL_BYTES),
        meaning: "The start URL: http or https, at most 4096 bytes in canonical form.",
    },
    Key {
        name: "appid",
        required: true,
        rule: Rule::Id(200),
        meaning: "The application that sends the request.",
    },
    Key {
        name: "crawlid",
        required: true,
        rule: Rule::Id(200),
        meaning: "The crawl that the URL belongs to. The first request opens it, every further one \
                  adds to it; settings of the crawl in a request apply from then on. A URL is \
                  crawled once in each crawl.",
    },
    Key {
        name: "spiderid",
        required: false,
        rule: Rule::Word(Spider::NAMES),
        meaning: "How pages are read: `link` as servers send them, `browser` after their scripts \
                  have run, by supervisors of the lane browser only. Both follow every link, down \
                  to `maxdepth`. Default `link`.",
    },
    Key {
        name: "maxdepth",
        required: false,
        rule: Rule::Whole(0, u16::MAX as u64),
        meaning: "How deep links are followed; the URL itself is at depth 0. Default 0.",
    },
    Key {
        name: "priority",
        required: false,
        rule: Rule::Whole(1, 100),
        meaning: "The URL's priority, highest first over all crawls; a link has 10 less than its \
                  page, and at least 1. Default 50.",
    },
    Key {
        name: "allowed_domains",
        required: false,
        rule: Rule::Texts(10_000, 253),
        meaning: "Only these domains and their subdomains are crawled. None: all.",
    },
    Key {
        name: "allow_regex",
        required: false,
        rule: Rule::Texts(100, 1_000),
        meaning: "A URL must match one of these patterns. None: all do.",
    },
    Key {
        name: "deny_regex",
        required: false,
        rule: Rule::Texts(100, 1_000),
        meaning: "A URL that matches one of these patterns is not crawled, allowed or not.",
    },
    Key {
        name: "deny_extensions",
        required: false,
        rule: Rule::Texts(1_000, 50),
        meaning: "Path extensions that are not crawled, instead of the default list: pictures, \
                  audio, video, office files, archives, programs, style sheets, scripts.",
    },
    Key {
        name: "expires",
        required: false,
        rule: Rule::Seconds(0.0, LAST_SECOND),
        meaning: "When the crawl ends, in seconds since the epoch, in the future: URLs still \
                  queued then are not crawled. 0: as if left out.",
    },
    Key {
        name: "useragent",
        required: false,
        rule: Rule::HeaderText(500),
        meaning: "Sent in the user agent, after webfill's own name and the operator's contact; \
                  instead of the name if the operator permits it.",
    },
    Key {
        name: "attrs",
        required: false,
        rule: Rule::Object(65_536),
        meaning: "An object of the application, passed on to the URL's page and to all pages that \
                  follow from it; at most 65536 bytes. A request without one gets the crawl's \
                  last.",
    },
    Key {
        name: "domain_max_pages",
        required: false,
        rule: Rule::Whole(1, 1 << 53),
        meaning: "Maximum number of URLs of one site in the crawl.",
    },
    Key {
        name: "body",
        required: false,
        rule: Rule::Flag,
        meaning: "Whether results include the pages' bodies. Default false.",
    },
    Key {
        name: "sitemaps",
        required: false,
        rule: Rule::Flag,
        meaning: "Whether the sitemaps and feeds of the sites of this and later URLs of the crawl \
                  are read, and the pages that they list crawled as if they had been requested. \
                  Default false.",
    },
    Key {
        name: "changes",
        required: false,
        rule: Rule::Flag,
        meaning: "Whether changes of the crawl's pages are detected. Default false.",
    },
    Key {
        name: "keep_bodies",
        required: false,
        rule: Rule::Flag,
        meaning: "Whether the bodies of the crawl's pages are kept, so that mappings can be run on \
                  them again without fetching. Default false.",
    },
];

/// The names of all keys of a crawl request.
pub fn request_keys() -> impl Iterator<Item = &'static str> {
    KEYS.iter().map(|key| key.name)
}

/// A valid crawl request.
#[derive(Debug, Clone, PartialEq)]
pub struct CrawlRequest {
    pub app_id: String,
    pub crawl_id: String,
    pub url: String,
    /// From 1 to 100; the highest goes first.
    pub priority: u8,
    /// The object `attrs` of this request, as JSON text.
    pub attrs: Option<String>,
    /// The request's settings for its crawl, including `attrs`.
    pub changes: SpecChanges,
}

/// The members of a request, deserialized into their types.
#[derive(Deserialize)]
struct TypedMembers {
    url: String,
    appid: String,
    crawlid: String,
    priority: Option<u8>,
    #[serde(flatten)]
    changes: SpecChanges,
}

/// Parses crawl requests one after another. Domains and patterns that are the same as in the request
/// before are not checked again: compiling a pattern costs more than all other checks together.
#[derive(Debug)]
pub struct RequestParser {
    /// The time to compare `expires` with, in milliseconds since the epoch.
    now_ms: i64,
    /// The latest lists that passed the checks.
    allowed_domains: Vec<String>,
    allow_regex: KnownPatterns,
    deny_regex: KnownPatterns,
    compiled_bytes: usize,
}

/// A list of patterns with its compiled form.
#[derive(Debug, Default)]
struct KnownPatterns {
    texts: Vec<String>,
    compiled: Option<Arc<PatternSet>>,
}

impl RequestParser {
    pub fn new(now_ms: i64) -> RequestParser {
        RequestParser {
            now_ms,
            allowed_domains: Vec::new(),
            allow_regex: KnownPatterns::default(),
            deny_regex: KnownPatterns::default(),
            compiled_bytes: 0,
        }
    }

    /// The memory in bytes of the patterns that this parser compiled, as if all were still in use.
    pub fn pattern_memory_bytes(&self) -> usize {
        self.compiled_bytes
    }

    /// Parses the request at a JSON path of the client's message: `$`, or `$[3]` in a list.
    pub fn parse(&mut self, request: Value, path: &str) -> Result<CrawlRequest, Refusal> {
        let Value::Object(mut members) = request else {
            return Err(Refusal::new(path, NOT_AN_OBJECT));
        };
        refuse_action(&members, path)?;
        members.retain(|name, value| !is_left_out(name, value));
        check_members(KEYS, &members, path)?;
        let mut typed: TypedMembers = serde_json::from_value(Value::Object(members))
            .map_err(|error| Refusal::new(path, error))?;
        let refuse = |key: &str, why: String| Refusal::new(&format!("{path}.{key}"), why);
        if let Err(error) = webfill_urls::canonical_url(&typed.url, None) {
            return Err(refuse("url", error.to_string()));
        }
        if let Some(at_ms) = typed.changes.expires_at_ms()
            && at_ms as i64 <= self.now_ms
        {
            return Err(refuse("expires", "has passed already".into()));
        }
        self.check_scope(&mut typed.changes)
            .map_err(|(within, why)| Refusal::new(&format!("{path}.{within}"), why))?;
        Ok(CrawlRequest {
            app_id: typed.appid,
            crawl_id: typed.crawlid,
            url: typed.url,
            priority: typed.priority.unwrap_or(DEFAULT_PRIORITY),
            attrs: typed.changes.attrs.as_ref().map(Value::to_string),
            changes: typed.changes,
        })
    }

    /// Checks domains and patterns. An error is the path within the request and the fault.
    fn check_scope(&mut self, changes: &mut SpecChanges) -> Result<(), (String, String)> {
        let (allow, deny) = (&mut self.allow_regex, &mut self.deny_regex);
        let lists = [
            (&changes.allow_regex, allow, "allow_regex"),
            (&changes.deny_regex, deny, "deny_regex"),
        ];
        for (given, known, name) in lists {
            if let Some(patterns) = given
                && *patterns != known.texts
            {
                let compiled =
                    scope::compile_requested_patterns(name, patterns).map_err(path_and_fault)?;
                // If the list is also held elsewhere, its memory is already counted there.
                if Arc::strong_count(&compiled) == 1 {
                    self.compiled_bytes += compiled.memory_bytes();
                }
                known.texts.clone_from(patterns);
                known.compiled = Some(compiled);
            }
        }
        if changes.allow_regex.is_some() {
            changes
                .compiled
                .allow
                .clone_from(&self.allow_regex.compiled);
        }
        if changes.deny_regex.is_some() {
            changes.compiled.deny.clone_from(&self.deny_regex.compiled);
        }
        if let Some(domains) = &changes.allowed_domains
            && *domains != self.allowed_domains
        {
            scope::check_domains(domains).map_err(path_and_fault)?;
            self.allowed_domains.clone_from(domains);
        }
        Ok(())
    }
}

fn path_and_fault(error: ScopeError) -> (String, String) {
    (error.path(), error.fault())
}

/// Whether a member counts as left out: null for an optional key, and 0 for `expires`. These are the defaults of Scrapy
/// Cluster's schema, and its clients send them.
fn is_left_out(name: &str, value: &Value) -> bool {
    match KEYS.iter().find(|key| key.name == name) {
        Some(key) if key.required => false,
        Some(_) if value.is_null() => true,
        Some(key) => key.name == "expires" && value.as_f64() == Some(0.0),
        None => false,
    }
}

/// Refuses an action among crawl requests with a clearer message than "unknown key".
fn refuse_action(members: &Map<String, Value>, path: &str) -> Result<(), Refusal> {
    match members.contains_key("action") {
        true => Err(Refusal::new(
            &format!("{path}.action"),
            "an action is sent by itself, not among crawl requests",
        )),
        false => Ok(()),
    }
}
