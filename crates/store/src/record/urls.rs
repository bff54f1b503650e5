//! The URLs given with a record. With them, the record can be a seed again.

use super::StoredRecord;

/// The most URLs of a record, and the longest URL, so that they do not make the record too large to store.
const MAX_URLS: usize = 64;
const MAX_URL_BYTES: usize = 4 << 10;

impl StoredRecord {
    /// Adds new URLs, in order. Returns whether there were any.
    pub(super) fn add_urls(&mut self, urls: &[String]) -> bool {
        let before = self.urls.len();
        for url in urls {
            let is_new = url.len() <= MAX_URL_BYTES && !self.urls.contains(url);
            if is_new && self.urls.len() < MAX_URLS {
                self.urls.push(url.clone());
            }
        }
        self.urls.len() > before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_kept_once_and_their_number_and_length_are_bounded() {
        let mut record = StoredRecord::default();
        let urls = |from: usize, to: usize| -> Vec<String> {
            (from..to)
                .map(|number| format!("https://a.example/{number}"))
                .collect()
        };
        assert!(record.add_urls(&urls(0, 3)));
        assert!(!record.add_urls(&urls(1, 3)));
        assert!(record.add_urls(&urls(2, 4)));
        assert_eq!(record.urls, urls(0, 4));
        assert!(!record.add_urls(&["x".repeat(MAX_URL_BYTES + 1)]));
        record.add_urls(&urls(4, 1_000));
        assert_eq!(record.urls, urls(0, MAX_URLS));
    }
}
