//! Random choices that depend only on a seed and on the name of the choice ([`Choices`]). So a choice is the same on
//! all pages, whatever other choices are made before it.

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

    /// The random number for a choice with this name.
    pub(super) fn number(&self, what: &str) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.seed, 0);
        hasher.write(what.as_bytes());
        hasher.finish()
    }

    /// Decides with this probability whether to do something.
    pub(super) fn decide(&self, what: &str, probability: f64) -> bool {
        fastrand::Rng::with_seed(self.number(what)).f64() < probability
    }

    pub(super) fn pick<'a, T>(&self, what: &str, of: &'a [T]) -> &'a T {
        &of[fastrand::Rng::with_seed(self.number(what)).usize(..of.len())]
    }
}
