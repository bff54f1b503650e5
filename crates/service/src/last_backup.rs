//! The time of the last backup of a state folder. The backup command notes it in the folder, and the dispatcher shows
//! it.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;

use crate::whole_file::write_whole;

/// The name of the file in the state folder. It contains the time in milliseconds since 1970.
const FILE: &str = "last_backup";

/// Notes that a backup that began at this time is complete. The file gets the owner of the folder, even if root made
/// the backup, because a dispatcher refuses files of other users.
pub fn note_backup(state: &Path, begun_ms: i64) -> io::Result<()> {
    let (file, unowned) = (state.join(FILE), state.join("last_backup.new"));
    write_whole(&unowned, begun_ms.to_string().as_bytes())?;
    let (folder, written) = (fs::metadata(state)?, fs::metadata(&unowned)?);
    if (folder.uid(), folder.gid()) != (written.uid(), written.gid()) {
        chown(&unowned, Some(folder.uid()), Some(folder.gid()))?;
    }
    fs::rename(&unowned, &file)
}

/// When the last complete backup began; `None` if there is none.
pub fn last_backup_ms(state: &Path) -> Option<i64> {
    let text = fs::read_to_string(state.join(FILE)).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_backup_is_known() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(last_backup_ms(folder.path()), None);
        for at_ms in [1_700_000_000_000, 1_700_000_600_000] {
            note_backup(folder.path(), at_ms).unwrap();
            assert_eq!(last_backup_ms(folder.path()), Some(at_ms));
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
