//! What is told once on the page that follows an action: kept here under a random name that the address of that page
//! carries, so that nobody can have the dashboard say anything by a link.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::secrets::new_secret;

/// At most this many wait to be told; the oldest are dropped.
const MOST: usize = 200;

/// What has become of an action.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Message {
    pub(crate) is_fault: bool,
    pub(crate) text: String,
}

#[derive(Debug, Default)]
pub(crate) struct Told(Mutex<VecDeque<(String, Message)>>);

impl Told {
    /// Keeps a message; returns its name.
    pub(crate) fn keep(&self, message: Message) -> String {
        // Without random bytes nothing is told, which harms nobody.
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
    fn a_message_is_told_once_and_few_wait() {
        let told = Told::default();
        let message = |text: &str| Message {
            is_fault: false,
            text: text.to_owned(),
        };
        let first = told.keep(message("first"));
        assert_eq!(told.take(&first), Some(message("first")));
        assert_eq!(told.take(&first), None);
        let dropped = told.keep(message("dropped"));
        for _ in 0..MOST {
            told.keep(message("later"));
        }
        assert_eq!(told.take(&dropped), None);
    }
}
