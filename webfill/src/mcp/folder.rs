//! The folder that agents may use. No path leads out of it, even through symbolic links.

use std::path::{Path, PathBuf};

use webfill_service::Fault;

use crate::fill::Project;

#[derive(Debug, Clone)]
pub struct Folder(PathBuf);

impl Folder {
    pub fn open(folder: &Path) -> Result<Folder, Fault> {
        let wrong = |why: &dyn std::fmt::Display| {
            Fault::usage(format!("--folder {}: {why}", folder.display()))
        };
        let found = folder.canonicalize().map_err(|error| wrong(&error))?;
        match found.is_dir() {
            true => Ok(Folder(found)),
            false => Err(wrong(&"it is no folder")),
        }
    }

    /// The path of a file in the folder. A refusal does not reveal whether a file outside of the folder exists.
    pub fn file_path(&self, name: &str) -> Result<PathBuf, Fault> {
        let found = self.0.join(name).canonicalize().ok();
        let found = found.filter(|path| path.starts_with(&self.0) && path.is_file());
        found.ok_or_else(|| {
            Fault::usage(format!(
                "`{name}` is no file in {}, the only folder that may be used",
                self.0.display()
            ))
        })
    }

    /// The path of a table in the folder. The outputs are created beside the table. So existing outputs must be files,
    /// folders, or links to files in the folder.
    pub fn table_path(&self, name: &str) -> Result<PathBuf, Fault> {
        let table = self.file_path(name)?;
        let outputs = format!("{}.", Project::new(&table).name());
        let beside = table.parent().unwrap_or(&self.0);
        for entry in list_folder(beside) {
            let name = entry.file_name().unwrap_or_default().to_string_lossy();
            // The name of a partial file is that of the output with a dot before it.
            if name.trim_start_matches('.').starts_with(&outputs) {
                self.refuse_escapes(&entry)?;
            }
        }
        Ok(table)
    }

    /// The path of a file relative to the folder, as agents know it.
    pub fn relative_name(&self, path: &Path) -> String {
        let name = path.strip_prefix(&self.0).unwrap_or(path);
        name.display().to_string()
    }

    fn refuse_escapes(&self, path: &Path) -> Result<(), Fault> {
        let Ok(found) = path.symlink_metadata() else {
            return Ok(());
        };
        if found.is_dir() {
            return list_folder(path).try_for_each(|entry| self.refuse_escapes(&entry));
        }
        if found.is_symlink() && !self.has_target(path) {
            return Err(Fault::usage(format!(
                "{} is a link out of {}, or to a folder: remove it",
                self.relative_name(path),
                self.0.display()
            )));
        }
        Ok(())
    }

    /// Whether a link leads to a file in the folder, or to a free name in the link's own folder.
    fn has_target(&self, link: &Path) -> bool {
        if let Ok(target) = link.canonicalize() {
            return target.starts_with(&self.0) && target.is_file();
        }
        let Ok(target) = link.read_link() else {
            return false;
        };
        let beside = link.with_file_name(&target);
        // The free name must be in the link's own folder. In another folder, a further link in the path could lead
        // anywhere.
        beside.parent() == link.parent()
            && beside.file_name() == Some(target.as_os_str())
            && beside.symlink_metadata().is_err()
    }
}

fn list_folder(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path()))
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir_all, write};
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_path_leads_out_of_the_folder() {
        let all = tempfile::tempdir().unwrap();
        let inside = all.path().join("inside");
        create_dir_all(inside.join("deep")).unwrap();
        create_dir_all(all.path().join("inside2")).unwrap();
        for table in [
            "a.csv",
            "inside/b.csv",
            "inside/deep/c.csv",
            "inside2/d.csv",
        ] {
            write(all.path().join(table), "id,url\n").unwrap();
        }
        symlink(all.path().join("a.csv"), inside.join("out.csv")).unwrap();
        symlink(all.path(), inside.join("up")).unwrap();
        symlink("b.csv", inside.join("same.csv")).unwrap();
        let folder = Folder::open(&inside).unwrap();
        let absolute = inside.join("b.csv").display().to_string();
        for good in [
            "b.csv",
            "deep/c.csv",
            "deep/../b.csv",
            "same.csv",
            &absolute,
        ] {
            assert!(folder.table_path(good).is_ok(), "{good}");
        }
        let outside = all.path().join("a.csv").display().to_string();
        for bad in [
            "",
            ".",
            "deep",
            "../a.csv",
            "../inside2/d.csv",
            "out.csv",
            "up/a.csv",
            "none.csv",
            "../none.csv",
            "/etc/passwd",
            "/dev/stdin",
            &outside,
        ] {
            let refusal = folder.table_path(bad).unwrap_err().message;
            let expected = format!("`{bad}` is no file in ");
            assert!(refusal.starts_with(&expected), "{bad}: {refusal}");
        }
    }

    #[test]
    fn no_output_is_written_through_a_link_out_of_the_folder() {
        let all = tempfile::tempdir().unwrap();
        let inside = all.path().join("inside");
        create_dir_all(inside.join("b.webfill/state")).unwrap();
        write(inside.join("b.csv"), "id,url\n").unwrap();
        let folder = Folder::open(&inside).unwrap();
        symlink("log.1", inside.join("b.webfill/state/log")).unwrap();
        symlink(all.path(), inside.join("books.webfill")).unwrap();
        assert!(folder.table_path("b.csv").is_ok());
        for output in [
            ".b.filled.csv.part",
            "b.webfill/mappings",
            "b.webfill/state/x",
        ] {
            let folder_inside = inside.join("b.webfill/state");
            let link_inside = inside.join("b.webfill/link");
            for target in [
                all.path().to_owned(),
                all.path().join("not-there"),
                folder_inside,
                link_inside,
            ] {
                symlink(target, inside.join(output)).unwrap();
                let refusal = folder.table_path("b.csv").unwrap_err().message;
                assert!(
                    refusal.starts_with(&format!("{output} is a link out of")),
                    "{refusal}"
                );
                std::fs::remove_file(inside.join(output)).unwrap();
            }
        }
    }
}
