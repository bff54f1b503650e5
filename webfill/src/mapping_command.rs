//! `webfill mapping check | test | save | learn | repair | schema`: tools for writing mappings.

mod all;
mod case_pages;
mod chosen;
mod dashboard_host;
mod difference;
mod fetching;
mod fill_rates;
mod golden;
mod kept;
pub mod learn;
mod listed_file;
mod page;
mod repair;
mod row_difference;
mod row_table;
mod row_warnings;
mod save;
mod sources;
mod trace_text;
mod trial;
mod undecided;
pub mod writing;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use webfill_mapping::{Engine, Limits};
use webfill_service::{ExitStatus, Fault};

pub use self::dashboard_host::{DashboardHost, run_dashboard_job};
use self::row_warnings::Warning;
use crate::cli::MappingCommand;
use crate::demand::table::without_control_characters;
use crate::mapping_files::load_files;
use crate::stdout::print;

pub fn run(command: MappingCommand) -> Result<ExitStatus, Fault> {
    match command {
        MappingCommand::Check { paths } => check(&paths),
        MappingCommand::Test(options) => trial::run(&options),
        MappingCommand::Save(options) => save::run(&options),
        MappingCommand::Learn(options) => learn::run(*options),
        MappingCommand::Repair(options) => repair::run(*options),
        MappingCommand::Schema { case } => {
            let schema = match case {
                true => webfill_mapping::case_schema(),
                false => webfill_mapping::mapping_file_schema(),
            };
            print(format_args!("{schema:#}"))?;
            Ok(ExitStatus::Done)
        }
    }
}

/// Checks files and folders. The valid ones are reported first, and then the faults of all others.
fn check(paths: &[PathBuf]) -> Result<ExitStatus, Fault> {
    let faults = paths.iter().filter_map(|path| check_path(path).err());
    let all = faults.reduce(|mut all, fault| {
        all.message.push('\n');
        all.message.push_str(&fault.message);
        all
    });
    all.map_or(Ok(ExitStatus::Done), Err)
}

fn check_path(path: &Path) -> Result<(), Fault> {
    let set = Arc::new(load_files(path)?);
    let engine = Engine::new(Arc::clone(&set), Limits::default());
    let pages = case_pages::read_case_pages(path, &set)?;
    let mut warnings: Vec<String> = set.warnings().iter().map(ToString::to_string).collect();
    warnings.extend(undecided::undecided_warnings(&engine, &pages));
    let of_rows = row_warnings::row_warnings(&engine, &pages);
    let warnings = warnings.into_iter().map(|text| Warning {
        text,
        rewrite: None,
    });
    let warnings: Vec<Warning> = warnings.chain(of_rows).collect();
    let verdict = describe_warning_count(warnings.len());
    let mappings = match set.len() {
        0 => "no mapping in it".to_owned(),
        1 => format!("1 mapping, {verdict}"),
        count => format!("{count} mappings, {verdict}"),
    };
    print(format_args!("{}: {mappings}", path.display()))?;
    for warning in warnings {
        print(format_args!(
            "  {}",
            without_control_characters(&warning.text)
        ))?;
        if let Some(rewrite) = &warning.rewrite {
            print_rewrite(rewrite)?;
        }
    }
    for index in set.indexes() {
        let description = set.description(index).unwrap_or_default();
        print(format!("  {}  {description}", set.name(index)).trim_end())?;
    }
    Ok(())
}

/// Prints a proposed change, ready to be copied into the mapping.
fn print_rewrite(rewrite: &Value) -> Result<(), Fault> {
    let text = match rewrite.get("rows") {
        Some(rows) => format!("\"rows\": {rows:#}"),
        None => format!("{rewrite:#}"),
    };
    let mut lines = text.lines();
    lines.try_for_each(|line| print(format_args!("    {}", without_control_characters(line))))
}

fn describe_warning_count(warnings: usize) -> String {
    match warnings {
        0 => "all good".to_owned(),
        1 => "1 warning".to_owned(),
        count => format!("{count} warnings"),
    }
}
