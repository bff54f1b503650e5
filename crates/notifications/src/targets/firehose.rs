//! Publishes notifications on the firehose of a fleet's dispatcher.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::target::{DeliveryResources, Target, TargetRefusal, notification_with_key};
use crate::delivery::Delivery;
use crate::permissions::Permissions;
use crate::verdict::Verdict;

pub(super) struct Firehose;

#[async_trait]
impl Target for Firehose {
    fn check(&self, permissions: &Permissions) -> Result<(), TargetRefusal> {
        match permissions.is_of_fleet() {
            true => Ok(()),
            false => Err((
                "firehose",
                "only the dispatcher of a fleet has one".to_owned(),
            )),
        }
    }

    async fn deliver(&self, means: &Arc<DeliveryResources>, delivery: &Arc<Delivery>) -> Verdict {
        let Some(publish) = &means.publish else {
            return Verdict::Dropped("no firehose".into());
        };
        let app = delivery.notification["app"].as_str().unwrap_or_default();
        let mut notification = json!({
            "action": "watch_notification",
            "appid": app,
            "crawlid": delivery.watch,
        });
        if let (Value::Object(notification), Value::Object(more)) =
            (&mut notification, notification_with_key(delivery))
        {
            notification.extend(more);
        }
        publish(app, &notification);
        Verdict::Delivered
    }
}
