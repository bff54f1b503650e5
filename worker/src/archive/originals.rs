//! Recently archived records. A repeated payload or an unchanged page refers to its earlier record instead of being
//! stored again.
//!
//! This memory is bounded and per process: a forgotten payload is archived again.

use std::collections::HashMap;

use super::record::{RecordId, Sha1Digest};

/// How many entries a generation holds. There are two generations: when the younger one is full, the older one is
/// forgotten.
const MOST_ENTRIES: usize = 8_192;
const MOST_URL_BYTES: usize = 2 << 20;

/// A record with a payload.
#[derive(Debug, Clone)]
pub struct Original {
    pub id: RecordId,
    pub url: String,
    pub started_ms: i64,
    pub digest: Sha1Digest,
}

#[derive(Debug, Default)]
struct Generation {
    by_digest: HashMap<Sha1Digest, Original>,
    by_url: HashMap<String, Sha1Digest>,
    url_bytes: usize,
}

impl Generation {
    fn is_full(&self) -> bool {
        let entries = self.by_digest.len().max(self.by_url.len());
        entries >= MOST_ENTRIES || self.url_bytes >= MOST_URL_BYTES
    }
}

#[derive(Debug, Default)]
pub struct Originals {
    young: Generation,
    old: Generation,
}

impl Originals {
    /// The record that was archived with this payload.
    pub fn find_by_payload(&self, digest: &Sha1Digest) -> Option<&Original> {
        self.generations()
            .find_map(|generation| generation.by_digest.get(digest))
    }

    /// The record with a URL's latest payload.
    pub fn find_by_url(&self, url: &str) -> Option<&Original> {
        let digest = self
            .generations()
            .find_map(|generation| generation.by_url.get(url))?;
        self.find_by_payload(digest)
    }

    /// Remembers a record with a payload.
    pub fn add(&mut self, original: Original) {
        self.note_url(original.url.clone(), original.digest);
        self.young.url_bytes += original.url.len();
        self.young.by_digest.insert(original.digest, original);
    }

    /// Notes that the URL now has this payload, which is already known.
    pub fn note_url(&mut self, url: String, digest: Sha1Digest) {
        if self.young.is_full() {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.url_bytes += url.len();
        self.young.by_url.insert(url, digest);
    }

    fn generations(&self) -> impl Iterator<Item = &Generation> {
        [&self.young, &self.old].into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn original(number: usize, url: String) -> Original {
        Original {
            id: RecordId::random(),
            url,
            started_ms: 0,
            digest: Sha1Digest::from_parts(&[&number.to_le_bytes()]),
        }
    }

    #[test]
    fn payloads_are_found_by_their_digest_and_by_the_url_that_had_them_last() {
        let mut originals = Originals::default();
        let (first, second) = (original(1, "a".into()), original(2, "a".into()));
        originals.add(first.clone());
        originals.add(second.clone());
        assert_eq!(
            originals.find_by_payload(&first.digest).unwrap().id,
            first.id
        );
        assert_eq!(originals.find_by_url("a").unwrap().id, second.id);
        originals.note_url("b".into(), first.digest);
        assert_eq!(originals.find_by_url("b").unwrap().id, first.id);
        assert!(originals.find_by_url("c").is_none());
    }

    #[test]
    fn the_memory_is_bounded_and_forgets_the_oldest() {
        let mut originals = Originals::default();
        let last = 5 * MOST_ENTRIES;
        for number in 0..=last {
            originals.add(original(number, format!("http://a.org/{number}")));
        }
        assert!(originals.find_by_url("http://a.org/0").is_none());
        assert!(
            originals
                .find_by_url(&format!("http://a.org/{last}"))
                .is_some()
        );
        let kept = originals.young.by_url.len() + originals.old.by_url.len();
        assert!(kept <= 2 * MOST_ENTRIES, "{kept}");
        for number in 0..=last {
            originals.add(original(number, "http://a.org/changes".into()));
        }
        let kept = originals.young.by_digest.len() + originals.old.by_digest.len();
        assert!(kept <= 2 * MOST_ENTRIES, "{kept}");
        for number in 0..100 {
            originals.add(original(last + number, "x".repeat(100_000)));
        }
        assert!(originals.old.url_bytes <= MOST_URL_BYTES + 200_000);
    }
}
