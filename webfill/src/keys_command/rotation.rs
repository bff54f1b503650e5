//! Replaces the dispatcher's key while the fleet is running. Supervisors and clients trust both the present and the
//! next key until the next one has replaced the present one everywhere.
//!
//! On the dispatcher's machine the next pair replaces the present one. The present one is kept as the former pair until
//! somebody removes it. Each file is replaced atomically, the secret key first. After an interruption, the same command
//! completes the rotation. On machines without the dispatcher's secret key, its next public key replaces the present
//! one.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::json;
use webfill_service::Fault;
use webfill_wire::keys::PublicKey;

use super::writing::copy_owner_and_mode;
use super::{Owner, append_to_audit_log, cannot_write, lock_folder};
use crate::keys::{DISPATCHER, FORMER, KeyFolder, NEXT, read_key_file, read_public};
use crate::stdout::print;

/// The name of the files of a dispatcher's next key.
pub(super) fn next_key_name(owner: Owner, folder: &KeyFolder) -> Result<&'static str, Fault> {
    if owner != Owner::Dispatcher {
        return Err(Fault::usage(
            "--next is for the dispatcher's key: for a supervisor or client, create a key in another folder and `webfill keys add` it under another name",
        ));
    }
    let present = folder.secret_file(DISPATCHER);
    if !present.exists() {
        return Err(Fault::usage(format!(
            "{} does not exist, so there is no key to replace: leave out --next",
            present.display()
        )));
    }
    Ok(NEXT)
}

pub(super) fn rotate(folder: &KeyFolder) -> Result<(), Fault> {
    let _turn = lock_folder(folder)?;
    let is_dispatcher = folder.secret_file(DISPATCHER).exists();
    let mut steps = vec![Step::new(folder, KeyFolder::public_file, is_dispatcher)];
    if is_dispatcher {
        steps.insert(0, Step::new(folder, KeyFolder::secret_file, true));
    }
    steps.retain(|step| step.next.exists());
    let Some(last) = steps.last() else {
        return Err(Fault::usage(format!(
            "no next key in {}: create one with `webfill keys new dispatcher --next` on the dispatcher's machine, and copy its dispatcher-next.pub to every other key folder",
            folder.path().display()
        )));
    };
    for step in &steps {
        step.check_next()?;
    }
    let public = read_public(&folder.public_file(NEXT))
        .map_err(|fault| Fault::usage(format!("{}: {}", last.next.display(), fault.message)))?;
    for step in &steps {
        step.check_former()?;
    }
    if is_dispatcher {
        check_owner(folder)?;
        check_pair(folder, public)?;
        let audited = json!({"action": "keys_rotate", "key": public.to_string()});
        append_to_audit_log(folder, &audited)?;
    }
    for step in &steps {
        step.replace_present_file()?;
    }
    let synced = File::open(folder.path()).and_then(|folder| folder.sync_all());
    synced.map_err(|error| cannot_write(folder.path(), &error))?;
    if is_dispatcher {
        webfill_service::say!(
            "restart the dispatcher; then run `webfill keys rotate` in every other key folder, and remove {} and {}",
            folder.secret_file(FORMER).display(),
            folder.public_file(FORMER).display()
        );
    }
    print(public)
}

/// Checks that the public key of the next pair belongs to its secret key. An interrupted rotation may have moved the
/// secret key already; then the present one is compared.
fn check_pair(folder: &KeyFolder, public: PublicKey) -> Result<(), Fault> {
    let is_begun = !folder.secret_file(NEXT).exists();
    let owner = if is_begun { DISPATCHER } else { NEXT };
    if folder.key_pair(owner)?.public == public {
        return Ok(());
    }
    Err(Fault::usage(format!(
        "{} is not the public key of {}: move both away and create new ones with `webfill keys new dispatcher --next`",
        folder.public_file(NEXT).display(),
        folder.secret_file(owner).display()
    )))
}

/// Checks that the present and the next secret key have the same owner, because the dispatcher's user must be able to
/// read both.
fn check_owner(folder: &KeyFolder) -> Result<(), Fault> {
    let (present, next) = (folder.secret_file(DISPATCHER), folder.secret_file(NEXT));
    let owner = |path: &Path| fs::symlink_metadata(path).map(|file| file.uid());
    let (Ok(of_present), Ok(of_next)) = (owner(&present), owner(&next)) else {
        // A missing key is reported by the code that reads it.
        return Ok(());
    };
    if of_present == of_next {
        return Ok(());
    }
    Err(Fault::usage(format!(
        "{} belongs to user {of_next}, and {} to user {of_present}, as whom the dispatcher runs: `chown --reference={} {}`",
        next.display(),
        present.display(),
        present.display(),
        next.display()
    )))
}

/// One step of the rotation: replaces a key file by its next version.
struct Step {
    present: PathBuf,
    next: PathBuf,
    /// The path the present file is moved to; `None` if it is not kept.
    former: Option<PathBuf>,
}

impl Step {
    fn new(folder: &KeyFolder, file: fn(&KeyFolder, &str) -> PathBuf, keeps: bool) -> Step {
        Step {
            present: file(folder, DISPATCHER),
            next: file(folder, NEXT),
            former: keeps.then(|| file(folder, FORMER)),
        }
    }

    /// Refuses a symbolic link as the next file. It would replace the present file, and its target could change.
    fn check_next(&self) -> Result<(), Fault> {
        match fs::symlink_metadata(&self.next) {
            Ok(next) if !next.is_file() => Err(Fault::usage(format!(
                "{} is not a plain file: put the key itself there",
                self.next.display()
            ))),
            _ => Ok(()),
        }
    }

    /// Refuses a former key from an earlier rotation. A former key that this rotation has stored before an interruption
    /// is allowed.
    fn check_former(&self) -> Result<(), Fault> {
        let Some(former) = self.former.as_ref().filter(|former| former.exists()) else {
            return Ok(());
        };
        let read = |path: &PathBuf| {
            read_key_file(path)
                .map_err(|error| Fault::usage(format!("cannot read {}: {error}", path.display())))
        };
        if read(former)? == read(&self.present)? {
            return Ok(());
        }
        Err(Fault::usage(format!(
            "{} exists, so the previous rotation is not complete: remove it, and the other file of that name, once all trust the current key",
            former.display()
        )))
    }

    fn replace_present_file(&self) -> Result<(), Fault> {
        if let Some(former) = self.former.as_ref().filter(|former| !former.exists()) {
            fs::hard_link(&self.present, former).map_err(|error| cannot_write(former, &error))?;
        }
        copy_owner_and_mode(&self.next, &self.present)
            .map_err(|error| cannot_write(&self.next, &error))?;
        fs::rename(&self.next, &self.present).map_err(|error| cannot_write(&self.present, &error))
    }
}
