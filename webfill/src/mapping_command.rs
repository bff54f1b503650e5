//! `webfill mapping check | test | save | learn | repair | schema`: tools for writing mappings.

mod all;
mod chosen;
mod desk_hands;
mod difference;
mod fetching;
mod fill_rates;
mod golden;
mod kept;
mod learn;
mod listed_file;
mod page;
mod repair;
mod save;
mod sources;
mod trace_text;
mod trial;
mod undecided;
mod writing;

use std::path::{Path, PathBuf};

use webfill_mapping::MappingSet;
use webfill_startup::{ExitStatus, Fault};

pub use self::desk_hands::{DeskHands, desk_job};
use crate::cli::MappingCommand;
use crate::demand::table::visible;
use crate::stdout::tell;

pub fn run(command: MappingCommand) -> Result<ExitStatus, Fault> {
    match command {
        MappingCommand::Check { paths } => check(&paths),
        MappingCommand::Test(options) => trial::run(&options),
        MappingCommand::Save(options) => save::run(&options),
        MappingCommand::Learn(options) => learn::run(*options),
        MappingCommand::Repair(options) => repair::run(*options),
        MappingCommand::Schema => {
            tell(format_args!("{:#}", webfill_mapping::schema()))?;
            Ok(ExitStatus::Done)
        }
    }
}

fn check(paths: &[PathBuf]) -> Result<ExitStatus, Fault> {
    for path in paths {
        let set = load(path)?;
        let mut warnings: Vec<String> = set.warnings().iter().map(ToString::to_string).collect();
        warnings.extend(undecided::warnings(path, load(path)?)?);
        let verdict = verdict(warnings.len());
        let mappings = match set.len() {
            0 => "no mapping in it".to_owned(),
            1 => format!("1 mapping, {verdict}"),
            count => format!("{count} mappings, {verdict}"),
        };
        tell(format_args!("{}: {mappings}", path.display()))?;
        for warning in warnings {
            tell(format_args!("  {}", visible(&warning)))?;
        }
        for index in set.indexes() {
            let description = set.description(index).unwrap_or_default();
            tell(format!("  {}  {description}", set.name(index)).trim_end())?;
        }
    }
    Ok(ExitStatus::Done)
}

fn verdict(warnings: usize) -> String {
    match warnings {
        0 => "all good".to_owned(),
        1 => "1 warning".to_owned(),
        count => format!("{count} warnings"),
    }
}

fn load(path: &Path) -> Result<MappingSet, Fault> {
    let loaded = if path.is_dir() {
        MappingSet::load_dir(path)
    } else {
        MappingSet::load_file(path)
    };
    loaded.map_err(Fault::usage)
}
