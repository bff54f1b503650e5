//! Public keys, secret keys, and pairs of them.

use std::fmt;
use std::str::FromStr;

use super::z85::{self, KEY_BYTES, KeyError};

/// The public key of a process. Other processes recognise the process by it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicKey([u8; KEY_BYTES]);

/// The secret key of a process, which proves its identity.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretKey([u8; KEY_BYTES]);

/// A process's own keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPair {
    pub public: PublicKey,
    pub secret: SecretKey,
}

impl PublicKey {
    pub fn from_bytes(bytes: &[u8]) -> Option<PublicKey> {
        bytes.try_into().ok().map(PublicKey)
    }

    pub fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

impl SecretKey {
    pub fn from_bytes(bytes: [u8; KEY_BYTES]) -> SecretKey {
        SecretKey(bytes)
    }

    pub fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    /// The secret key as text in Z85. Use it only to write the key to its file.
    pub fn to_secret_text(&self) -> String {
        z85::encode(&self.0)
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<PublicKey, KeyError> {
        z85::decode(text).map(PublicKey)
    }
}

impl FromStr for SecretKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<SecretKey, KeyError> {
        z85::decode(text).map(SecretKey)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&z85::encode(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(not shown)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown_by_accident() {
        let secret = SecretKey([7; KEY_BYTES]);
        let keys = KeyPair {
            public: PublicKey([8; KEY_BYTES]),
            secret: secret.clone(),
        };
        let shown = format!("{secret:?} {keys:?}");
        assert!(!shown.contains(&secret.to_secret_text()), "{shown}");
        assert!(!shown.contains("7, 7"), "{shown}");
        let nearly = &secret.to_secret_text()[1..];
        let error = nearly.parse::<SecretKey>().unwrap_err();
        assert!(!format!("{error} {error:?}").contains(&nearly[..5]));
    }
}
