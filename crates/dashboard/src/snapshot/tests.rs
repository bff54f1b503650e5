use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use webfill_api::Refusal;
use webfill_service::http::SharedProtection;

use super::*;
use crate::fleet::Fleet;
use crate::service::{Dashboard, DashboardSetup};

/// A fleet that does not answer at first, like a dispatcher that is still opening its database.
struct Starting {
    is_open: AtomicBool,
}

#[async_trait]
impl Fleet for Starting {
    async fn run_action(&self, _: &Visitor, action: Value) -> Result<Value, Refusal> {
        if !self.is_open.load(Ordering::Relaxed) {
            return Err(Refusal::new("$", "the frontier is being opened"));
        }
        let site = json!({"site": "blocks.example", "state": "backing_off", "reason": "blocked", "queued": 6});
        Ok(match action["action"].as_str() {
            Some("sites") => json!({"sites": [site]}),
            Some("watch_list") => json!({"watches": [{"name": "nightly"}]}),
            _ => json!({"unfinished": []}),
        })
    }

    async fn feed(&self, _: &Visitor, _: Value) -> Result<(), Refusal> {
        Err(Refusal::new("$", "nothing is fed here"))
    }
}

#[tokio::test]
async fn lists_missing_at_the_start_of_a_fleet_are_requested_again_immediately() {
    let fleet = Arc::new(Starting {
        is_open: AtomicBool::new(false),
    });
    let dashboard = Dashboard::new(
        DashboardSetup::default(),
        Some(fleet.clone()),
        SharedProtection::default(),
    )
    .unwrap();
    let early = dashboard.snapshot().await;
    assert!(early.fault.is_some() && early.sites.is_none() && early.watches.is_empty());
    fleet.is_open.store(true, Ordering::Relaxed);
    let soon = dashboard.snapshot().await;
    assert_eq!(
        soon.sites
            .as_ref()
            .map(|sites| sites.by_reason["blocked"].count),
        Some(1)
    );
    assert_eq!(soon.watches.len(), 1);
}
