//! Reports about judged pages, for the log and for applications.

use serde_json::json;
use webfill_health::{Alert, Warning};

use crate::firehose::NotificationPublisher;

/// The crawl of the page that caused a report.
#[derive(Debug, Clone)]
pub(super) struct Owner {
    pub(super) app_id: String,
    pub(super) crawl_id: String,
}

impl Owner {
    /// The owner of the page with this key: `APPID/CRAWLID/HASH`.
    pub(super) fn from_page_id(id: &str) -> Owner {
        let (crawl, _) = id.rsplit_once('/').unwrap_or_default();
        let (app_id, crawl_id) = crawl.split_once('/').unwrap_or_default();
        Owner {
            app_id: app_id.to_owned(),
            crawl_id: crawl_id.to_owned(),
        }
    }
}

/// A report, and the crawl whose application receives it.
pub(super) struct Report {
    pub(super) owner: Owner,
    pub(super) what: AlertEvent,
}

pub(super) enum AlertEvent {
    Raised(Alert),
    MoreFell(Alert),
    Cleared(Box<Alert>),
    Warned(Warning),
}

impl Report {
    /// Logs the report, and notifies the application that owns the page.
    pub(super) fn report(&self, notifications: &NotificationPublisher) {
        let (action, mut notification) = match &self.what {
            AlertEvent::Raised(alert) => {
                let fields = alert.field_names().join(", ");
                let message = alert.text();
                tracing::warn!(
                    event = "layout_changed",
                    mapping = alert.mapping,
                    fields,
                    "{message}"
                );
                ("layout_changed", alert.notification())
            }
            AlertEvent::MoreFell(alert) => {
                let fields = alert.field_names().join(", ");
                let message = alert.text();
                tracing::warn!(
                    event = "layout_alert_extended",
                    mapping = alert.mapping,
                    fields,
                    "{message}"
                );
                ("layout_alert_extended", alert.notification())
            }
            AlertEvent::Cleared(alert) => {
                let why = alert.cleared_by.as_deref();
                tracing::info!(
                    event = "layout_alert_cleared",
                    mapping = alert.mapping,
                    why,
                    "the alert of a mapping is cleared"
                );
                ("layout_alert_cleared", alert.notification())
            }
            AlertEvent::Warned(warning) => {
                let Warning {
                    mapping,
                    field,
                    detail,
                    ..
                } = warning;
                tracing::warn!(event = "extraction_suspicious", mapping, field, "{detail}");
                ("extraction_suspicious", json!(warning))
            }
        };
        notification["action"] = action.into();
        notification["appid"] = self.owner.app_id.as_str().into();
        notification["crawlid"] = self.owner.crawl_id.as_str().into();
        notifications.publish(&self.owner.app_id, &notification);
    }
}
