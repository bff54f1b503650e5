//! The entries that need attention, the worst first: each a line with its subject, why, since when, and one button.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::extractions::NOT_KNOWN_YET;
use crate::snapshot::Snapshot;
use crate::templates::percent_encode;
use crate::views::words;

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Alert {
    /// Whether the problem stops work or loses data. Otherwise it is only a warning.
    pub(crate) is_bad: bool,
    pub(crate) subject: String,
    pub(crate) why: String,
    /// The path of the page with details, if there is one.
    pub(crate) leads_to: Option<String>,
    /// When the problem began: seconds since the epoch or a text, as it was reported.
    pub(crate) since: Option<Value>,
    pub(crate) button: Option<Button>,
}

/// A button that starts an action, as a form.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Button {
    label: &'static str,
    path: &'static str,
    members: BTreeMap<&'static str, String>,
}

impl Button {
    fn new<const N: usize>(
        label: &'static str,
        path: &'static str,
        members: [(&'static str, &str); N],
    ) -> Button {
        let members = members.map(|(name, value)| (name, value.to_owned()));
        Button {
            label,
            path,
            members: BTreeMap::from(members),
        }
    }
}

/// Something that the dashboard cannot judge yet, and why.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct NotKnown {
    what: String,
    why: &'static str,
    leads_to: &'static str,
}

pub(super) fn not_known_yet(snapshot: &Snapshot) -> Vec<NotKnown> {
    let mut unknown = Vec::new();
    let mappings = snapshot.mappings.iter();
    let mappings = mappings.filter(|mapping| mapping.state == NOT_KNOWN_YET);
    let count = mappings.count();
    if count > 0 {
        let noun = if count == 1 { "mapping" } else { "mappings" };
        unknown.push(NotKnown {
            what: format!("{count} {noun}"),
            why: "too few pages read",
            leads_to: "/dashboard/mappings",
        });
    }
    let supervisors = snapshot.status["supervisors"].as_array();
    if supervisors.is_some_and(Vec::is_empty) {
        unknown.push(NotKnown {
            what: String::from("machines"),
            why: "none is connected",
            leads_to: MACHINES,
        });
    }
    unknown
}

pub(super) fn from_snapshot(snapshot: &Snapshot) -> Vec<Alert> {
    let mut alerts = Alerts(Vec::new());
    alerts.add_for_backends(snapshot);
    alerts.add_for_machines(&snapshot.status);
    alerts.add_for_mappings(snapshot);
    alerts.add_for_sites(snapshot);
    alerts.add_for_crawls(&snapshot.status);
    alerts.add_for_processes(snapshot);
    alerts.add_for_watches(snapshot);
    alerts.add_for_doubts(snapshot);
    alerts.0.sort_by_key(|alert| !alert.is_bad);
    alerts.0
}

const MACHINES: &str = "/dashboard/machines";

fn crawl_path(app: &str, crawl: &str) -> String {
    format!(
        "/dashboard/crawl/{}/{}",
        percent_encode(app),
        percent_encode(crawl)
    )
}

struct Alerts(Vec<Alert>);

impl Alerts {
    fn add_error(&mut self, subject: &str, why: String) -> &mut Alert {
        self.add(true, subject, why)
    }

    fn add_warning(&mut self, subject: &str, why: String) -> &mut Alert {
        self.add(false, subject, why)
    }

    fn add(&mut self, is_bad: bool, subject: &str, why: String) -> &mut Alert {
        let subject = subject.to_owned();
        self.0.push(Alert {
            is_bad,
            subject,
            why,
            ..Alert::default()
        });
        self.0.last_mut().expect("one was added")
    }

    fn add_for_backends(&mut self, snapshot: &Snapshot) {
        let status = &snapshot.status;
        if let Some(why) = &snapshot.fault {
            self.add_error("Fleet status unavailable", why.clone());
        }
        if let Some(why) = &snapshot.store_fault {
            self.add_error("The store cannot be read", why.clone());
        }
        for (name, what) in [
            ("store", "pages cannot be saved"),
            ("cache", "sites' clocks cannot be shared"),
        ] {
            if status[name]["up"] == false {
                let why = format!("{what}: {}", text(&status[name]["fault"]));
                let alert = self.add_error(&format!("The {name} is down"), why);
                alert.leads_to = Some(MACHINES.into());
            }
        }
        if let Some(why) = status["paused"].as_str() {
            self.add_error("The dispatcher is paused", why.to_owned());
        }
        if status["draining"] == true {
            self.add_warning("The dispatcher is draining", String::new());
        }
    }

    fn add_for_machines(&mut self, status: &Value) {
        let Some(supervisors) = status["supervisors"].as_array() else {
            return;
        };
        if supervisors.is_empty() && status["total_pending"].as_u64() > Some(0) {
            let why = "tasks wait for one".to_owned();
            let alert = self.add_error("No supervisor is connected", why);
            alert.leads_to = Some(MACHINES.into());
        }
        for one in supervisors {
            let name = text(&one["id"]);
            let (what, why, since) = match one["state"].as_str() {
                Some("silent") => ("is silent", "", None),
                Some("offline") => {
                    let since = Some(one["offline_since"].clone());
                    ("is offline", text(&one["sign"]), since)
                }
                Some("holds") => ("starts no fetches", text(&one["holds"]), None),
                _ => continue,
            };
            let alert = self.add_error(&format!("{name} {what}"), why.to_owned());
            alert.leads_to = Some(MACHINES.into());
            alert.since = since;
        }
    }

    fn add_for_mappings(&mut self, snapshot: &Snapshot) {
        let path = |name: &str| Some(format!("/dashboard/mapping/{}", percent_encode(name)));
        let repair = |name: &str| {
            let members = [("mapping", name)];
            Some(Button::new("Repair", "/dashboard/editor/repair", members))
        };
        // The fleet leaves out alerts of mappings that are not used any more.
        let standing = snapshot.status["alerts"].as_array();
        for alert in standing.into_iter().flatten() {
            let mapping = text(&alert["mapping"]);
            let why = format!(
                "pages have changed, fields are lost: {}",
                text(&alert["fields"])
            );
            let one = self.add_error(mapping, why);
            one.leads_to = path(mapping);
            one.since = Some(alert["layout_changed"].clone());
            one.button = repair(mapping);
        }
        for mapping in &snapshot.mappings {
            if let Some(why) = &mapping.doubt
                && mapping.alert.is_none()
            {
                let one = self.add_error(&mapping.name, why.clone());
                one.leads_to = path(&mapping.name);
            }
            if let Some(why) = &mapping.alert
                && snapshot.status.is_null()
            {
                let one = self.add_error(&mapping.name, why.clone());
                one.leads_to = path(&mapping.name);
                one.since = mapping.since.clone().map(Value::from);
                one.button = repair(&mapping.name);
            }
        }
    }

    /// Adds an alert for each site in trouble. Sites with the same reason share one.
    fn add_for_sites(&mut self, snapshot: &Snapshot) {
        let Some(sites) = &snapshot.sites else {
            return;
        };
        for (reason, of) in &sites.by_reason {
            let trouble = words::describe_trouble(reason);
            if trouble.is_empty() {
                continue;
            }
            // A site that limits the request rate is crawled more slowly by itself, so nobody needs to act.
            let is_bad = reason != "busy";
            let waiting = match of.queued {
                0 => String::new(),
                1 => String::from("; 1 URL waits"),
                more => format!("; {more} URLs wait"),
            };
            let alert = match (&of.names[..], of.count) {
                ([name], 1) => {
                    let sign = of.sign.as_ref();
                    let sign = sign.map_or(String::new(), |sign| format!(" ({sign})"));
                    let alert = self.add(is_bad, name, format!("{trouble}{sign}{waiting}"));
                    alert.leads_to = Some(format!("/dashboard/site/{}", percent_encode(name)));
                    let members = [("site", name.as_str()), ("wake", "yes")];
                    alert.button = Some(Button::new("Try now", "/dashboard/do/site", members));
                    alert
                }
                (names, count) => {
                    let is_cut = count > names.len() as u64;
                    let more = if is_cut { ", …" } else { "" };
                    let names = names.join(", ");
                    let at_least = if sites.is_more { " or more" } else { "" };
                    let subject = format!("{count}{at_least} sites");
                    let why = format!("{trouble}: {names}{more}{waiting}");
                    let alert = self.add(is_bad, &subject, why);
                    alert.leads_to = Some("/dashboard/sites".into());
                    alert
                }
            };
            alert.since = of.since.map(Value::from);
        }
    }

    fn add_for_crawls(&mut self, status: &Value) {
        for crawl in status["unfinished"].as_array().into_iter().flatten() {
            if crawl["state"] != "paused" {
                continue;
            }
            let (app, id) = (text(&crawl["appid"]), text(&crawl["crawlid"]));
            let pending = crawl["pending"].as_u64().unwrap_or_default();
            let alert = self.add_warning(
                &format!("{app} / {id}"),
                format!("is paused; {pending} URLs wait"),
            );
            alert.leads_to = Some(crawl_path(app, id));
            let members = [("appid", app), ("crawlid", id)];
            alert.button = Some(Button::new("Resume", "/dashboard/do/resume", members));
        }
    }

    fn add_for_processes(&mut self, snapshot: &Snapshot) {
        let crawls = snapshot.crawls.iter();
        for one in crawls.flat_map(|crawls| &crawls.silent) {
            let why = "its process has died or hangs; the command that began the crawl resumes it";
            let subject = format!("{} / {}", one.app, one.crawl);
            let alert = self.add_error(&subject, why.to_owned());
            alert.leads_to = Some(crawl_path(&one.app, &one.crawl));
            alert.since = Some((one.since_ms as f64 / 1_000.0).into());
        }
    }

    fn add_for_watches(&mut self, snapshot: &Snapshot) {
        let path = |name: &str| Some(format!("/dashboard/watch/{}", percent_encode(name)));
        let undelivered = snapshot.status["undelivered"].as_array();
        for row in undelivered.into_iter().flatten() {
            let watch = text(&row["watch"]);
            let why = format!(
                "notifications do not reach {}: {}",
                text(&row["target"]),
                text(&row["why"])
            );
            let alert = self.add_error(watch, why);
            alert.leads_to = path(watch);
            alert.since = Some(row["since"].clone());
        }
        for watch in &snapshot.watches {
            let name = text(&watch["name"]);
            for silence in watch["silent"].as_array().into_iter().flatten() {
                let alert = self.add_error(name, text(&silence["why"]).to_owned());
                alert.leads_to = path(name);
                alert.since = Some(silence["since"].clone());
            }
        }
    }

    fn add_for_doubts(&mut self, snapshot: &Snapshot) {
        for (table, open) in &snapshot.doubts {
            let what = if *open == 1 { "value" } else { "values" };
            let why = format!("{open} known {what} contradicted by pages");
            let alert = self.add_warning(table, why);
            alert.leads_to = Some(format!("/dashboard/table/{}/review", percent_encode(table)));
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("?")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn alert_text(alert: &Alert) -> String {
        format!("{}: {}", alert.subject, alert.why)
    }

    fn alert_texts(status: Value) -> Vec<String> {
        let snapshot = Snapshot {
            status,
            ..Snapshot::default()
        };
        from_snapshot(&snapshot).iter().map(alert_text).collect()
    }

    #[test]
    fn all_is_clear_without_reports() {
        let working = json!({"supervisors": [{"id": "one", "state": "working"}], "store": {"up": true}, "total_pending": 5});
        assert!(alert_texts(working).is_empty());
        assert!(alert_texts(Value::Null).is_empty());
        assert!(alert_texts(json!({"supervisors": [], "total_pending": 0})).is_empty());
    }

    #[test]
    fn facts_that_are_not_known_yet_are_counted() {
        let mapping = |name: &str, state| crate::snapshot::Mapping {
            name: name.to_owned(),
            state,
            doubt: None,
            pages: 5,
            last_at: String::new(),
            alert: None,
            since: None,
        };
        let mut snapshot = Snapshot {
            status: json!({"supervisors": [{"id": "one", "state": "working"}]}),
            mappings: vec![mapping("a", "fine"), mapping("b", NOT_KNOWN_YET)],
            ..Snapshot::default()
        };
        let said = |snapshot: &Snapshot| -> Vec<String> {
            let unknown = not_known_yet(snapshot).into_iter();
            unknown
                .map(|one| format!("{} ({})", one.what, one.why))
                .collect()
        };
        assert_eq!(said(&snapshot), ["1 mapping (too few pages read)"]);
        snapshot.status = json!({"supervisors": []});
        snapshot.mappings.truncate(1);
        assert_eq!(said(&snapshot), ["machines (none is connected)"]);
        assert!(said(&Snapshot::default()).is_empty());
    }

    #[test]
    fn everything_that_needs_attention_is_listed_the_worst_first() {
        let reported = alert_texts(json!({
            "draining": true,
            "paused": "the disk is full",
            "store": {"up": false, "fault": "gone"},
            "supervisors": [{"id": "one", "state": "offline", "sign": "no route"}, {"id": "two", "state": "silent"}],
            "alerts": [{"mapping": "shop", "fields": "price", "layout_changed": "2026-11-24T06:00:00Z"}],
            "undelivered": [{"watch": "w", "target": "mail", "why": "refused", "since": 1.5}],
        }));
        assert_eq!(
            reported,
            [
                "The store is down: pages cannot be saved: gone",
                "The dispatcher is paused: the disk is full",
                "one is offline: no route",
                "two is silent: ",
                "shop: pages have changed, fields are lost: price",
                "w: notifications do not reach mail: refused",
                "The dispatcher is draining: ",
            ]
        );
    }

    #[test]
    fn sites_in_trouble_need_attention_each_or_by_reason() {
        let site = |name: &str, reason: &str, queued: u64| {
            json!({"site": name, "state": "backing_off", "reason": reason, "queued": queued,
                "since": 60.5, "evidence": {"sign": "403 from its wall"}})
        };
        let mut first = vec![site("gate.example", "blocked", 36)];
        let mut refuses = site("refuses.example", "busy", 1);
        refuses["evidence"] = json!({"sign": "http_error", "status_code": 429});
        first.push(refuses);
        let mut resets = site("resets.example", "unreachable", 0);
        resets["evidence"] =
            json!({"sign": "Connection reset by peer (os error 104)", "status_code": null});
        first.push(resets);
        first.extend((0..4).map(|n| site(&format!("gone{n}.example"), "dns", 2)));
        first.push(site("ours.example", "by_hand", 5));
        // There are more sites than the overview lists.
        first.extend((0..30).map(|n| site(&format!("ours{n}.example"), "by_hand", 5)));
        let snapshot = Snapshot {
            sites: Some(crate::snapshot::sites_in_trouble(&first, false)),
            ..Snapshot::default()
        };
        let alerts = from_snapshot(&snapshot);
        let reported: Vec<String> = alerts.iter().map(alert_text).collect();
        assert_eq!(
            reported,
            [
                "gate.example: blocks the crawler (403 from its wall); 36 URLs wait",
                "4 sites: name does not resolve: gone0.example, gone1.example, gone2.example, …; 8 URLs wait",
                "resets.example: no answer (Connection reset by peer)",
                "refuses.example: refuses the rate of requests (status 429); 1 URL waits",
            ]
        );
        assert_eq!(alerts[0].since, Some(json!(60.5)));
        let button = alerts[0].button.as_ref().unwrap();
        assert_eq!(button.members["site"], "gate.example");
        assert_eq!(alerts[1].leads_to.as_deref(), Some("/dashboard/sites"));
    }
}
