//! Actions: `info`, `stop`, `pause`, `resume`, `retry` and `prune` concern the crawls of one application,
//! `status`, `reload` and `drain` the fleet, `site` the rules and the state of one site, `sites` the states
//! of all, `why` one URL, `watch_...` the watches ([`WatchAction`]). The
//! names of the first four are Scrapy Cluster's.

use serde::Deserialize;
use serde_json::Value;
use webfill_wire::{CrawlKey, Outcome};

use crate::refusal::Refusal;
use crate::rule::{Key, LAST_SECOND, Rule, check};
use crate::spider::Spider;
use crate::watch::{WatchAction, parse_watch_action};

const YEAR_S: f64 = 365.0 * 86_400.0;

/// An action that was found to be in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Shows the counters of an application, or of one of its crawls.
    Info(InfoQuestion),
    /// Ends a crawl for good; its id is refused afterwards.
    Stop(Subject),
    Pause(Subject),
    Resume(Subject),
    /// Queues tasks of a crawl again that have ended.
    Retry(RetryAction),
    /// Drops finished crawls, with all that is known of their URLs.
    Prune(PruneAction),
    /// Shows supervisors, crawls and counters of the fleet.
    Status {
        uuid: Option<String>,
    },
    /// Reads the mappings and some settings again.
    Reload {
        uuid: Option<String>,
    },
    /// Drains the supervisor of this name, or all that are connected.
    Drain {
        supervisor: Option<String>,
        uuid: Option<String>,
    },
    Site(SiteAction),
    /// Lists the states of sites.
    Sites(SitesQuestion),
    /// Tells where a URL is in the crawls that know it, and why.
    Why(WhyQuestion),
    Watch(WatchAction),
}

/// The application or crawl that an action concerns, and what is repeated in its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Subject {
    pub app_id: String,
    /// Only `info` may leave it out, and then concerns all crawls of the application.
    pub crawl_id: Option<String>,
    pub uuid: Option<String>,
    /// Repeated in an answer about a whole application; a crawl has a spider of its own.
    pub spider: Option<Spider>,
}

/// Which counters are shown.
#[derive(Debug, Clone, PartialEq)]
pub struct InfoQuestion {
    pub subject: Subject,
    /// Of an application, only crawls behind this one: the `next` of the answer before.
    pub after: Option<String>,
}

/// Which of a crawl's ended tasks are to be queued again.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryAction {
    pub subject: Subject,
    /// Those that ended in one of these; not empty.
    pub outcomes: Vec<Outcome>,
    /// Only those with one of these HTTP statuses.
    pub status_codes: Option<Vec<u16>>,
    /// Only those of this site: a host name or an address, as the client wrote it.
    pub site: Option<String>,
}

/// Which crawls of an application are to be dropped: one, or all that have rested for long.
#[derive(Debug, Clone, PartialEq)]
pub struct PruneAction {
    pub subject: Subject,
    /// Only those in which nothing has happened for so many seconds.
    pub older_than_s: u64,
}

/// Rules for one site. `None`: the rule was left out and stays as it is. `Some(None)`: null, which
/// removes the rule. An action that changes nothing shows the rules in force.
#[derive(Debug, Clone, PartialEq)]
pub struct SiteAction {
    /// A host name or an address, as the client wrote it.
    pub site: String,
    pub uuid: Option<String>,
    /// Milliseconds between two requests.
    pub delay_ms: Option<Option<u32>>,
    /// No request before, in milliseconds since the epoch.
    pub block_until_ms: Option<Option<i64>>,
    /// At most this many further pages, over all crawls.
    pub limit: Option<Option<u64>>,
    /// Removes all rules, and what was learned about the site.
    pub forget: bool,
    /// Ends the site's rest now.
    pub wake: bool,
}

/// Which sites are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SitesQuestion {
    pub uuid: Option<String>,
    /// Only those that rest, or were given up.
    pub resting: bool,
    /// The `next` of the answer before.
    pub after: u64,
}

/// Which URL is asked about, and in which crawls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WhyQuestion {
    pub uuid: Option<String>,
    /// As the client wrote it.
    pub url: String,
    /// Only crawls of this application.
    pub app_id: Option<String>,
    /// Only crawls of this id.
    pub crawl_id: Option<String>,
    /// The `next` of the answer before; `None`: from the crawl that was opened last.
    pub after: Option<CrawlKey>,
}

impl SiteAction {
    pub fn changes_something(&self) -> bool {
        let keys = [
            self.delay_ms.is_some(),
            self.block_until_ms.is_some(),
            self.limit.is_some(),
            self.forget,
            self.wake,
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

pub(crate) const UUID: Key = Key {
    name: "uuid",
    required: false,
    rule: Rule::Text(200),
    meaning: "Comes back with the answer.",
};

const APP_ID: Key = Key {
    name: "appid",
    required: true,
    rule: Rule::Id(200),
    meaning: "The application.",
};

const CRAWL_ID: Key = Key {
    name: "crawlid",
    required: false,
    rule: Rule::Id(200),
    meaning: "The crawl.",
};

const SPIDER_ID: Key = Key {
    name: "spiderid",
    required: false,
    rule: Rule::Word(Spider::NAMES),
    meaning: "Accepted for Scrapy Cluster's clients; `crawlid` alone names the crawl.",
};

const INFO_KEYS: &[Key] = &[
    ACTION,
    UUID,
    APP_ID,
    CRAWL_ID,
    SPIDER_ID,
    Key {
        name: "after",
        required: false,
        rule: Rule::Id(200),
        meaning: "Of an application, only the crawls behind this one: the `next` of the answer before.",
    },
];

const SUBJECT_KEYS: &[Key] = &[ACTION, UUID, APP_ID, CRAWL_ID, SPIDER_ID];

const RETRY_KEYS: &[Key] = &[
    ACTION,
    UUID,
    APP_ID,
    CRAWL_ID,
    SPIDER_ID,
    Key {
        name: "outcome",
        required: true,
        rule: Rule::Outcomes,
        meaning: "Tasks that ended in one of these.",
    },
    Key {
        name: "status",
        required: false,
        rule: Rule::Statuses(100),
        meaning: "Only those with one of these HTTP statuses.",
    },
    Key {
        name: "site",
        required: false,
        rule: Rule::Text(253),
        meaning: "Only those of this site: the registrable domain, or the address.",
    },
];

/// Of `status` and `reload`.
const FLEET_KEYS: &[Key] = &[ACTION, UUID];

const DRAIN_KEYS: &[Key] = &[
    ACTION,
    UUID,
    Key {
        name: "supervisor",
        required: false,
        rule: Rule::Text(200),
        meaning: "The name of the supervisor that is to drain; without it, all that are connected.",
    },
];

const PRUNE_KEYS: &[Key] = &[
    ACTION,
    UUID,
    APP_ID,
    CRAWL_ID,
    SPIDER_ID,
    Key {
        name: "older_than",
        required: false,
        rule: Rule::WholeOrNull(0, 1 << 40),
        meaning: "Only crawls in which nothing has happened for so many seconds; required without a crawl.",
    },
];

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
        meaning: "At most this many further pages, over all crawls.",
    },
    Key {
        name: "forget",
        required: false,
        rule: Rule::Flag,
        meaning: "Drops what was set by hand and what was learned.",
    },
    Key {
        name: "wake",
        required: false,
        rule: Rule::Flag,
        meaning: "Ends the site's rest now: one task goes first.",
    },
];

const SITES_KEYS: &[Key] = &[
    ACTION,
    UUID,
    Key {
        name: "resting",
        required: false,
        rule: Rule::Flag,
        meaning: "Only sites that rest or were given up.",
    },
    Key {
        name: "after",
        required: false,
        rule: Rule::WholeOrNull(0, 1 << 53),
        meaning: "Continue from the answer that returned this `next`.",
    },
];

const WHY_KEYS: &[Key] = &[
    ACTION,
    UUID,
    Key {
        name: "url",
        required: true,
        rule: Rule::Text(4 * webfill_urls::MAX_URL_BYTES),
        meaning: "The URL that is asked about.",
    },
    Key {
        name: "appid",
        required: false,
        rule: Rule::Id(200),
        meaning: "Only crawls of this application.",
    },
    CRAWL_ID,
    // A text, because all values of a query are.
    Key {
        name: "after",
        required: false,
        rule: Rule::Text(20),
        meaning: "Continue from the answer that returned this `next`.",
    },
];

#[derive(Deserialize)]
struct TypedSubject {
    appid: String,
    crawlid: Option<String>,
    uuid: Option<String>,
    spiderid: Option<Spider>,
}

/// The members that `retry` has besides those of a subject.
#[derive(Deserialize)]
struct TypedRetry {
    outcome: Vec<Outcome>,
    status: Option<Vec<u16>>,
    site: Option<String>,
}

/// The names of all actions, for refusals.
const ACTIONS: &str = "info, stop, pause, resume, retry, prune, status, reload, drain, site, sites, \
     why, watch_add, watch_list, watch_show, watch_run, watch_pause, watch_resume, watch_remove";

/// The names of all actions.
pub fn action_names() -> impl Iterator<Item = &'static str> {
    ACTIONS.split(", ")
}

/// Parses an object that has the key `action`.
pub fn parse_action(request: Value) -> Result<Action, Refusal> {
    let Some(action) = request.get("action").and_then(Value::as_str) else {
        return Err(Refusal::new("$.action", "expected text"));
    };
    match action {
        "info" => {
            let subject = subject(INFO_KEYS, &request, false)?;
            let after = text(&request, "after");
            Ok(Action::Info(InfoQuestion { subject, after }))
        }
        "stop" => subject(SUBJECT_KEYS, &request, true).map(Action::Stop),
        "pause" => subject(SUBJECT_KEYS, &request, true).map(Action::Pause),
        "resume" => subject(SUBJECT_KEYS, &request, true).map(Action::Resume),
        "retry" => retry(&request).map(Action::Retry),
        "prune" => prune(&request).map(Action::Prune),
        "status" => of_fleet(&request).map(|uuid| Action::Status { uuid }),
        "reload" => of_fleet(&request).map(|uuid| Action::Reload { uuid }),
        "drain" => {
            check(DRAIN_KEYS, members(&request), "$")?;
            let (supervisor, uuid) = (text(&request, "supervisor"), text(&request, "uuid"));
            Ok(Action::Drain { supervisor, uuid })
        }
        "site" => site(&request).map(Action::Site),
        "sites" => sites(&request).map(Action::Sites),
        "why" => why(&request).map(Action::Why),
        _ => match parse_watch_action(action, members(&request))? {
            Some(action) => Ok(Action::Watch(action)),
            None => Err(Refusal::new(
                "$.action",
                format!("unknown action, known are {ACTIONS}"),
            )),
        },
    }
}

fn members(request: &Value) -> &serde_json::Map<String, Value> {
    request
        .as_object()
        .expect("parse_action has found a member in it")
}

fn text(request: &Value, key: &str) -> Option<String> {
    request.get(key).and_then(Value::as_str).map(str::to_owned)
}

/// The `uuid` of an action that concerns the whole fleet.
fn of_fleet(request: &Value) -> Result<Option<String>, Refusal> {
    check(FLEET_KEYS, members(request), "$")?;
    Ok(text(request, "uuid"))
}

fn subject(keys: &[Key], request: &Value, needs_crawl: bool) -> Result<Subject, Refusal> {
    check(keys, members(request), "$")?;
    let typed = TypedSubject::deserialize(request).map_err(|error| Refusal::new("$", error))?;
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

fn retry(request: &Value) -> Result<RetryAction, Refusal> {
    let subject = subject(RETRY_KEYS, request, true)?;
    let typed = TypedRetry::deserialize(request).map_err(|error| Refusal::new("$", error))?;
    Ok(RetryAction {
        subject,
        outcomes: typed.outcome,
        status_codes: typed.status,
        site: typed.site,
    })
}

fn prune(request: &Value) -> Result<PruneAction, Refusal> {
    let subject = subject(PRUNE_KEYS, request, false)?;
    let older_than_s = request.get("older_than").and_then(Value::as_u64);
    if subject.crawl_id.is_none() && older_than_s.is_none() {
        let why = "missing, it is required where no `crawlid` is given";
        return Err(Refusal::new("$.older_than", why));
    }
    Ok(PruneAction {
        subject,
        older_than_s: older_than_s.unwrap_or(0),
    })
}

fn site(request: &Value) -> Result<SiteAction, Refusal> {
    check(SITE_KEYS, members(request), "$")?;
    let millis = |key| {
        request
            .get(key)
            .map(|value| value.as_f64().map(|s| s * 1_000.0))
    };
    Ok(SiteAction {
        site: text(request, "site").unwrap_or_default(),
        uuid: text(request, "uuid"),
        delay_ms: millis("delay").map(|delay| delay.map(|ms| ms.ceil() as u32)),
        block_until_ms: millis("block_until").map(|until| until.map(|ms| ms.ceil() as i64)),
        limit: request.get("limit").map(Value::as_u64),
        forget: request.get("forget") == Some(&Value::Bool(true)),
        wake: request.get("wake") == Some(&Value::Bool(true)),
    })
}

fn sites(request: &Value) -> Result<SitesQuestion, Refusal> {
    check(SITES_KEYS, members(request), "$")?;
    Ok(SitesQuestion {
        uuid: text(request, "uuid"),
        resting: request.get("resting") == Some(&Value::Bool(true)),
        after: request.get("after").and_then(Value::as_u64).unwrap_or(0),
    })
}

fn why(request: &Value) -> Result<WhyQuestion, Refusal> {
    check(WHY_KEYS, members(request), "$")?;
    let after = text(request, "after").map(|after| after.parse());
    let after = after.transpose();
    let after = after.map_err(|_| Refusal::new("$.after", "is the `next` of no answer"))?;
    Ok(WhyQuestion {
        uuid: text(request, "uuid"),
        url: text(request, "url").unwrap_or_default(),
        app_id: text(request, "appid"),
        crawl_id: text(request, "crawlid"),
        after,
    })
}
