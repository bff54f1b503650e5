//! Delivers notifications, on a thread of its own: many at a time, each within a limited time. The result of each is
//! reported to the caller, which retries failed ones.

use std::sync::Arc;
use std::thread::JoinHandle;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use webfill_api::NotificationTarget;
use webfill_service::Fault;

use crate::command::{self, Call};
use crate::permissions::Permissions;
use crate::verdict::Verdict;
use crate::webhook::{Post, Webhooks};
use crate::{file, mail, sign};

/// A notification on its way to one target.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// Its number in the outbox.
    pub id: i64,
    /// The same for each attempt.
    pub key: String,
    pub watch: String,
    pub target: NotificationTarget,
    pub notification: Value,
}

/// A delivery attempt that has ended, successfully or not.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    pub id: i64,
    pub verdict: Verdict,
}

/// Publishes a notification of an application on the firehose.
pub type Publish = Arc<dyn Fn(&str, &Value) + Send + Sync>;

/// The handle of the thread. Dropping it abandons deliveries in progress.
pub struct Courier {
    orders: mpsc::UnboundedSender<Delivery>,
    _thread: JoinHandle<()>,
}

impl Courier {
    /// Starts the thread.
    pub fn start(
        permissions: Permissions,
        publish: Option<Publish>,
        on_end: impl Fn(Ended) + Send + Sync + 'static,
    ) -> Result<Courier, Fault> {
        let cannot = |why: &dyn std::fmt::Display| {
            Fault::error(format!("cannot start the delivery of notifications: {why}"))
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| cannot(&error))?;
        let webhooks = Webhooks::new(&permissions.config, permissions.may_be_private());
        let means = Arc::new(Means {
            webhooks: webhooks.map_err(Fault::usage)?,
            permissions,
            publish,
        });
        let on_end = Arc::new(on_end);
        let (orders, mut ordered) = mpsc::unbounded_channel::<Delivery>();
        let thread = std::thread::Builder::new()
            .name("notifications".into())
            .spawn(move || {
                runtime.block_on(async {
                    while let Some(delivery) = ordered.recv().await {
                        let (means, on_end) = (Arc::clone(&means), Arc::clone(&on_end));
                        tokio::spawn(async move {
                            let id = delivery.id;
                            let verdict = means.deliver(delivery).await;
                            on_end(Ended { id, verdict });
                        });
                    }
                });
                // A command or a server that is slow must not delay the end.
                runtime.shutdown_background();
            })
            .map_err(|error| cannot(&error))?;
        Ok(Courier {
            orders,
            _thread: thread,
        })
    }

    pub fn deliver(&self, delivery: Delivery) {
        // The thread lives as long as the handle.
        let _ = self.orders.send(delivery);
    }
}

/// The resources for deliveries.
struct Means {
    permissions: Permissions,
    webhooks: Webhooks,
    publish: Option<Publish>,
}

impl Means {
    async fn deliver(self: Arc<Self>, delivery: Delivery) -> Verdict {
        if let Err((_, why)) = self.permissions.judge(&delivery.target) {
            return Verdict::Failed(why);
        }
        match delivery.target {
            NotificationTarget::Webhook { .. } => self.post(&delivery).await,
            NotificationTarget::Firehose => self.publish(&delivery),
            NotificationTarget::Mail(_)
            | NotificationTarget::Command(_)
            | NotificationTarget::File(_) => {
                let blocking =
                    tokio::task::spawn_blocking(move || self.deliver_blocking(&delivery));
                let failed = |_| Verdict::Failed("its thread has failed".into());
                blocking.await.unwrap_or_else(failed)
            }
        }
    }

    async fn post(&self, delivery: &Delivery) -> Verdict {
        let NotificationTarget::Webhook { url, secret_file } = &delivery.target else {
            return Verdict::Dropped("it is no webhook".into());
        };
        let body = keyed(delivery).to_string().into_bytes();
        let secret = secret_file
            .as_deref()
            .map(|file| self.permissions.secret(url, file));
        let signature = match secret.transpose() {
            Ok(secret) => secret.map(|secret| sign(&secret, now_s(), &body)),
            Err(why) => return Verdict::Failed(why),
        };
        let post = Post {
            url,
            key: &delivery.key,
            signature,
            body,
        };
        self.webhooks.post(post).await
    }

    fn publish(&self, delivery: &Delivery) -> Verdict {
        let Some(publish) = &self.publish else {
            return Verdict::Dropped("there is no firehose".into());
        };
        let app = delivery.notification["app"].as_str().unwrap_or_default();
        let mut notification = json!({
            "action": "watch_notification",
            "appid": app,
            "crawlid": delivery.watch,
        });
        if let (Value::Object(notification), Value::Object(more)) =
            (&mut notification, keyed(delivery))
        {
            notification.extend(more);
        }
        publish(app, &notification);
        Verdict::Delivered
    }

    fn deliver_blocking(&self, delivery: &Delivery) -> Verdict {
        match &delivery.target {
            NotificationTarget::Mail(address) => mail::send(
                &self.permissions.config,
                address,
                &delivery.key,
                &delivery.notification,
            ),
            NotificationTarget::Command(argv) => {
                let call = Call {
                    argv,
                    key: &delivery.key,
                    watch: &delivery.watch,
                    input: keyed(delivery).to_string().into_bytes(),
                };
                command::run(call, command::TIMEOUT)
            }
            NotificationTarget::File(path) => {
                let opened = self.permissions.open_to_append(path);
                let appended = opened.and_then(|opened| {
                    let appended = file::append_line(opened, &keyed(delivery));
                    appended.map_err(|error| format!("cannot append to {path}: {error}"))
                });
                appended.map_or_else(Verdict::Failed, |()| Verdict::Delivered)
            }
            NotificationTarget::Webhook { .. } | NotificationTarget::Firehose => {
                Verdict::Dropped("it is delivered elsewhere".into())
            }
        }
    }
}

/// The notification with its key, and its number in the outbox.
fn keyed(delivery: &Delivery) -> Value {
    let mut notification = json!({"key": delivery.key, "number": delivery.id});
    if let (Value::Object(notification), Value::Object(more)) =
        (&mut notification, &delivery.notification)
    {
        notification.extend(more.clone());
    }
    notification
}

fn now_s() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |passed| passed.as_secs() as i64)
}
