//! Writes files atomically, and keeps earlier versions of mapping files.

use std::fs;
use std::path::{Path, PathBuf};

use webfill_service::Fault;
use webfill_service::disk::is_full;
use webfill_service::whole_file::{part_path, write_whole};

/// Writes a file atomically, and creates its folder if it is missing.
pub fn write_atomically(path: &Path, content: &[u8]) -> Result<(), Fault> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let made = folder.map_or(Ok(()), fs::create_dir_all);
    made.and_then(|()| write_whole(path, content))
        .map_err(|error| Fault::unwritable(path, &error))
}

/// Checks that a file can be written, without changing it. Creates its folder.
pub fn require_writable(path: &Path) -> Result<(), Fault> {
    if path.is_dir() {
        return Err(Fault::usage(format!(
            "{} is a folder: name a file",
            path.display()
        )));
    }
    let part = part_path(path);
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let made = folder.map_or(Ok(()), fs::create_dir_all);
    let checked = made
        .and_then(|()| fs::File::create(&part))
        .and_then(|_| fs::remove_file(&part));
    checked.map_err(|error| match is_full(&error) {
        true => Fault::unwritable(path, &error),
        false => Fault::usage(format!("cannot write {}: {error}", path.display())),
    })
}

/// Copies a file to a free name beside it: `shop.json.1`, `shop.json.2` and so on. Files with such names are not read
/// as mappings.
pub fn make_numbered_copy(path: &Path) -> Result<PathBuf, Fault> {
    let former = (1_u32..)
        .map(|number| PathBuf::from(format!("{}.{number}", path.display())))
        .find(|former| !former.exists());
    let former = former.ok_or_else(|| Fault::error("all names are taken"))?;
    let content = fs::read(path)
        .map_err(|error| Fault::error(format!("cannot read {}: {error}", path.display())))?;
    write_atomically(&former, &content)?;
    Ok(former)
}
