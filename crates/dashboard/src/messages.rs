//! Messages shown once, on the page after an action. The address of that page has only a random name, and the text is
//! stored here. So a link cannot make the dashboard show a foreign text.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::secrets::new_secret;

/// How many messages may wait to be shown. Beyond that, the oldest are dropped.
const MOST: usize = 200;

/// A message to a visitor about the result of an action.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Message {
    pub(crate) is_fault: bool,
    pub(crate) text: String,
}

#[derive(Debug, Default)]
pub(crate) struct Messages(Mutex<VecDeque<(String, Message)>>);

impl Messages {
    /// Stores a message until it is shown. Returns the random name to find it by.
    pub(crate) fn store(&self, message: Message) -> String {
        // Without random bytes, the message gets no name and is never shown, which is harmless.
        let name = new_secret().unwrap_or_default();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MOST {
            kept.pop_front();
        }
        kept.push_back((name.clone(), message));
        name
    }

    pub(crate) fn take(&self, name: &str) -> Option<Message> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = kept.iter().position(|(known, _)| known == name)?;
        kept.remove(place).map(|(_, message)| message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_shown_once_and_few_are_kept() {
        let messages = Messages::default();
        let message = |text: &str| Message {
            is_fault: false,
            text: text.to_owned(),
        };
        let first = messages.store(message("first"));
        assert_eq!(messages.take(&first), Some(message("first")));
        assert_eq!(messages.take(&first), None);
        let dropped = messages.store(message("dropped"));
        for _ in 0..MOST {
            messages.store(message("later"));
        }
        assert_eq!(messages.take(&dropped), None);
    }
}
