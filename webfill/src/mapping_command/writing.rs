//! Files that are written whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use webfill_startup::Fault;

/// Writes a file under another name, and gives it its own name once it is on the disk. Makes its folder.
pub fn write_atomically(path: &Path, content: &[u8]) -> Result<(), Fault> {
    written(path, content)
        .map_err(|error| Fault::error(format!("cannot write {}: {error}", path.display())))
}

fn written(path: &Path, content: &[u8]) -> io::Result<()> {
    let part = beside(path, &format!(".part-{}", std::process::id()));
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let written = File::create(&part).and_then(|mut file| {
        file.write_all(content)?;
        file.sync_all()
    });
    let renamed = written.and_then(|()| fs::rename(&part, path));
    if renamed.is_err() {
        // What is left of it serves nobody, and the first error is the one to tell.
        let _ = fs::remove_file(&part);
    }
    renamed
}

/// Copies a file to a free name beside it: `shop.json.1`, `shop.json.2`, ..., which no folder of mappings
/// reads.
pub fn keep_former(path: &Path) -> Result<PathBuf, Fault> {
    let former = (1_u32..)
        .map(|number| PathBuf::from(format!("{}.{number}", path.display())))
        .find(|former| !former.exists());
    let former = former.ok_or_else(|| Fault::error("all names are taken"))?;
    let content = fs::read(path)
        .map_err(|error| Fault::error(format!("cannot read {}: {error}", path.display())))?;
    write_atomically(&former, &content)?;
    Ok(former)
}

/// A hidden file in the same folder.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}{ending}"))
}
