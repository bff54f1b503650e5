//! Files that others must not read: secret keys and tokens.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// The bits of a file's mode that give access to other users than the owner, and the bit that lets the group read the
/// file.
const OTHERS: u32 = 0o077;
const READ_BY_GROUP: u32 = 0o040;

/// Whether a secret file is accessible to users who need not read it. Only its owner may, and also its group if root
/// owns the file but this process is not root: container managers provide secrets in that way.
pub fn is_open_to_others(found: &Metadata) -> bool {
    is_open(found.mode(), found.uid() == 0 && !crate::is_root())
}

fn is_open(mode: u32, is_given_by_root: bool) -> bool {
    let forbidden = match is_given_by_root {
        true => OTHERS & !READ_BY_GROUP,
        false => OTHERS,
    };
    mode & forbidden != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_may_read_only_files_that_root_has_given() {
        for (mode, own, given) in [
            (0o400, false, false),
            (0o600, false, false),
            (0o440, true, false),
            (0o640, true, false),
            (0o460, true, true),
            (0o450, true, true),
            (0o444, true, true),
            (0o404, true, true),
        ] {
            assert_eq!(
                (is_open(mode, false), is_open(mode, true)),
                (own, given),
                "{mode:o}"
            );
        }
    }
}
