//! The keys of each action, with their meanings.

use crate::rule::{Key, LAST_SECOND, Rule};
use crate::spider::Spider;

const YEAR_S: f64 = 365.0 * 86_400.0;

pub(super) const ACTION: Key = Key {
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

pub(super) const APP_ID: Key = Key {
    name: "appid",
    required: true,
    rule: Rule::Id(200),
    meaning: "The application.",
};

pub(super) const CRAWL_ID: Key = Key {
    name: "crawlid",
    required: false,
    rule: Rule::Id(200),
    meaning: "The crawl.",
};

pub(super) const SPIDER_ID: Key = Key {
    name: "spiderid",
    required: false,
    rule: Rule::Word(Spider::NAMES),
    meaning: "Accepted for Scrapy Cluster's clients; `crawlid` alone names the crawl.",
};

pub(super) const INFO_KEYS: &[Key] = &[
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

pub(super) const SUBJECT_KEYS: &[Key] = &[ACTION, UUID, APP_ID, CRAWL_ID, SPIDER_ID];

pub(super) const RETRY_KEYS: &[Key] = &[
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

/// The keys of `status` and `reload`.
pub(super) const FLEET_KEYS: &[Key] = &[ACTION, UUID];

pub(super) const DRAIN_KEYS: &[Key] = &[
    ACTION,
    UUID,
    Key {
        name: "supervisor",
        required: false,
        rule: Rule::Text(200),
        meaning: "The supervisor to drain; all connected ones if left out.",
    },
];

pub(super) const PRUNE_KEYS: &[Key] = &[
    ACTION,
    UUID,
    APP_ID,
    CRAWL_ID,
    SPIDER_ID,
    Key {
        name: "older_than",
        required: false,
        rule: Rule::WholeOrNull(0, 1 << 40),
        meaning: "Only crawls that have been idle for at least this many seconds; required if you name no crawl.",
    },
];

pub(super) const SITE_KEYS: &[Key] = &[
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
        name: "lane",
        required: false,
        rule: Rule::Word(&["http", "browser", "auto"]),
        meaning: "Where its pages are fetched in crawls of the lane `http`; `auto`: as each page needs it.",
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
        meaning: "Ends the site's backoff now: one task goes first.",
    },
];

pub(super) const SITES_KEYS: &[Key] = &[
    ACTION,
    UUID,
    Key {
        name: "backing_off",
        required: false,
        rule: Rule::Flag,
        meaning: "Only sites that back off or were given up.",
    },
    Key {
        name: "after",
        required: false,
        rule: Rule::WholeOrNull(0, 1 << 53),
        meaning: "Continue from the answer that returned this `next`.",
    },
];

pub(super) const WHY_KEYS: &[Key] = &[
    ACTION,
    UUID,
    Key {
        name: "url",
        required: true,
        rule: Rule::Text(4 * webfill_urls::MAX_URL_BYTES),
        meaning: "The URL to explain.",
    },
    Key {
        name: "appid",
        required: false,
        rule: Rule::Id(200),
        meaning: "Only crawls of this application.",
    },
    CRAWL_ID,
    // The position is passed as text, because all values of a query string are text.
    Key {
        name: "after",
        required: false,
        rule: Rule::Text(20),
        meaning: "Continue from the answer that returned this `next`.",
    },
];
