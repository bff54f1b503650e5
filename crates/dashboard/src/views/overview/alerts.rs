//! The entries that need attention, in sentences, the worst first.

use serde::Serialize;
use serde_json::Value;

use crate::snapshot::Snapshot;
use crate::templates::encoded;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Alert {
    /// It stops something, or loses something.
    pub(crate) is_bad: bool,
    pub(crate) text: String,
    /// The page with details.
    pub(crate) leads_to: Option<String>,
    /// Since when, as received: seconds since the epoch, or text.
    pub(crate) since: Option<Value>,
}

pub(super) fn of(snapshot: &Snapshot) -> Vec<Alert> {
    let mut alerts = Alerts(Vec::new());
    alerts.of_backends(snapshot);
    alerts.of_machines(&snapshot.status);
    alerts.of_mappings(snapshot);
    alerts.of_notifications(&snapshot.status);
    alerts.0.sort_by_key(|alert| !alert.is_bad);
    alerts.0
}

struct Alerts(Vec<Alert>);

impl Alerts {
    fn add(&mut self, is_bad: bool, text: String, leads_to: Option<String>, since: Option<Value>) {
        self.0.push(Alert {
            is_bad,
            text,
            leads_to,
            since,
        });
    }

    fn of_backends(&mut self, snapshot: &Snapshot) {
        let status = &snapshot.status;
        if let Some(why) = &snapshot.fault {
            self.add(true, format!("Fleet status unavailable: {why}"), None, None);
        }
        if let Some(why) = &snapshot.store_fault {
            self.add(true, format!("The store cannot be read: {why}"), None, None);
        }
        for (name, what) in [
            ("store", "pages cannot be saved"),
            ("cache", "sites' clocks cannot be shared"),
        ] {
            if status[name]["up"] == false {
                let why = text(&status[name]["fault"]);
                let machines = Some("/dashboard/machines".into());
                self.add(
                    true,
                    format!("The {name} is down, {what}: {why}"),
                    machines,
                    None,
                );
            }
        }
        if let Some(why) = status["paused"].as_str() {
            self.add(true, format!("The dispatcher is paused: {why}"), None, None);
        }
        if status["draining"] == true {
            self.add(false, "The dispatcher is draining".into(), None, None);
        }
    }

    fn of_machines(&mut self, status: &Value) {
        let Some(supervisors) = status["supervisors"].as_array() else {
            return;
        };
        let machines = || Some("/dashboard/machines".into());
        if supervisors.is_empty() && status["total_pending"].as_u64() > Some(0) {
            let why = "No supervisor is connected, and tasks wait for one";
            self.add(true, why.into(), machines(), None);
        }
        for one in supervisors {
            let name = text(&one["id"]);
            match one["state"].as_str() {
                Some("silent") => {
                    self.add(true, format!("{name} is silent"), machines(), None);
                }
                Some("cut_off") => {
                    let why = format!("{name} is offline: {}", text(&one["sign"]));
                    self.add(true, why, machines(), Some(one["cut_off_since"].clone()));
                }
                Some("holds") => {
                    let why = format!("{name} starts no fetches: {}", text(&one["holds"]));
                    self.add(true, why, machines(), None);
                }
                _ => {}
            }
        }
    }

    fn of_mappings(&mut self, snapshot: &Snapshot) {
        // The fleet leaves out mappings that are no longer in use.
        let standing = snapshot.status["alerts"].as_array();
        for alert in standing.into_iter().flatten() {
            let mapping = text(&alert["mapping"]);
            let why = format!(
                "{mapping}: pages have changed, fields are lost: {}",
                text(&alert["fields"])
            );
            let leads_to = format!("/dashboard/mapping/{}", encoded(mapping));
            self.add(
                true,
                why,
                Some(leads_to),
                Some(alert["layout_changed"].clone()),
            );
        }
        if snapshot.status.is_null() {
            for mapping in &snapshot.mappings {
                if let Some(why) = &mapping.alert {
                    let since = mapping.since.clone().map(Value::from);
                    let leads_to = format!("/dashboard/mapping/{}", encoded(&mapping.name));
                    self.add(true, why.clone(), Some(leads_to), since);
                }
            }
        }
    }

    fn of_notifications(&mut self, status: &Value) {
        for row in status["undelivered"].as_array().into_iter().flatten() {
            let why = format!(
                "Notifications of the watch {} do not reach {}: {}",
                text(&row["watch"]),
                text(&row["target"]),
                text(&row["why"])
            );
            let leads_to = format!("/dashboard/watch/{}", encoded(text(&row["watch"])));
            self.add(true, why, Some(leads_to), Some(row["since"].clone()));
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

    fn texts(status: Value) -> Vec<String> {
        let snapshot = Snapshot {
            status,
            ..Snapshot::default()
        };
        of(&snapshot).into_iter().map(|alert| alert.text).collect()
    }

    #[test]
    fn all_is_clear_without_reports() {
        let working = json!({"supervisors": [{"id": "one", "state": "working"}], "store": {"up": true}, "total_pending": 5});
        assert!(texts(working).is_empty());
        assert!(texts(Value::Null).is_empty());
        assert!(texts(json!({"supervisors": [], "total_pending": 0})).is_empty());
    }

    #[test]
    fn whatever_asks_for_somebody_is_said_the_worst_first() {
        let reported = texts(json!({
            "draining": true,
            "paused": "the disk is full",
            "store": {"up": false, "fault": "gone"},
            "supervisors": [{"id": "one", "state": "cut_off", "sign": "no route"}, {"id": "two", "state": "silent"}],
            "alerts": [{"mapping": "shop", "fields": "price", "layout_changed": "2026-11-24T06:00:00Z"}],
            "undelivered": [{"watch": "w", "target": "mail", "why": "refused", "since": 1.5}],
        }));
        assert_eq!(
            reported,
            [
                "The store is down, pages cannot be saved: gone",
                "The dispatcher is paused: the disk is full",
                "one is offline: no route",
                "two is silent",
                "shop: pages have changed, fields are lost: price",
                "Notifications of the watch w do not reach mail: refused",
                "The dispatcher is draining",
            ]
        );
    }
}
