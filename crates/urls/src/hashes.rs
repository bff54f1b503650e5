//! Hashes of URLs and bodies. The algorithms are published standards, so that
//! hashes are the same on all machines and in all versions, and other programs
//! can compute them.

use sha2::{Digest, Sha256};
use twox_hash::XxHash3_128;

/// The hash in a page's key: the first 128 bits of the SHA-256 of its canonical URL, as 32 lower-case hex digits
/// (`printf %s URL | sha256sum | head -c 32`).
///
/// The hash is cryptographic because sites choose their own URLs. With a weaker one, a site could craft links whose
/// pages overwrite each other, or overwrite the pages of another site.
pub fn page_hash(url: &str) -> String {
    let digest = Sha256::digest(url.as_bytes());
    let (hash, _) = digest.split_at(16);
    hex(hash.try_into().expect("SHA-256 has more than 16 bytes"))
}

/// The hash that shows whether a page has changed: the XXH3 (128 bits) of its body, as 32 lower-case hex digits
/// (`xxhsum -H2`). A fast hash, because bodies are long. It need not be cryptographic: a site that makes two bodies
/// with the same hash harms only itself.
pub fn content_hash(body: &[u8]) -> String {
    hex(XxHash3_128::oneshot(body).to_be_bytes())
}

/// The hash of a sequence of texts: `before` is the hash of all earlier texts, `content` the last text.
pub fn chained_hash(before: u64, content: &[u8]) -> u64 {
    XxHash3_128::oneshot_with_seed(before, content) as u64
}

fn hex(bytes: [u8; 16]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(32);
    for byte in bytes {
        text.push(DIGITS[usize::from(byte >> 4)] as char);
        text.push(DIGITS[usize::from(byte & 15)] as char);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_hash_is_the_beginning_of_that_of_sha256sum() {
        assert_eq!(
            page_hash("https://example.com/"),
            "0f115db062b7c0dd030b16878c99dea5"
        );
    }

    #[test]
    fn the_content_hash_is_that_of_xxhsum() {
        assert_eq!(content_hash(b""), "99aa06d3014798d86001c324468d497f");
        assert_ne!(content_hash(b"old"), content_hash(b"new"));
    }
}
