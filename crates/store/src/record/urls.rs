//! The URLs given with a record. With them, the record can be a seed again.

/// The most URLs of a record, and the longest URL, so that they do not make the record too large to store.
const MAX_URLS: usize = 64;
const MAX_URL_BYTES: usize = 4 << 10;

/// Adds new URLs to a record's own, in order. Returns whether there were any.
pub(super) fn add_urls(own: &mut Vec<String>, urls: &[String]) -> bool {
    let before = own.len();
    for url in urls {
        let is_new = url.len() <= MAX_URL_BYTES && !own.contains(url);
        if is_new && own.len() < MAX_URLS {
            own.push(url.clone());
        }
    }
    own.len() > before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_kept_once_and_their_number_and_length_are_bounded() {
        let mut own = Vec::new();
        let urls = |from: usize, to: usize| -> Vec<String> {
            (from..to)
                .map(|number| format!("https://a.example/{number}"))
                .collect()
        };
        assert!(add_urls(&mut own, &urls(0, 3)));
        assert!(!add_urls(&mut own, &urls(1, 3)));
        assert!(add_urls(&mut own, &urls(2, 4)));
        assert_eq!(own, urls(0, 4));
        assert!(!add_urls(&mut own, &["x".repeat(MAX_URL_BYTES + 1)]));
        add_urls(&mut own, &urls(4, 1_000));
        assert_eq!(own, urls(0, MAX_URLS));
    }
}
