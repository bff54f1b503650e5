//! A delivery: a notification and the target that receives it.

use std::sync::Arc;

use serde_json::Value;
use webfill_api::NotificationTarget;

/// A notification on its way to one target.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// The notification's number in the outbox.
    pub id: i64,
    /// Identifies the notification for receivers; it is the same for each attempt.
    pub key: String,
    pub watch: String,
    pub target: NotificationTarget,
    pub notification: Value,
}

/// A function that publishes a notification on the firehose. Its first argument is the application's id.
pub type Publish = Arc<dyn Fn(&str, &Value) + Send + Sync>;
