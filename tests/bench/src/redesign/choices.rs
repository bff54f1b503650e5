//! Random choices that depend only on the seed and on the question ([`Choices`]). So it does not matter how often, in
//! which order or on which page a question is asked.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;

#[derive(Debug, Clone)]
pub(super) struct Choices {
    seed: u64,
}

impl Choices {
    pub(super) fn new(seed: u64) -> Choices {
        Choices { seed }
    }

    /// A random number for a question.
    pub(super) fn number(&self, what: &str) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.seed, 0);
        hasher.write(what.as_bytes());
        hasher.finish()
    }

    /// Whether to do something with this probability.
    pub(super) fn decide(&self, what: &str, probability: f64) -> bool {
        fastrand::Rng::with_seed(self.number(what)).f64() < probability
    }

    pub(super) fn pick<'a, T>(&self, what: &str, of: &'a [T]) -> &'a T {
        &of[fastrand::Rng::with_seed(self.number(what)).usize(..of.len())]
    }
}
