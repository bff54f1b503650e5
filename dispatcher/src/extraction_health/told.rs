//! What the judged pages have brought about, as the log and the applications are told.

use serde_json::json;
use webfill_health::{Alarm, Warning};

use crate::firehose::Notices;

/// Whose page has brought something about.
#[derive(Debug, Clone)]
pub(super) struct Owner {
    pub(super) app_id: String,
    pub(super) crawl_id: String,
}

impl Owner {
    /// The owner of the page with a key: `APPID/CRAWLID/HASH`.
    pub(super) fn of_page(id: &str) -> Owner {
        let (crawl, _) = id.rsplit_once('/').unwrap_or_default();
        let (app_id, crawl_id) = crawl.split_once('/').unwrap_or_default();
        Owner {
            app_id: app_id.to_owned(),
            crawl_id: crawl_id.to_owned(),
        }
    }
}

/// What is to be told, and to whom.
pub(super) struct Told {
    pub(super) owner: Owner,
    pub(super) what: What,
}

pub(super) enum What {
    Raised(Alarm),
    MoreFell(Alarm),
    Cleared(Box<Alarm>),
    Warned(Warning),
}

impl Told {
    /// Tells the log and the application whose page it was.
    pub(super) fn tell(&self, notices: &Notices) {
        let (action, mut notice) = match &self.what {
            What::Raised(alarm) => {
                let fields = alarm.names().join(", ");
                let message = alarm.text();
                tracing::warn!(
                    event = "layout_changed",
                    mapping = alarm.mapping,
                    fields,
                    "{message}"
                );
                ("layout_changed", alarm.notice())
            }
            What::MoreFell(alarm) => {
                let fields = alarm.names().join(", ");
                let message = alarm.text();
                tracing::warn!(
                    event = "layout_alarm_extended",
                    mapping = alarm.mapping,
                    fields,
                    "{message}"
                );
                ("layout_alarm_extended", alarm.notice())
            }
            What::Cleared(alarm) => {
                let why = alarm.cleared_by.as_deref();
                tracing::info!(
                    event = "layout_alarm_cleared",
                    mapping = alarm.mapping,
                    why,
                    "the alarm of a mapping is cleared"
                );
                ("layout_alarm_cleared", alarm.notice())
            }
            What::Warned(warning) => {
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
        notice["action"] = action.into();
        notice["appid"] = self.owner.app_id.as_str().into();
        notice["crawlid"] = self.owner.crawl_id.as_str().into();
        notices.publish(&self.owner.app_id, &notice);
    }
}
