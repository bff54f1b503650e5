//! A queue where senders take turns: a busy sender delays only its own messages.

use std::collections::{HashMap, VecDeque};

use webfill_scheduler::requester::Sender;

/// The waiting messages of each sender, oldest first.
#[derive(Debug)]
pub(crate) struct FairQueue<T> {
    by_sender: HashMap<Sender, VecDeque<T>>,
    /// The senders in the order of their turns.
    turns: VecDeque<Sender>,
}

impl<T> Default for FairQueue<T> {
    fn default() -> FairQueue<T> {
        FairQueue {
            by_sender: HashMap::new(),
            turns: VecDeque::new(),
        }
    }
}

impl<T> FairQueue<T> {
    pub(crate) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    pub(crate) fn push(&mut self, sender: Sender, one: T) {
        if let Some(waiting) = self.by_sender.get_mut(&sender) {
            return waiting.push_back(one);
        }
        self.turns.push_back(sender.clone());
        self.by_sender.insert(sender, VecDeque::from([one]));
    }

    /// Takes the oldest message of the sender whose turn it is. Senders for whose message `may_go` returns false are
    /// skipped.
    pub(crate) fn pop_next(&mut self, may_go: impl Fn(&Sender, &T) -> bool) -> Option<(Sender, T)> {
        let place = self.turns.iter().position(|sender| {
            let first = self.by_sender.get(sender).and_then(VecDeque::front);
            first.is_some_and(|first| may_go(sender, first))
        })?;
        let sender = self.turns.remove(place)?;
        let waiting = self.by_sender.get_mut(&sender)?;
        let one = waiting.pop_front()?;
        match waiting.is_empty() {
            true => drop(self.by_sender.remove(&sender)),
            false => self.turns.push_back(sender.clone()),
        }
        Some((sender, one))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sender_has_its_turn_and_its_own_order() {
        let mut queue = FairQueue::default();
        let sender = |name: &str| Sender::Name(name.into());
        for (name, number) in [("a", 1), ("a", 2), ("a", 3), ("b", 4), ("c", 5), ("c", 6)] {
            queue.push(sender(name), number);
        }
        assert_eq!(
            queue.pop_next(|_, number| *number > 1),
            Some((sender("b"), 4))
        );
        let mut order = Vec::new();
        while let Some((_, number)) = queue.pop_next(|_, _| true) {
            order.push(number);
        }
        assert_eq!(order, [1, 5, 2, 6, 3]);
        assert!(queue.is_empty());
    }
}
