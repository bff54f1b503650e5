//! `webfill manual DIR`: writes the manual pages, the shell completions, the JSON Schemas, and the generated pages of
//! `docs/reference/`. Their sources are the command line, the tables of settings, outcomes and processors, the metrics
//! and the schemas, so they match the program. The command is hidden, because only packages and the documentation use
//! it.

mod commands_page;
mod metrics_page;
mod outcomes_page;
mod processors_page;
mod schema_pages;
mod settings_page;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use webfill_service::{ExitStatus, Fault};

#[derive(Debug, Args)]
pub struct ManualOptions {
    /// The folder to write to; it is created
    pub folder: PathBuf,
}

/// Writes all pages. `command` describes the whole command line.
pub fn run(options: &ManualOptions, command: Command) -> Result<ExitStatus, Fault> {
    write_all_files(&options.folder, command).map_err(|error| {
        let folder = options.folder.display();
        Fault::error(format!("cannot write the manual to {folder}: {error}"))
    })?;
    Ok(ExitStatus::Done)
}

fn write_all_files(folder: &Path, whole: Command) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut command = whole.clone().disable_help_subcommand(true);
    command.build();
    std::fs::write(
        folder.join("commands.md"),
        commands_page::generate_page(&command),
    )?;
    std::fs::write(folder.join("metrics.md"), metrics_page::generate_page())?;
    std::fs::write(folder.join("outcomes.md"), outcomes_page::generate_page())?;
    std::fs::write(
        folder.join("processors.md"),
        processors_page::generate_page(),
    )?;
    schema_pages::write(folder)?;
    let defaults = settings_page::default_settings();
    std::fs::write(
        folder.join("settings.md"),
        settings_page::generate_page(&defaults),
    )?;
    std::fs::write(
        folder.join("webfill.toml"),
        settings_page::generate_example_file(&defaults),
    )?;
    write_pages(command, folder)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut whole.clone(), "webfill", folder)?;
    }
    Ok(())
}

/// Writes the page of a command, and those of its subcommands.
fn write_pages(command: Command, folder: &Path) -> io::Result<()> {
    for below in command.get_subcommands().filter(|one| !one.is_hide_set()) {
        write_pages(below.clone(), folder)?;
    }
    let name = command.get_display_name().unwrap_or("webfill").to_owned();
    let man = Man::new(command);
    let mut page = Vec::new();
    man.render(&mut page)?;
    write_exit_status(&name, &mut page)?;
    std::fs::write(folder.join(man.get_filename()), page)
}

fn write_exit_status(name: &str, page: &mut dyn Write) -> io::Result<()> {
    let mut roff = Roff::default();
    roff.control("SH", ["EXIT STATUS"]);
    for status in exit_statuses_of(name) {
        roff.control("TP", []);
        roff.text([bold(status.code().to_string())]);
        roff.text([roman(status.meaning())]);
    }
    roff.to_writer(page)
}

/// The exit statuses that the manual page of this command lists. The main page lists those of all commands.
fn exit_statuses_of(name: &str) -> &'static [ExitStatus] {
    use ExitStatus::{Done, Error, Fatal, Interrupted, Usage};
    match name {
        "webfill" | "webfill-crawl" | "webfill-demo" | "webfill-fill" | "webfill-watch-run" => {
            &ExitStatus::ALL
        }
        "webfill-extract" => &[Done, Error, Usage, Interrupted],
        "webfill-dispatcher" | "webfill-supervisor" => &[Done, Error, Usage, Fatal],
        _ => &[Done, Error, Usage],
    }
}
