//! The folder with a process's CURVE keys. ROLE is `dispatcher`, `supervisor` or `client`.
//!
//! | file | content |
//! |---|---|
//! | `ROLE.key` | the secret key; only its owner may read the file, or the group of a file of root |
//! | `ROLE.pub` | the public key |
//! | `allowed` | for a dispatcher: the public keys that may connect, with their roles |
//! | `audit.log` | for a dispatcher: who has changed the list of allowed keys |
//! | `dispatcher.pub` | for supervisors and clients: the key of the dispatcher that they trust |
//!
//! While the dispatcher's key is being replaced, there are two more pairs. First comes `dispatcher-next`, whose public
//! key supervisors and clients trust as well. Then `dispatcher-former` remains until somebody removes it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use webfill_service::Fault;
use webfill_service::private_file::is_open_to_others;
pub use webfill_wire::keys::read_key_file;
use webfill_wire::keys::{
    AllowList, ClientKeys, KeyPair, PublicKey, Role, RotationFiles, SecretKey, ServerKeys,
    TrustedKeys,
};
use webfill_wire::socket::{has_curve, is_local, key_pair_from_secret};

/// The name of the dispatcher's own key files.
pub const DISPATCHER: &str = "dispatcher";

/// The names of the dispatcher's next and former key files.
pub const NEXT: &str = "dispatcher-next";
pub const FORMER: &str = "dispatcher-former";

/// The prefix of the key in the file of a secret key, so that the key is not mistaken for a public one.
pub const SECRET_MARK: &str = "secret ";

#[derive(Debug, Clone)]
pub struct KeyFolder {
    path: PathBuf,
}

impl KeyFolder {
    pub fn new(path: &Path) -> KeyFolder {
        KeyFolder {
            path: path.to_owned(),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn secret_file(&self, owner: &str) -> PathBuf {
        self.path.join(format!("{owner}.key"))
    }

    pub fn public_file(&self, owner: &str) -> PathBuf {
        self.path.join(format!("{owner}.pub"))
    }

    pub fn allow_list_file(&self) -> PathBuf {
        self.path.join("allowed")
    }

    /// The audit log of changes to the allow list.
    pub fn audit_file(&self) -> PathBuf {
        self.path.join("audit.log")
    }

    /// Loads the keys that a dispatcher needs.
    pub fn server_keys(&self) -> Result<ServerKeys, Fault> {
        let own = self.key_pair(DISPATCHER)?;
        let allowed = AllowList::open(&self.allow_list_file()).map_err(Fault::usage)?;
        let of_rotation = [NEXT, FORMER].map(|name| self.public_file(name)).to_vec();
        let of_rotation = RotationFiles::new(of_rotation);
        Ok(ServerKeys {
            own,
            allowed,
            of_rotation,
        })
    }

    /// Loads the keys that a supervisor or a client needs.
    pub fn client_keys(&self, role: Role) -> Result<ClientKeys, Fault> {
        let own = self.key_pair(role.as_str())?;
        let files = [DISPATCHER, NEXT].map(|name| self.public_file(name));
        let server = read_public(&files[0])?;
        // A fault in the next key is logged, and the present key is still used.
        let trusted = TrustedKeys::from_files(server, files.to_vec());
        Ok(ClientKeys { own, trusted })
    }

    /// The key pair with this name. The public key is computed from the secret key.
    pub fn key_pair(&self, owner: &str) -> Result<KeyPair, Fault> {
        require_curve()?;
        let path = self.secret_file(owner);
        let shown = path.display();
        let unreadable = |error| {
            Fault::usage(format!(
                "cannot read the key {shown}: {error}; create one with `webfill keys new {owner}`"
            ))
        };
        let found = fs::metadata(&path).map_err(unreadable)?;
        if is_open_to_others(&found) {
            return Err(Fault::usage(format!(
                "{shown} is readable by others than its owner (mode {:03o}): set it to 0400, and create a new key if others had access to this machine",
                found.mode() & 0o777
            )));
        }
        let text = read_key_file(&path).map_err(unreadable)?;
        let secret = text.trim().strip_prefix(SECRET_MARK);
        let secret = secret
            .and_then(|key| key.trim().parse::<SecretKey>().ok())
            .ok_or_else(|| Fault::usage(format!("{shown} does not hold a secret key")))?;
        key_pair_from_secret(secret).map_err(|error| Fault::usage(format!("{shown}: {error}")))
    }
}

/// Refuses a libzmq that was built without encryption.
pub fn require_curve() -> Result<(), Fault> {
    match has_curve() {
        true => Ok(()),
        false => Err(Fault::usage(
            "cannot use keys: this machine's libzmq was built without CURVE; install one with libsodium, such as Debian's libzmq5",
        )),
    }
}

/// Reads the public key from a file.
pub fn read_public(path: &Path) -> Result<PublicKey, Fault> {
    let shown = path.display();
    let text = read_key_file(path)
        .map_err(|error| Fault::usage(format!("cannot read the public key {shown}: {error}")))?;
    if text.trim_start().starts_with(SECRET_MARK) {
        return Err(Fault::usage(format!(
            "{shown} holds a secret key, which only its owner may have: the public one is in the file that ends in .pub"
        )));
    }
    text.trim()
        .parse()
        .map_err(|error| Fault::usage(format!("{shown} does not hold a public key: {error}")))
}

/// Without keys, refuses an endpoint that other machines can reach.
pub fn check_reach(endpoint: &str, has_keys: bool) -> Result<(), Fault> {
    if has_keys || is_local(endpoint) {
        return Ok(());
    }
    Err(Fault::usage(format!(
        "{endpoint} is on another machine, which needs keys: create them with `webfill keys new` and name their folder with --keys"
    )))
}
