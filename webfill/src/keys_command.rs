//! `webfill keys`: creates keys, and edits a dispatcher's list of allowed keys. A running dispatcher applies a changed
//! list immediately. The folder's audit log records who changed it.

mod rotation;
mod writing;

use std::fs::{self, DirBuilder, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};
use webfill_service::{ExitStatus, Fault};
use webfill_wire::keys::{Entry, HEADING, KeyPair, PublicKey, Rights, Role, is_valid_name, parse};
use webfill_wire::socket::new_key_pair;

use self::writing::{append_to_audit_log, cannot_write, create_new_file, exists_fault};
use crate::keys::{DISPATCHER, KeyFolder, SECRET_MARK, read_public, require_curve};
use crate::stdout::print;

#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Create a key pair; the public key is printed, the secret one stays in its file
    New {
        /// Role that the keys are for
        #[arg(value_enum)]
        owner: Owner,
        #[command(flatten)]
        folder: FolderOption,
        /// Public key of the dispatcher to trust, or a file with it
        #[arg(long, value_name = "KEY|FILE", allow_hyphen_values = true)]
        dispatcher_key: Option<String>,
        /// Create the dispatcher's next key, to be activated by `webfill keys rotate`
        #[arg(long)]
        next: bool,
    },
    /// Replace the dispatcher's key with its next one
    Rotate {
        #[command(flatten)]
        folder: FolderOption,
    },
    /// Add a key to the allow list
    Add {
        /// Role of the key
        #[arg(value_parser = parse_role, value_name = "supervisor|client")]
        role: Role,
        /// Name of the key; a supervisor's --id must be this name, or NAME:ANYTHING
        #[arg(value_parser = parse_name)]
        name: String,
        /// Public key, or a file with it
        #[arg(value_name = "KEY|FILE", allow_hyphen_values = true)]
        key: String,
        /// Restrict a client to these applications
        #[arg(long, value_name = "ID", value_delimiter = ',')]
        apps: Vec<String>,
        /// Restrict a client to reading
        #[arg(long)]
        read_only: bool,
        #[command(flatten)]
        folder: FolderOption,
    },
    /// Revoke a key; its owner is disconnected at its next message
    Revoke {
        /// Name of the key, or the public key
        #[arg(value_name = "NAME|KEY", allow_hyphen_values = true)]
        key: String,
        #[command(flatten)]
        folder: FolderOption,
    },
    /// List the allowed keys: role, name, public key, and restrictions of clients
    List {
        #[command(flatten)]
        folder: FolderOption,
    },
}

#[derive(Debug, Args)]
pub struct FolderOption {
    /// Folder of keys
    #[arg(long, value_name = "DIR", default_value = "keys", env = "WEBFILL_KEYS")]
    keys: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Owner {
    Dispatcher,
    Supervisor,
    Client,
}

pub fn run(command: KeysCommand) -> Result<ExitStatus, Fault> {
    match command {
        KeysCommand::New {
            owner,
            folder,
            dispatcher_key,
            next,
        } => make_keys(owner, next, &folder.key_folder(), dispatcher_key.as_deref())?,
        KeysCommand::Rotate { folder } => rotation::rotate(&folder.key_folder())?,
        KeysCommand::Add {
            role,
            name,
            key,
            apps,
            read_only,
            folder,
        } => {
            let rights = Rights::new(&apps, read_only).map_err(Fault::usage)?;
            add_key(role, &name, &key, &rights, &folder.key_folder())?;
        }
        KeysCommand::Revoke { key, folder } => revoke_key(&key, &folder.key_folder())?,
        KeysCommand::List { folder } => list_keys(&folder.key_folder())?,
    }
    Ok(ExitStatus::Done)
}

impl FolderOption {
    fn key_folder(&self) -> KeyFolder {
        KeyFolder::new(&self.keys)
    }
}

impl Owner {
    fn as_str(self) -> &'static str {
        match self {
            Owner::Dispatcher => DISPATCHER,
            Owner::Supervisor => Role::Supervisor.as_str(),
            Owner::Client => Role::Client.as_str(),
        }
    }
}

fn make_keys(
    owner: Owner,
    is_next: bool,
    folder: &KeyFolder,
    dispatcher_key: Option<&str>,
) -> Result<(), Fault> {
    require_curve()?;
    let name = match is_next {
        true => rotation::next_key_name(owner, folder)?,
        false => owner.as_str(),
    };
    let trusted = dispatcher_key.map(parse_or_read_key).transpose()?;
    if trusted.is_some() && owner == Owner::Dispatcher {
        return Err(Fault::usage(
            "--dispatcher-key is for supervisors and clients: a dispatcher trusts the keys on its allow list",
        ));
    }
    let (secret_file, public_file) = (folder.secret_file(name), folder.public_file(name));
    for file in [&secret_file, &public_file] {
        if file.exists() {
            return Err(exists_fault(file));
        }
    }
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder.path())
        .map_err(|error| cannot_write(folder.path(), &error))?;
    let keys = new_keys()?;
    let secret = format!("{SECRET_MARK}{}\n", keys.secret.to_secret_text());
    create_new_file(&secret_file, &secret, 0o400)?;
    create_new_file(&public_file, &format!("{}\n", keys.public), 0o444)?;
    match owner {
        Owner::Dispatcher if is_next => webfill_service::say!(
            "copy {} to the key folder of every supervisor and client; then run `webfill keys rotate` here and restart the dispatcher",
            public_file.display()
        ),
        Owner::Dispatcher if !folder.allow_list_file().exists() => {
            create_new_file(&folder.allow_list_file(), &format!("{HEADING}\n"), 0o644)?;
        }
        Owner::Dispatcher => {}
        Owner::Supervisor | Owner::Client => {
            if let Some(trusted) = trusted {
                store_trusted_key(folder, trusted)?;
            }
            webfill_service::say!(
                "on the dispatcher's machine, allow it: webfill keys add {} NAME '{}'",
                owner.as_str(),
                keys.public
            );
        }
    }
    print(keys.public)
}

/// Creates a pair of keys. The public key does not begin with a dash, which would make it look like a flag.
fn new_keys() -> Result<KeyPair, Fault> {
    loop {
        let keys = new_key_pair().map_err(Fault::error)?;
        if !keys.public.to_string().starts_with('-') {
            return Ok(keys);
        }
    }
}

/// Stores the public key of the dispatcher to trust.
fn store_trusted_key(folder: &KeyFolder, dispatcher: PublicKey) -> Result<(), Fault> {
    let file = folder.public_file(DISPATCHER);
    if file.exists() && read_public(&file)? == dispatcher {
        return Ok(());
    }
    create_new_file(&file, &format!("{dispatcher}\n"), 0o444)
}

fn add_key(
    role: Role,
    name: &str,
    key: &str,
    rights: &Rights,
    folder: &KeyFolder,
) -> Result<(), Fault> {
    if role != Role::Client && *rights != Rights::ALL {
        return Err(Fault::usage(
            "--apps and --read-only are for client keys: a supervisor's rights are fixed",
        ));
    }
    let key = parse_or_read_key(key)?;
    change_allow_list(folder, |text, entries| {
        for entry in entries {
            if *entry.name == *name || entry.key == key {
                return Err(Fault::usage(format!(
                    "{} is already listed, as {} with the key {}: revoke it first",
                    entry.name, entry.role, entry.key
                )));
            }
        }
        let line = format!("{role} {name} {key} {rights}");
        let audited = json!({
            "action": "keys_add", "role": role.as_str(), "name": name,
            "key": key.to_string(), "rights": rights.to_string(),
        });
        Ok((audited, format!("{text}{}\n", line.trim_end())))
    })
}

fn revoke_key(key: &str, folder: &KeyFolder) -> Result<(), Fault> {
    change_allow_list(folder, |text, entries| {
        let found = entries
            .iter()
            .find(|entry| *entry.name == *key || entry.key.to_string() == key);
        let Some(found) = found else {
            return Err(Fault::usage(format!(
                "no key `{key}` in {}",
                folder.allow_list_file().display()
            )));
        };
        let key = found.key.to_string();
        let is_other = |line: &&str| line.split_whitespace().nth(2) != Some(&key);
        let left = text.lines().filter(is_other);
        let audited = json!({
            "action": "keys_revoke", "role": found.role.as_str(), "name": &*found.name, "key": key,
        });
        Ok((audited, left.map(|line| format!("{line}\n")).collect()))
    })
}

fn list_keys(folder: &KeyFolder) -> Result<(), Fault> {
    let mut out = String::new();
    for entry in parse_allow_list(folder, &read_allow_list(folder)?)? {
        let (role, name, key) = (entry.role, &entry.name, entry.key);
        let line = format!("{role:<10}  {name:<24}  {key}  {}", entry.rights);
        out += &format!("{}\n", line.trim_end());
    }
    match std::io::stdout().write_all(out.as_bytes()) {
        // An error means that the reader has closed the pipe.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Fault::error(error)),
        _ => Ok(()),
    }
}

/// Locks the key folder for a change, so that no other change begins until the lock is dropped.
fn lock_folder(folder: &KeyFolder) -> Result<File, Fault> {
    let turn = File::open(folder.path()).map_err(|error| {
        Fault::usage(format!(
            "cannot open the key folder {}: {error}; create one with `webfill keys new dispatcher`",
            folder.path().display()
        ))
    })?;
    turn.lock()
        .map_err(|error| cannot_write(folder.path(), &error))?;
    Ok(turn)
}

/// Changes the list atomically: a dispatcher sees either the old list or the new one.
fn change_allow_list(
    folder: &KeyFolder,
    edit: impl FnOnce(&str, &[Entry]) -> Result<(Value, String), Fault>,
) -> Result<(), Fault> {
    let _turn = lock_folder(folder)?;
    let text = read_allow_list(folder)?;
    let (audited, changed) = edit(&text, &parse_allow_list(folder, &text)?)?;
    let list = folder.allow_list_file();
    let new = folder.path().join("allowed.new");
    // An interrupted change may have left this file.
    let _ = fs::remove_file(&new);
    create_new_file(&new, &changed, 0o644)?;
    // Write the audit entry before the list, so that every change that takes effect has an entry.
    append_to_audit_log(folder, &audited)?;
    fs::rename(&new, &list).map_err(|error| cannot_write(&list, &error))
}

fn read_allow_list(folder: &KeyFolder) -> Result<String, Fault> {
    let list = folder.allow_list_file();
    fs::read_to_string(&list).map_err(|error| {
        Fault::usage(format!(
            "cannot read the allow list {}: {error}; create one with `webfill keys new dispatcher`",
            list.display()
        ))
    })
}

fn parse_allow_list(folder: &KeyFolder, text: &str) -> Result<Vec<Entry>, Fault> {
    let list = folder.allow_list_file();
    parse(text).map_err(|fault| Fault::usage(format!("{}: {fault}", list.display())))
}

/// Reads a public key from a file, or parses it. An existing file takes precedence, because its path may look like a
/// key.
fn parse_or_read_key(text: &str) -> Result<PublicKey, Fault> {
    let file = Path::new(text);
    if file.exists() {
        return read_public(file);
    }
    text.parse().map_err(|error| {
        Fault::usage(format!(
            "`{text}` is neither a file nor a public key: {error}"
        ))
    })
}

fn parse_role(text: &str) -> Result<Role, String> {
    text.parse()
}

fn parse_name(text: &str) -> Result<String, String> {
    match is_valid_name(text) {
        true => Ok(text.to_owned()),
        false => Err("a name has 1 to 64 letters, digits, or - _ .".into()),
    }
}
