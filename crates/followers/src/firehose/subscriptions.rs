//! The topics of the firehose that have subscribers.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError, RwLock};

use webfill_wire::socket::Subscription;

/// The most topics that are kept. Further subscriptions are only counted, and while there are any, every topic counts
/// as having a subscriber.
const MOST_NOTED: usize = 10_000;

/// The subscriptions, shared by the socket thread, which applies them, and the threads that publish.
#[derive(Debug, Clone, Default)]
pub struct Subscriptions {
    topics: Arc<RwLock<Topics>>,
}

#[derive(Debug, Default)]
struct Topics {
    /// The topic prefixes that are subscribed to.
    noted: HashSet<Vec<u8>>,
    /// How many further prefixes are subscribed to.
    further: usize,
}

impl Subscriptions {
    /// Applies a subscription frame that arrived on the publishing socket.
    pub fn apply_frame(&self, frame: &[u8]) {
        let mut topics = self.topics.write().unwrap_or_else(PoisonError::into_inner);
        match Subscription::parse(frame) {
            Some(Subscription::Wanted(_)) if topics.noted.len() >= MOST_NOTED => {
                topics.further += 1;
            }
            Some(Subscription::Wanted(topic)) => {
                topics.noted.insert(topic.to_owned());
            }
            Some(Subscription::Unwanted(topic)) => {
                let was_noted = topics.noted.remove(topic);
                topics.further = topics.further.saturating_sub(usize::from(!was_noted));
            }
            Some(Subscription::AllGone) => *topics = Topics::default(),
            // Other messages of subscribers have no meaning.
            None => {}
        }
    }

    /// Whether a message under this topic has a subscriber.
    pub fn has_subscriber(&self, topic: &str) -> bool {
        let topics = self.topics.read().unwrap_or_else(PoisonError::into_inner);
        if topics.noted.is_empty() {
            return topics.further > 0;
        }
        let topic = topic.as_bytes();
        topics.further > 0 || (0..=topic.len()).any(|end| topics.noted.contains(&topic[..end]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subscribe_message(topic: &str) -> Vec<u8> {
        [b"\x01", topic.as_bytes()].concat()
    }

    fn unsubscribe_message(topic: &str) -> Vec<u8> {
        [b"\x00", topic.as_bytes()].concat()
    }

    #[test]
    fn a_subscription_covers_all_topics_with_its_prefix() {
        let subscriptions = Subscriptions::default();
        assert!(!subscriptions.has_subscriber("crawled.a"));
        subscriptions.apply_frame(&subscribe_message("crawled.a"));
        assert!(subscriptions.has_subscriber("crawled.a"));
        assert!(
            subscriptions.has_subscriber("crawled.ab"),
            "as libzmq has it"
        );
        assert!(!subscriptions.has_subscriber("crawled.b"));
        assert!(!subscriptions.has_subscriber("outbound.a"));
        subscriptions.apply_frame(&subscribe_message(""));
        assert!(subscriptions.has_subscriber("outbound.b"));
        subscriptions.apply_frame(&unsubscribe_message(""));
        assert!(!subscriptions.has_subscriber("outbound.b"));
        subscriptions.apply_frame(b"");
        assert!(
            !subscriptions.has_subscriber("crawled.a"),
            "all were cut off"
        );
    }

    #[test]
    fn other_frames_change_nothing() {
        let subscriptions = Subscriptions::default();
        subscriptions.apply_frame(&unsubscribe_message("crawled.a"));
        subscriptions.apply_frame(&[7, 7, 7]);
        assert!(!subscriptions.has_subscriber("crawled.a"));
    }

    #[test]
    fn any_number_of_topics_takes_bounded_memory() {
        let subscriptions = Subscriptions::default();
        let topics = 0..MOST_NOTED + 100;
        let name = |number: usize| format!("crawled.{number}.");
        topics
            .clone()
            .for_each(|number| subscriptions.apply_frame(&subscribe_message(&name(number))));
        let noted = subscriptions.topics.read().unwrap().noted.len();
        assert_eq!(noted, MOST_NOTED);
        assert!(
            subscriptions.has_subscriber("crawled.of somebody"),
            "unknown is yes"
        );
        topics.for_each(|number| subscriptions.apply_frame(&unsubscribe_message(&name(number))));
        assert!(!subscriptions.has_subscriber(&name(1)));
        assert!(!subscriptions.has_subscriber("crawled.of somebody"));
    }
}
