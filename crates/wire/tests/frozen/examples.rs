//! An example value of each message whose bytes are frozen. No two numbers are equal, so that the test notices if
//! members change places.

use std::net::{IpAddr, Ipv4Addr};

use webfill_wire::{
    AddressBounds, CrawlSettings, Credit, Delivery, Evidence, FailedAttempt, Feature, Finding,
    Follow, Hello, KnownKind, Lane, MappingSource, Outcome, RecallScope, ReturnCause, SiteClock,
    SiteScripts, SupervisorHeartbeat, SupervisorReport, Task, TaskDone, TaskReturned,
};

pub fn features() -> Vec<Feature> {
    vec![
        Feature::Changes,
        Feature::Conditional,
        Feature::Sitemaps,
        Feature::KeepBodies,
    ]
}

pub fn site_scripts() -> SiteScripts {
    let kind = |finding| KnownKind {
        mapping: "shop".into(),
        layout: "#root".into(),
        finding,
        tries: 171,
    };
    SiteScripts {
        site: "example.net".into(),
        lane: Some(Lane::Browser),
        kinds: [
            Finding::Wanted,
            Finding::Filled,
            Finding::Empty,
            Finding::Tried,
        ]
        .map(kind)
        .to_vec(),
    }
}

pub fn crawl() -> CrawlSettings {
    CrawlSettings {
        key: 11,
        app_id: "app".into(),
        crawl_id: "crawl".into(),
        max_depth: 12,
        follow: Follow::All,
        lane: Lane::Browser,
        useragent: Some("agent".into()),
        attrs: Some("{\"a\":1}".into()),
        headers: true,
        body: false,
        features: features(),
    }
}

pub fn mapping() -> MappingSource {
    MappingSource {
        name: "shop.json".into(),
        text: "{}".into(),
    }
}

pub fn failed_attempt() -> FailedAttempt {
    FailedAttempt {
        ended_at_ms: -21,
        outcome: Outcome::Timeout,
        status_code: Some(503),
    }
}

pub fn delivery(number: u32) -> Delivery {
    Delivery { epoch: 30, number }
}

pub fn task() -> Task {
    Task {
        task: 31,
        delivery: delivery(32),
        crawl: 33,
        url: "https://example.com/a".into(),
        site: "example.com".into(),
        depth: 34,
        wait_ms: 35,
        last_request_ago_ms: Some(36),
        parent: Some("https://example.com/".into()),
        records: vec!["record".into()],
        attrs: Some("{\"b\":2}".into()),
        priority: 37,
        delay_ms: Some(38),
        failed_attempts: vec![failed_attempt()],
        unreachable: Some(Outcome::Blocked),
        address_bounds: AddressBounds::OfAny(Some(IpAddr::V4(Ipv4Addr::LOCALHOST))),
    }
}

pub fn scope() -> RecallScope {
    RecallScope {
        crawl: Some(41),
        site: Some("example.org".into()),
        below: Some(42),
        forget: true,
    }
}

pub fn clock() -> SiteClock {
    SiteClock {
        next_in_ms: 51,
        delay_ms: Some(52),
    }
}

pub fn task_done() -> TaskDone {
    TaskDone {
        task: 61,
        delivery: delivery(62),
        outcome: Outcome::Redirected,
        status_code: Some(301),
        body_bytes: 63,
        fields: 64,
        rows: 0,
        rows_stored: 0,
        links: vec!["/link".into()],
        redirect: Some("/target".into()),
        resolved: vec!["resolved".into()],
        clock: clock(),
        evidence: Some(Evidence {
            url: "https://example.com/robots.txt".into(),
            status_code: Some(503),
            sign: "sign".into(),
            no_route: true,
        }),
    }
}

pub fn task_returned() -> TaskReturned {
    TaskReturned {
        task: 71,
        delivery: delivery(72),
        cause: ReturnCause::CutShort,
        clock: Some(clock()),
        address: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
    }
}

pub fn credit() -> Credit {
    Credit {
        tasks: 81,
        url_bytes: 82,
    }
}

pub fn hello() -> Hello {
    Hello {
        supervisor: "vm-01".into(),
        instance: 91,
        session: 92,
        sent_ms: 93,
        lane: Lane::Browser,
        workers: 94,
        longest_request_ms: 95,
        credit: credit(),
        held: vec![(96, delivery(97))],
    }
}

pub fn heartbeat() -> SupervisorHeartbeat {
    SupervisorHeartbeat {
        session: 101,
        sent_ms: 102,
        wall_ms: 105,
        credit: credit(),
        received: 103,
        outcomes_sent: 104,
    }
}

pub fn report() -> SupervisorReport {
    SupervisorReport {
        session: 181,
        webfill: "0.1.0".into(),
        workers_ready: 182,
        worker_deaths: 183,
        memory_bytes: 184,
        workers_memory_bytes: 185,
        load_hundredths: 186,
        cores: 187,
        held: 188,
        waiting: 189,
        holds: Some("holds".into()),
    }
}
