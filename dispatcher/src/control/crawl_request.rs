//! A crawl request: what any application may ask, by the names of Scrapy Cluster. The table below
//! is the check, and the schema that is published in `docs/crawl-request.schema.json`.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Refusal;
use super::rule::{Key, Rule, check};
use super::spider::Spider;
use crate::crawl_spec::CrawlSpec;
use crate::scope::{self, ScopeError};

/// The published schema, as it stands in the documentation.
pub const SCHEMA: &str = include_str!("../../../docs/crawl-request.schema.json");

/// The last second that people write with four digits for the year.
const LAST_SECOND: f64 = 253_402_300_799.0;

/// The priority of a request that names none.
const USUAL_PRIORITY: u8 = 50;

pub(crate) const KEYS: &[Key] = &[
    Key {
        name: "url",
        required: true,
        rule: Rule::Text(4 * webfill_urls::MAX_URL_BYTES),
        meaning: "The URL to begin with: http or https, at most 4096 bytes in canonical form.",
    },
    Key {
        name: "appid",
        required: true,
        rule: Rule::Id(200),
        meaning: "The application that asks.",
    },
    Key {
        name: "crawlid",
        required: true,
        rule: Rule::Id(200),
        meaning: "The crawl that the URL belongs to. The first request opens it, every further one \
                  adds to it; what a request says about the crawl holds from then on. A URL is \
                  crawled once in each crawl.",
    },
    Key {
        name: "spiderid",
        required: false,
        rule: Rule::Word(Spider::NAMES),
        meaning: "Who crawls. `link` reads pages as servers send them, `browser` after their scripts \
                  have run, which only supervisors of lane browser can; both follow every link, \
                  down to `maxdepth`. Default `link`.",
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
        meaning: "Extensions of paths that are not crawled, instead of the default list: \
                  pictures, audio, video, office files, archives, programs, style sheets, scripts.",
    },
    Key {
        name: "expires",
        required: false,
        rule: Rule::Seconds(0.0, LAST_SECOND),
        meaning: "When the crawl ends, in seconds since the epoch, and in the future: what is \
                  queued then is not crawled any more.",
    },
    Key {
        name: "useragent",
        required: false,
        rule: Rule::HeaderText(500),
        meaning: "Sent as the user agent instead of webfill's own.",
    },
    Key {
        name: "attrs",
        required: false,
        rule: Rule::Object(65_536),
        meaning: "The application's own object, handed through to the URL's page and to all \
                  pages that follow from it; at most 65536 bytes. A request that has none gets \
                  the crawl's last.",
    },
    Key {
        name: "domain_max_pages",
        required: false,
        rule: Rule::Whole(1, 1 << 53),
        meaning: "How many URLs of one site the crawl may hold.",
    },
    Key {
        name: "body",
        required: false,
        rule: Rule::Flag,
        meaning: "Whether the pages' bodies are wanted, too. Default false.",
    },
];

/// A request that was found to be in order.
#[derive(Debug, Clone, PartialEq)]
pub struct CrawlRequest {
    pub(crate) app_id: String,
    pub(crate) crawl_id: String,
    pub(crate) url: String,
    pub(crate) priority: u8,
    /// JSON.
    pub(crate) attrs: Option<String>,
    pub(crate) changes: SpecChanges,
}

/// What a request says about its crawl; what it leaves out stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(crate) struct SpecChanges {
    spiderid: Option<Spider>,
    maxdepth: Option<u16>,
    allowed_domains: Option<Vec<String>>,
    allow_regex: Option<Vec<String>>,
    deny_regex: Option<Vec<String>>,
    deny_extensions: Option<Vec<String>>,
    /// Seconds since the epoch.
    expires: Option<f64>,
    useragent: Option<String>,
    attrs: Option<Value>,
    domain_max_pages: Option<u64>,
    body: Option<bool>,
}

#[derive(Deserialize)]
struct Typed {
    url: String,
    appid: String,
    crawlid: String,
    priority: Option<u8>,
    #[serde(flatten)]
    changes: SpecChanges,
}

impl SpecChanges {
    /// Takes over what a later request says.
    pub(crate) fn then(&mut self, later: SpecChanges) {
        fn over<T>(mine: &mut Option<T>, later: Option<T>) {
            if later.is_some() {
                *mine = later;
            }
        }
        over(&mut self.spiderid, later.spiderid);
        over(&mut self.maxdepth, later.maxdepth);
        over(&mut self.allowed_domains, later.allowed_domains);
        over(&mut self.allow_regex, later.allow_regex);
        over(&mut self.deny_regex, later.deny_regex);
        over(&mut self.deny_extensions, later.deny_extensions);
        over(&mut self.expires, later.expires);
        over(&mut self.useragent, later.useragent);
        over(&mut self.attrs, later.attrs);
        over(&mut self.domain_max_pages, later.domain_max_pages);
        over(&mut self.body, later.body);
    }

    pub(crate) fn apply(&self, spec: &mut CrawlSpec) {
        fn set<T: Clone>(kept: &mut T, given: &Option<T>) {
            if let Some(given) = given {
                kept.clone_from(given);
            }
        }
        set(&mut spec.lane, &self.spiderid.map(Spider::lane));
        set(&mut spec.max_depth, &self.maxdepth);
        set(&mut spec.allowed_domains, &self.allowed_domains);
        set(&mut spec.allow_regex, &self.allow_regex);
        set(&mut spec.deny_regex, &self.deny_regex);
        set(&mut spec.body, &self.body);
        if self.deny_extensions.is_some() {
            spec.deny_extensions.clone_from(&self.deny_extensions);
        }
        if self.useragent.is_some() {
            spec.useragent.clone_from(&self.useragent);
        }
        if self.attrs.is_some() {
            spec.attrs.clone_from(&self.attrs);
        }
        spec.domain_max_pages = self.domain_max_pages.or(spec.domain_max_pages);
        spec.expires_at_ms = self.expires_at_ms().or(spec.expires_at_ms);
    }

    pub(crate) fn expires_at_ms(&self) -> Option<u64> {
        self.expires.map(|seconds| (seconds * 1_000.0) as u64)
    }
}

/// Judges requests one after another. What is the same in many of them is looked at once.
#[derive(Debug)]
pub(crate) struct Judge {
    now_ms: i64,
    allowed_domains: Vec<String>,
    allow_regex: Vec<String>,
    deny_regex: Vec<String>,
}

impl Judge {
    pub(crate) fn new(now_ms: i64) -> Judge {
        Judge {
            now_ms,
            allowed_domains: Vec::new(),
            allow_regex: Vec::new(),
            deny_regex: Vec::new(),
        }
    }

    /// Judges the request that stands at a JSON path.
    pub(crate) fn judge(&mut self, request: Value, path: &str) -> Result<CrawlRequest, Refusal> {
        let Value::Object(members) = request else {
            return Err(Refusal::new(
                path,
                "expected a crawl request, which is an object",
            ));
        };
        refuse_what_has_another_place(&members, path)?;
        check(KEYS, &members, path)?;
        let typed: Typed = serde_json::from_value(Value::Object(members))
            .map_err(|error| Refusal::new(path, error))?;
        let refuse = |key: &str, why: String| Refusal::new(&format!("{path}.{key}"), why);
        if let Err(error) = webfill_urls::canonical(&typed.url, None) {
            return Err(refuse("url", error.to_string()));
        }
        if let Some(at_ms) = typed.changes.expires_at_ms()
            && at_ms as i64 <= self.now_ms
        {
            return Err(refuse("expires", "has passed already".into()));
        }
        self.check_scope(&typed.changes)
            .map_err(|(place, why)| Refusal::new(&format!("{path}.{place}"), why))?;
        Ok(CrawlRequest {
            app_id: typed.appid,
            crawl_id: typed.crawlid,
            url: typed.url,
            priority: typed.priority.unwrap_or(USUAL_PRIORITY),
            attrs: typed.changes.attrs.as_ref().map(Value::to_string),
            changes: typed.changes,
        })
    }

    /// Returns where the fault is, and what it is.
    fn check_scope(&mut self, changes: &SpecChanges) -> Result<(), (String, String)> {
        let lists = [
            (&changes.allow_regex, &mut self.allow_regex, "allow_regex"),
            (&changes.deny_regex, &mut self.deny_regex, "deny_regex"),
        ];
        for (given, known, name) in lists {
            if let Some(patterns) = given
                && patterns != known
            {
                scope::check_patterns(name, patterns).map_err(split)?;
                known.clone_from(patterns);
            }
        }
        if let Some(domains) = &changes.allowed_domains
            && *domains != self.allowed_domains
        {
            scope::check_domains(domains).map_err(split)?;
            self.allowed_domains.clone_from(domains);
        }
        Ok(())
    }
}

fn split(error: ScopeError) -> (String, String) {
    (error.place(), error.fault())
}

/// Better words for mistakes that are near.
fn refuse_what_has_another_place(members: &Map<String, Value>, path: &str) -> Result<(), Refusal> {
    match members.contains_key("action") {
        true => Err(Refusal::new(
            &format!("{path}.action"),
            "an action is sent by itself, not among crawl requests",
        )),
        false => Ok(()),
    }
}

/// The JSON Schema of a crawl request. The file in the documentation is this, and a test says so.
pub fn schema() -> Value {
    let properties: Map<String, Value> = KEYS
        .iter()
        .map(|key| {
            let mut schema = key.rule.schema();
            schema["description"] = key.meaning.into();
            (key.name.to_owned(), schema)
        })
        .collect();
    let required: Vec<&str> = KEYS
        .iter()
        .filter(|key| key.required)
        .map(|key| key.name)
        .collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "webfill crawl request",
        "description": "One URL to crawl, by the names of Scrapy Cluster 1.0. What a schema cannot say: \
                        the URL, the domains and the patterns are judged, too, and `expires` is in the future.",
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}
