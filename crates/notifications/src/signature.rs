//! Signs webhook posts, so that receivers can check their origin.

use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The value of the header `Webfill-Signature`: `t` is the time in seconds since the epoch, and `v1` the
/// HMAC-SHA256 of `t`, a dot, and the body.
pub fn sign(secret: &[u8], at_s: i64, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("keys of all lengths are accepted");
    mac.update(format!("{at_s}.").as_bytes());
    mac.update(body);
    let digest = HEXLOWER.encode(&mac.finalize().into_bytes());
    format!("t={at_s},v1={digest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expects the output of `printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac secret`.
    #[test]
    fn the_signature_equals_that_of_other_programs() {
        let signed = sign(b"secret", 1_700_000_000, br#"{"a":1}"#);
        assert_eq!(
            signed,
            concat!(
                "t=1700000000,v1=",
                "49f24e537407743fa4a0242bb63b94b9a47ee99cbbe071ccd8a22550ae411686"
            )
        );
    }
}
