//! Units: processes that command lines start, stop and replace, as the script `deploy/roll` does with the services of a
//! machine. A shell script takes the place of the service manager. All processes are ended when the value is dropped.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::process::{self, MARK, Process};
use crate::run::{Run, binary};

pub struct Units {
    folder: PathBuf,
    mark: String,
}

impl Units {
    /// Creates units whose files are in this folder.
    pub fn in_folder(folder: PathBuf) -> Units {
        static FOLDERS: AtomicU32 = AtomicU32::new(0);
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        fs::create_dir_all(&folder).expect("our own folder");
        let units = Units {
            mark: format!("{}-units-{number}", std::process::id()),
            folder,
        };
        write_program(&units.script_path(), include_str!("unit.sh"));
        units
    }

    fn script_path(&self) -> PathBuf {
        self.folder.join("unit")
    }

    /// Adds a unit, which is the process of one service. It runs the command line of `run`, but with `program` in place
    /// of [`binary`].
    pub fn add(&self, name: &str, run: &Run, program: &Path) {
        let folder = self.folder.join(name);
        fs::create_dir_all(&folder).expect("our own folder");
        let link = folder.join("webfill");
        symlink(program, &link).expect("a unit is added once");
        let usual = binary();
        let first = std::iter::once(run.command.get_program());
        let words = first.chain(run.command.get_args());
        let words = words.chain(run.args.iter().map(AsRef::as_ref));
        let words = words.map(|word| match Path::new(word) == usual {
            true => quote_for_shell(&link.display().to_string()),
            false => quote_for_shell(&word.to_string_lossy()),
        });
        let variables = run.command.get_envs();
        let mut line = vec!["exec env -i".to_owned()];
        line.extend(variables.filter_map(|(key, value)| {
            let value = value?.to_string_lossy();
            let is_mark = key == MARK;
            let value = if is_mark { self.mark.as_str() } else { &value };
            Some(quote_for_shell(&format!(
                "{}={value}",
                key.to_string_lossy()
            )))
        }));
        line.extend(words);
        write_program(
            &folder.join("run"),
            &format!("#!/bin/sh\n{}\n", line.join(" ")),
        );
    }

    /// A command line for the script that manages the units, in the form that `deploy/roll` takes.
    pub fn command(&self, words: &str) -> String {
        format!(
            "{} {words}",
            quote_for_shell(&self.script_path().display().to_string())
        )
    }

    pub fn start(&self, name: &str) {
        self.run_verb("start", name);
    }

    pub fn stop(&self, name: &str) {
        self.run_verb("stop", name);
    }

    /// Kills the process of a unit, as a crash would.
    pub fn kill(&self, name: &str) {
        self.run_verb("kill", name);
    }

    fn run_verb(&self, verb: &str, name: &str) {
        let status = Command::new(self.script_path()).args([verb, name]).status();
        let status = status.expect("the script can be executed");
        assert!(status.success(), "{verb} {name}: {}", self.output(name));
    }

    /// The standard output and the standard error of a unit.
    pub fn output(&self, name: &str) -> String {
        fs::read_to_string(self.folder.join(name).join("said")).unwrap_or_default()
    }

    /// The id of the last process that a unit has started.
    pub fn pid(&self, name: &str) -> Option<u32> {
        let text = fs::read_to_string(self.folder.join(name).join("pid")).ok()?;
        text.trim().parse().ok()
    }

    /// The path of the executable that the process of a unit runs now.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        fs::read_link(format!("/proc/{}/exe", self.pid(name)?)).ok()
    }

    /// The live processes of all units, including their children.
    pub fn processes(&self) -> Vec<Process> {
        process::find_marked(&self.mark)
    }
}

impl Drop for Units {
    fn drop(&mut self) {
        process::kill_marked(&self.mark);
    }
}

/// Quotes a word for the shell.
fn quote_for_shell(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Writes a file and makes it executable.
pub fn write_program(path: &Path, text: &str) {
    fs::write(path, text).expect("our own folder");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("our own file");
}
