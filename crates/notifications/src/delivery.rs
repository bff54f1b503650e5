//! What is delivered: a notification and its target.

use std::sync::Arc;

use serde_json::Value;
use webfill_api::NotificationTarget;

/// A notification on its way to one target.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// The notification's number in the outbox.
    pub id: i64,
    /// Identifies the notification; the same for each attempt.
    pub key: String,
    pub watch: String,
    pub target: NotificationTarget,
    pub notification: Value,
}

/// Publishes a notification on the firehose, under the application's id.
pub type Publish = Arc<dyn Fn(&str, &Value) + Send + Sync>;
