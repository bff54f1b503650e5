//! The trait of all kinds of targets, and the resources that their deliveries share.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::webhook::Webhooks;
use crate::delivery::{Delivery, Publish};
use crate::permissions::Permissions;
use crate::verdict::Verdict;

/// Why a target may not be used: the key of its setting, and the reason.
pub(crate) type TargetRefusal = (&'static str, String);

/// A target of notifications, such as a webhook or a mail address.
#[async_trait]
pub(crate) trait Target: Send + Sync {
    /// Checks that the target may be used: when a watch is added, and again at each delivery.
    fn check(&self, permissions: &Permissions) -> Result<(), TargetRefusal>;

    async fn deliver(&self, means: &Arc<DeliveryResources>, delivery: &Arc<Delivery>) -> Verdict;
}

/// The resources that deliveries share.
pub(crate) struct DeliveryResources {
    pub(crate) permissions: Permissions,
    pub(crate) webhooks: Webhooks,
    pub(crate) publish: Option<Publish>,
}

/// Runs a delivery on a thread that may block.
pub(super) async fn run_blocking(work: impl FnOnce() -> Verdict + Send + 'static) -> Verdict {
    let failed = |_| Verdict::Failed("its thread has failed".into());
    let work = tokio::task::spawn_blocking(work);
    work.await.unwrap_or_else(failed)
}

/// The notification as JSON, with its key and its number in the outbox.
pub(super) fn notification_with_key(delivery: &Delivery) -> Value {
    let mut notification = json!({"key": delivery.key, "number": delivery.id});
    if let (Value::Object(notification), Value::Object(more)) =
        (&mut notification, &delivery.notification)
    {
        notification.extend(more.clone());
    }
    notification
}
