//! `webfill manual DIR`: the manual pages and the completions of shells, out of the command line itself, so
//! that they say what the program does. It is hidden, because only packages are made with it.

use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory};
use clap_complete::Shell;
use webfill_startup::{ExitStatus, Fault};

use crate::cli::Cli;

#[derive(Debug, Args)]
pub struct ManualOptions {
    /// The folder to write to; it is created
    pub folder: PathBuf,
}

pub fn run(options: &ManualOptions) -> Result<ExitStatus, Fault> {
    write(&options.folder).map_err(|error| {
        let folder = options.folder.display();
        Fault::error(format!("cannot write the manual to {folder}: {error}"))
    })?;
    Ok(ExitStatus::Done)
}

fn write(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    clap_mangen::generate_to(Cli::command(), folder)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut Cli::command(), "webfill", folder)?;
    }
    Ok(())
}
