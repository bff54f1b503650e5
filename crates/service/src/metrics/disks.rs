//! Metrics of the free space on the disks that a process writes to.

use std::path::PathBuf;

use crate::disk::FreeSpace;

use crate::metrics::exposition::Exposition;

/// Adds the free space on the disks of these folders, where it is known.
pub fn add_disks(page: &mut Exposition, folders: &[PathBuf]) {
    let mut rooms: Vec<(String, FreeSpace)> = folders
        .iter()
        .filter_map(|folder| Some((folder.display().to_string(), FreeSpace::of(folder)?)))
        .collect();
    // Folders may be listed twice, because the store may be in the state folder.
    rooms.sort_by(|one, other| one.0.cmp(&other.0));
    rooms.dedup_by(|one, other| one.0 == other.0);
    let mut free = page.add_gauge(
        "webfill_disk_free_bytes",
        "Free space on the disk of each folder that the process writes to.",
    );
    for (folder, room) in &rooms {
        free.add_series(&[("folder", folder)], room.free_bytes);
    }
    let mut sizes = page.add_gauge(
        "webfill_disk_size_bytes",
        "Size of the disk of each folder that the process writes to.",
    );
    for (folder, room) in &rooms {
        sizes.add_series(&[("folder", folder)], room.size_bytes);
    }
}

/// Adds whether the process is paused because of a nearly full disk.
pub fn add_disk_low(page: &mut Exposition, is_low: bool) {
    page.add_gauge(
        "webfill_disk_low",
        "1: the process pauses because a disk has less than `disk.floor_mib` left.",
    )
    .set_value(u8::from(is_low));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_existing_folder_is_listed_once() {
        let there = std::env::temp_dir();
        let mut page = Exposition::default();
        add_disks(
            &mut page,
            &[there.clone(), "/no/such/folder".into(), there.clone()],
        );
        let page = page.finish();
        for name in ["webfill_disk_free_bytes", "webfill_disk_size_bytes"] {
            let series = format!("{name}{{folder=\"{}\"}}", there.display());
            assert_eq!(page.matches(&series).count(), 1, "{page}");
        }
        assert!(!page.contains("/no/such"), "{page}");
    }
}
