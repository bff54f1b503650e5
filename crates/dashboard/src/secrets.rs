//! Unguessable random names, and values derived from them.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};

use sha2::{Digest, Sha256};

/// How many random bytes a secret has.
const BYTES: usize = 32;

/// A new random secret in hexadecimal digits.
pub(crate) fn new_secret() -> io::Result<String> {
    let mut bytes = [0; BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(hex(&bytes))
}

/// Derives a value from a text, which is possible only with the secret. All secrets have the same length, so two
/// different pairs of secret and text are never hashed as the same bytes.
pub(crate) fn derive(secret: &str, text: &str) -> String {
    let mut digest = Sha256::new();
    digest.update(secret.as_bytes());
    digest.update(text.as_bytes());
    hex(&digest.finalize())
}

/// Compares two texts in a time that does not reveal where they differ.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    let digests = [one, other].map(|text| Sha256::digest(text.as_bytes()));
    let pairs = digests[0].iter().zip(digests[1].iter());
    std::hint::black_box(pairs.fold(0, |differ, (a, b)| differ | (a ^ b))) == 0
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_differ_and_so_do_values_derived_from_them() {
        let [one, other] = [new_secret().unwrap(), new_secret().unwrap()];
        assert_eq!(one.len(), 2 * BYTES);
        assert_ne!(one, other);
        assert_eq!(derive(&one, "a"), derive(&one, "a"));
        assert_ne!(derive(&one, "a"), derive(&one, "b"));
        assert_ne!(derive(&one, "a"), derive(&other, "a"));
        assert!(is_same(&one, &one.clone()) && !is_same(&one, &other) && !is_same(&one, ""));
    }
}
