//! CURVE keys, by which processes on a network authenticate each other.
//!
//! Each such process has a key pair. The dispatcher has an [`AllowList`] of the public keys that it admits. Each entry
//! has a name, a [`Role`], and optionally limited [`Rights`]. Supervisors and clients have the dispatcher's public
//! key, or two of them while it is being replaced ([`TrustedKeys`]), so they cannot be tricked into talking to an
//! impostor. Keys are written in Z85: 40 printable characters for 32 bytes. Secret keys never appear in logs or error
//! messages.

mod allow_list;
mod key_file;
mod list_change;
mod rights;
mod rotation;
mod trusted;
mod z85;

use std::fmt;
use std::str::FromStr;

pub use allow_list::{AllowList, AllowListError, Entry, HEADING, parse};
pub use key_file::read_key_file;
pub use list_change::ListChange;
pub use rights::Rights;
pub use rotation::RotationFiles;
pub use trusted::{TrustedKey, TrustedKeys};

/// The length of a key in bytes.
const KEY_BYTES: usize = 32;

/// The public key of a process, by which others know it.
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

/// The keys of a dispatcher: its own key pair and the admitted public keys.
#[derive(Debug, Clone)]
pub struct ServerKeys {
    pub own: KeyPair,
    pub allowed: AllowList,
    /// The files of the dispatcher's next and former public keys. For a week after one of them appears, callers that
    /// expect another key are assumed not to have the new one yet, and are not treated as strangers.
    pub of_rotation: RotationFiles,
}

/// The keys of a supervisor or client: its own, and the public keys of the dispatcher that it trusts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientKeys {
    pub own: KeyPair,
    pub trusted: TrustedKeys,
}

/// The role of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Takes tasks and reports their outcomes.
    Supervisor,
    /// Submits crawls and requests information about them.
    Client,
}

/// Why a text is not a key. The error does not contain the text, which may be a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("a key has 40 characters, not {found}")]
    Length { found: usize },
    #[error("it has characters that no key has")]
    Characters,
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

    /// The secret in Z85, only for writing it to its file.
    pub fn reveal(&self) -> String {
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

impl Role {
    pub const ALL: [Role; 2] = [Role::Supervisor, Role::Client];

    /// The stable name, as used in the allow-list and in file names.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Supervisor => "supervisor",
            Role::Client => "client",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Role, String> {
        let found = Role::ALL.into_iter().find(|role| role.as_str() == text);
        found.ok_or_else(|| format!("`{text}` is none of supervisor, client"))
    }
}

/// Whether the owner of a key listed as `name` may use the id `id`. The id must be that name, or `NAME:ANYTHING` if
/// several processes share the key. Names have no colon, so no owner can use an id that belongs to another key.
pub fn may_be_called(name: &str, id: &str) -> bool {
    match id.strip_prefix(name) {
        Some(rest) => rest.is_empty() || rest.starts_with(':'),
        None => false,
    }
}

/// Whether a key may be listed under this name.
pub fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    (1..=64).contains(&name.len()) && name.chars().all(allowed)
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
        assert!(!shown.contains(&secret.reveal()), "{shown}");
        assert!(!shown.contains("7, 7"), "{shown}");
        let nearly = &secret.reveal()[1..];
        let error = nearly.parse::<SecretKey>().unwrap_err();
        assert!(!format!("{error} {error:?}").contains(&nearly[..5]));
    }

    #[test]
    fn an_id_must_belong_to_the_name_of_the_key() {
        assert!(may_be_called("vm-01", "vm-01"));
        assert!(may_be_called("swarm", "swarm:i-0abc"));
        for id in ["vm-02", "vm-011", "vm-01.x", "vm-0", "", ":", "x:vm-01"] {
            assert!(!may_be_called("vm-01", id), "{id}");
        }
        assert!(is_name("vm-01.example.org") && is_name(&"x".repeat(64)));
        for name in ["", "a b", "a:b", "ä", "a\n", &"x".repeat(65)] {
            assert!(!is_name(name), "{name}");
        }
    }
}
