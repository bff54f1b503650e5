//! The kinds of notification targets: what each may use, and how it is delivered to. `webfill_api` has their keys, and
//! how they are shown.

mod command;
mod file;
mod firehose;
mod mail;
mod webhook;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use webfill_api::NotificationTarget;

pub(crate) use self::webhook::Webhooks;
use crate::courier::{Delivery, Publish};
use crate::permissions::Permissions;
use crate::verdict::Verdict;

/// Why a target may not be used: the key at fault, and the reason.
pub(crate) type Denied = (&'static str, String);

/// A target of some kind.
#[async_trait]
pub(crate) trait Target: Send + Sync {
    /// Checks that the target may be used: when a watch is added, and again at each delivery.
    fn check(&self, permissions: &Permissions) -> Result<(), Denied>;

    async fn deliver(&self, means: &Arc<Means>, delivery: &Arc<Delivery>) -> Verdict;
}

pub(crate) fn of(target: &NotificationTarget) -> Box<dyn Target + '_> {
    match target {
        NotificationTarget::Webhook { url, secret_file } => Box::new(webhook::Webhook {
            url,
            secret_file: secret_file.as_deref(),
        }),
        NotificationTarget::Mail(address) => Box::new(mail::Mail(address)),
        NotificationTarget::Command(argv) => Box::new(command::Command(argv)),
        NotificationTarget::File(path) => Box::new(file::File(path)),
        NotificationTarget::Firehose => Box::new(firehose::Firehose),
    }
}

/// The resources that deliveries share.
pub(crate) struct Means {
    pub(crate) permissions: Permissions,
    pub(crate) webhooks: Webhooks,
    pub(crate) publish: Option<Publish>,
}

/// Runs a delivery on a thread that may block.
async fn blocking(work: impl FnOnce() -> Verdict + Send + 'static) -> Verdict {
    let failed = |_| Verdict::Failed("its thread has failed".into());
    let work = tokio::task::spawn_blocking(work);
    work.await.unwrap_or_else(failed)
}

/// The notification with its key and its number in the outbox added.
fn keyed(delivery: &Delivery) -> Value {
    let mut notification = json!({"key": delivery.key, "number": delivery.id});
    if let (Value::Object(notification), Value::Object(more)) =
        (&mut notification, &delivery.notification)
    {
        notification.extend(more.clone());
    }
    notification
}
