//! Actions: what applications ask about their crawls and do with them, and what people do with
//! sites. The names are Scrapy Cluster's where it has them.

use serde::Deserialize;
use serde_json::Value;

use super::Refusal;
use super::rule::{Key, Rule, check};
use super::spider::Spider;

/// The year 9999 is far enough for everybody.
const LAST_SECOND: f64 = 253_402_300_799.0;
const YEAR_S: f64 = 365.0 * 86_400.0;

/// Something to tell or to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// About an application, or one of its crawls.
    Info(Subject),
    /// Ends a crawl for good.
    Stop(Subject),
    Pause(Subject),
    Resume(Subject),
    /// About the whole fleet.
    Status {
        uuid: Option<String>,
    },
    Site(SiteAction),
}

/// Whom an action is about, and what goes back with its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Subject {
    pub app_id: String,
    /// Absent only where the whole application is meant.
    pub crawl_id: Option<String>,
    pub uuid: Option<String>,
    /// Comes back where no crawl has one of its own.
    pub spider: Option<Spider>,
}

/// What is to hold for a site; what is left out stays as it is. Without any, it is a question.
#[derive(Debug, Clone, PartialEq)]
pub struct SiteAction {
    /// As it was named: a host name or an address.
    pub site: String,
    pub uuid: Option<String>,
    /// `Some(None)`: the default again.
    pub delay_ms: Option<Option<u32>>,
    /// Milliseconds since the epoch.
    pub block_until_ms: Option<Option<i64>>,
    /// So many further pages.
    pub limit: Option<Option<u64>>,
    pub forget: bool,
}

impl SiteAction {
    pub(crate) fn changes_something(&self) -> bool {
        let keys = [
            self.delay_ms.is_some(),
            self.block_until_ms.is_some(),
            self.limit.is_some(),
            self.forget,
        ];
        keys.contains(&true)
    }
}

const ACTION: Key = Key {
    name: "action",
    required: true,
    rule: Rule::Text(20),
    meaning: "What to do.",
};

const UUID: Key = Key {
    name: "uuid",
    required: false,
    rule: Rule::Text(200),
    meaning: "Comes back with the answer.",
};

const SUBJECT_KEYS: &[Key] = &[
    ACTION,
    UUID,
    Key {
        name: "appid",
        required: true,
        rule: Rule::Id(200),
        meaning: "The application.",
    },
    Key {
        name: "crawlid",
        required: false,
        rule: Rule::Id(200),
        meaning: "The crawl.",
    },
    Key {
        name: "spiderid",
        required: false,
        rule: Rule::Word(Spider::NAMES),
        meaning: "Who crawls. The crawl's id names the crawl, whoever crawls it.",
    },
];

const STATUS_KEYS: &[Key] = &[ACTION, UUID];

const SITE_KEYS: &[Key] = &[
    ACTION,
    UUID,
    Key {
        name: "site",
        required: true,
        rule: Rule::Text(253),
        meaning: "The registrable domain, or the address.",
    },
    Key {
        name: "delay",
        required: false,
        rule: Rule::SecondsOrNull(0.0, YEAR_S),
        meaning: "Seconds between two requests; never less than the site's own Crawl-delay.",
    },
    Key {
        name: "block_until",
        required: false,
        rule: Rule::SecondsOrNull(0.0, LAST_SECOND),
        meaning: "No request before, in seconds since the epoch.",
    },
    Key {
        name: "limit",
        required: false,
        rule: Rule::WholeOrNull(0, 1 << 53),
        meaning: "So many further pages, over all crawls.",
    },
    Key {
        name: "forget",
        required: false,
        rule: Rule::Flag,
        meaning: "Drops what was set by hand and what was learned.",
    },
];

#[derive(Deserialize)]
struct TypedSubject {
    appid: String,
    crawlid: Option<String>,
    uuid: Option<String>,
    spiderid: Option<Spider>,
}

/// Names of actions, for the one who errs.
const ACTIONS: &str = "info, stop, pause, resume, status, site";

/// Reads an object that has an `action`.
pub(crate) fn read(action: &str, request: Value) -> Result<Action, Refusal> {
    match action {
        "info" => subject(request, false).map(Action::Info),
        "stop" => subject(request, true).map(Action::Stop),
        "pause" => subject(request, true).map(Action::Pause),
        "resume" => subject(request, true).map(Action::Resume),
        "status" => {
            let members = members(&request);
            check(STATUS_KEYS, members, "$")?;
            let uuid = members.get("uuid").and_then(Value::as_str);
            let uuid = uuid.map(str::to_owned);
            Ok(Action::Status { uuid })
        }
        "site" => site(&request).map(Action::Site),
        _ => Err(Refusal::new(
            "$.action",
            format!("unknown action, known are {ACTIONS}"),
        )),
    }
}

fn members(request: &Value) -> &serde_json::Map<String, Value> {
    request
        .as_object()
        .expect("the caller has found a member in it")
}

fn subject(request: Value, needs_crawl: bool) -> Result<Subject, Refusal> {
    check(SUBJECT_KEYS, members(&request), "$")?;
    let typed: TypedSubject =
        serde_json::from_value(request).map_err(|error| Refusal::new("$", error))?;
    if needs_crawl && typed.crawlid.is_none() {
        return Err(Refusal::new("$.crawlid", "missing, it is required"));
    }
    Ok(Subject {
        app_id: typed.appid,
        crawl_id: typed.crawlid,
        uuid: typed.uuid,
        spider: typed.spiderid,
    })
}

fn site(request: &Value) -> Result<SiteAction, Refusal> {
    check(SITE_KEYS, members(request), "$")?;
    let text = |key| request.get(key).and_then(Value::as_str).map(str::to_owned);
    let millis = |key| {
        request
            .get(key)
            .map(|value| value.as_f64().map(|s| s * 1_000.0))
    };
    Ok(SiteAction {
        site: text("site").unwrap_or_default(),
        uuid: text("uuid"),
        delay_ms: millis("delay").map(|delay| delay.map(|ms| ms.ceil() as u32)),
        block_until_ms: millis("block_until").map(|until| until.map(|ms| ms.ceil() as i64)),
        limit: request.get("limit").map(Value::as_u64),
        forget: request.get("forget") == Some(&Value::Bool(true)),
    })
}
