//! Starts the threads that work beside the loop: those that read the store for changes, and the one that delivers
//! notifications.

use std::sync::{Arc, mpsc};

use webfill_followers::{ChangeReader, ContentChanges, ExtractionHealth, Firehose, Subscriptions};
use webfill_service::Fault;
use webfill_wire::socket::Outbox;

use super::events::{Event, event_sender};
use super::sockets::FIREHOSE;
use crate::config::DispatcherSetup;
use crate::delivery::Deliveries;

/// The handles of the threads that read the store for changes, and of the one that delivers notifications.
pub(super) struct Followers {
    pub(super) firehose: Firehose,
    pub(super) extraction_health: ExtractionHealth,
    pub(super) content_changes: ContentChanges,
    /// Reads changes of pages; used only by watches.
    pub(super) change_reader: Option<ChangeReader>,
    pub(super) deliveries: Deliveries,
}

impl Followers {
    pub(super) fn start(
        setup: &DispatcherSetup,
        events: &mpsc::Sender<Event>,
        outbox: Outbox,
        subscriptions: Subscriptions,
    ) -> Result<Followers, Fault> {
        let store = || setup.store.clone();
        let publish = move |topic: &str, message| {
            outbox.publish(FIREHOSE, topic.as_bytes().to_owned(), message);
        };
        let firehose = Firehose::start(store(), subscriptions, Arc::new(publish))?;
        let mapping_version = setup.mapping_rules.order().0;
        let change_reader = setup
            .feeders
            .as_ref()
            .map(|_| ChangeReader::start(store(), event_sender(events, Event::Changes)));
        Ok(Followers {
            extraction_health: ExtractionHealth::start(
                store(),
                firehose.notifications(),
                mapping_version,
            )?,
            content_changes: ContentChanges::start(
                store(),
                firehose.notifications(),
                Box::new(event_sender(events, Event::PageChecks)),
            )?,
            change_reader: change_reader.transpose()?,
            deliveries: Deliveries::start(
                setup.feeders.as_ref(),
                firehose.notifications(),
                event_sender(events, Event::Delivery),
            )?,
            firehose,
        })
    }
}
