//! Passes notifications of watches to the thread that delivers them.

use std::sync::Arc;

use webfill_followers::NotificationPublisher;
use webfill_notifications::{Courier, Delivery, DeliveryEnd};
use webfill_service::Fault;

use crate::feeders::FeederSetup;

/// The handle of the thread that delivers notifications; `None` if this dispatcher has no watches.
pub(crate) struct Deliveries(Option<Courier>);

impl Deliveries {
    pub(crate) fn start(
        setup: Option<&FeederSetup>,
        notifications: NotificationPublisher,
        on_end: impl Fn(DeliveryEnd) + Send + Sync + 'static,
    ) -> Result<Deliveries, Fault> {
        let courier = setup.map(|feeders| {
            let publish =
                move |app: &str, notification: &_| notifications.publish(app, notification);
            Courier::start(
                feeders.notifications.clone(),
                Some(Arc::new(publish)),
                on_end,
            )
        });
        courier.transpose().map(Deliveries)
    }

    /// Passes notifications that are committed to the thread that delivers them.
    pub(crate) fn deliver(&self, deliveries: Vec<Delivery>) {
        if let Some(courier) = &self.0 {
            let deliveries = deliveries.into_iter();
            deliveries.for_each(|delivery| courier.enqueue(delivery));
        }
    }
}
