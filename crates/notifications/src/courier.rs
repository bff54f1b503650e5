//! Delivers notifications on a separate thread, many at a time, each within a limited time. The result of each delivery
//! is reported to the caller, which retries failed deliveries.

use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::sync::mpsc;
use webfill_service::Fault;

use crate::delivery::{Delivery, Publish};
use crate::permissions::Permissions;
use crate::targets::{self, DeliveryResources, Webhooks};
use crate::verdict::Verdict;

/// A delivery attempt that has ended, successfully or not.
#[derive(Debug, Clone, PartialEq)]
pub struct DeliveryEnd {
    pub id: i64,
    pub verdict: Verdict,
}

/// The handle of the delivering thread. Dropping it abandons deliveries in progress.
pub struct Courier {
    orders: mpsc::UnboundedSender<Delivery>,
    _thread: JoinHandle<()>,
}

impl Courier {
    /// Starts the delivering thread. `on_end` is called with the result of each delivery.
    pub fn start(
        permissions: Permissions,
        publish: Option<Publish>,
        on_end: impl Fn(DeliveryEnd) + Send + Sync + 'static,
    ) -> Result<Courier, Fault> {
        let cannot = |why: &dyn std::fmt::Display| {
            Fault::error(format!("cannot start the delivery of notifications: {why}"))
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| cannot(&error))?;
        let webhooks = Webhooks::new(&permissions.config, permissions.allows_private_webhooks());
        let means = Arc::new(DeliveryResources {
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
                            let verdict = deliver(&means, delivery).await;
                            on_end(DeliveryEnd { id, verdict });
                        });
                    }
                });
                // Deliveries in progress are abandoned, so that a slow command or server does not delay the end of the
                // thread.
                runtime.shutdown_background();
            })
            .map_err(|error| cannot(&error))?;
        Ok(Courier {
            orders,
            _thread: thread,
        })
    }

    pub fn enqueue(&self, delivery: Delivery) {
        // Sending cannot fail, because the thread runs as long as this handle exists.
        let _ = self.orders.send(delivery);
    }
}

/// Delivers a notification, if the settings still permit its target.
async fn deliver(means: &Arc<DeliveryResources>, delivery: Delivery) -> Verdict {
    let delivery = Arc::new(delivery);
    let target = targets::target_of(&delivery.target);
    match target.check(&means.permissions) {
        Ok(()) => target.deliver(means, &delivery).await,
        Err((_, why)) => Verdict::Failed(why),
    }
}
