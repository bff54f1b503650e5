//! CURVE keys, which processes on a network use to authenticate each other.
//!
//! Each such process has a key pair. The dispatcher has an [`AllowList`] of the public keys that it admits. Each entry
//! has a name, a [`Role`], and optionally limited [`Rights`]. Supervisors and clients have the dispatcher's public
//! key, or two of them while it is being replaced ([`TrustedKeys`]), so they cannot be tricked into talking to an
//! impostor. Keys are written in Z85: 40 printable characters for 32 bytes. Secret keys never appear in logs or error
//! messages.

mod allow_list;
mod key;
mod key_file;
mod list_change;
mod rights;
mod role;
mod rotation;
mod trusted;
mod z85;

pub use allow_list::{AllowList, AllowListError, Entry, HEADING, parse};
pub use key::{KeyPair, PublicKey, SecretKey};
pub use key_file::read_key_file;
pub use list_change::ListChange;
pub use rights::Rights;
pub use role::{Role, is_valid_name, may_use_id};
pub use rotation::RotationFiles;
pub use trusted::{TrustedKey, TrustedKeys};
pub use z85::KeyError;

/// The keys of a dispatcher: its own key pair, and the public keys that it admits.
#[derive(Debug, Clone)]
pub struct ServerKeys {
    pub own: KeyPair,
    pub allowed: AllowList,
    /// The files of the dispatcher's next and former public keys. For a week after one of them appears, callers that
    /// expect another key are assumed not to have the new one yet, and are not treated as strangers.
    pub of_rotation: RotationFiles,
}

/// The keys of a supervisor or client: its own key pair, and the public keys of the dispatcher that it trusts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientKeys {
    pub own: KeyPair,
    pub trusted: TrustedKeys,
}
