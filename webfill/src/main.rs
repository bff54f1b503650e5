//! The `webfill` command: parses the command line, runs the subcommand, and returns its exit status.

// Only `say!` and `terminal::stdout` may print, because they escape control characters.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod audit;
mod backup;
mod changes;
mod cli;
mod control_client;
mod crawl;
mod dashboard;
mod dataset;
mod demand;
mod demo;
mod endpoints;
mod export;
mod extract;
mod feeding;
mod fill;
mod fleet;
mod health;
mod keys;
mod keys_command;
mod lists;
mod manual;
mod mapping_command;
mod mapping_files;
mod mcp;
mod memory;
mod parent;
mod progress;
mod reload;
mod roles;
mod seeds;
mod settings;
mod shell;
mod stdout;
mod summary;
mod trace;
mod watch_command;

use std::process::ExitCode;

use clap::CommandFactory;
use webfill_reader::NotingAllocator;
use webfill_service::{ExitStatus, Fault, child};

use crate::cli::{Cli, Command};

/// The memory allocator. It suits many small, short-lived allocations from several threads. Compared with glibc's
/// allocator, it saves a tenth of the CPU time, and the memory of workers does not grow. Refused allocations are noted
/// for the reader of documents.
#[global_allocator]
static ALLOCATOR: NotingAllocator<mimalloc::MiMalloc> = NotingAllocator(mimalloc::MiMalloc);

fn main() -> ExitCode {
    memory::avoid_huge_pages();
    child::restore_process_name();
    let ended = match Cli::from_process_arguments() {
        Ok(cli) => {
            cli.parent_process
                .into_iter()
                .for_each(parent::drain_after_parent);
            run(cli.command)
        }
        Err(usage) => return cli::print_usage(&usage),
    };
    match ended {
        Ok(status) => ExitCode::from(status.code()),
        Err(fault) => {
            webfill_service::say!("webfill: {fault}");
            ExitCode::from(fault.status.code())
        }
    }
}

fn run(command: Command) -> Result<ExitStatus, Fault> {
    match command {
        Command::Crawl(options) => crawl::run(*options),
        Command::Fill(options) => fill::run(*options),
        Command::Demo(options) => demo::run(options),
        Command::Feed(options) => demand::feed(options),
        Command::Info(options) => demand::print_info(options),
        Command::Stop(options) => demand::stop(options),
        Command::Pause(options) => demand::pause(options),
        Command::Resume(options) => demand::resume(options),
        Command::Retry(options) => demand::retry(options),
        Command::Prune(options) => demand::prune(options),
        Command::Status(options) => demand::print_status(options),
        Command::Drain(options) => demand::drain(options),
        Command::Reload(options) => demand::reload(options),
        Command::Site(options) => demand::run_site_action(options),
        Command::Sites(options) => demand::print_sites(options),
        Command::Trace(options) => trace::run(options),
        Command::Why(options) => demand::print_why(options),
        Command::Dump(options) => demand::dump(options),
        Command::Health(options) => health::run(options),
        Command::Changes(options) => changes::run(options),
        Command::Lists(options) => lists::run(options),
        Command::Export(options) => export::run(options),
        Command::Extract(options) => extract::run(options),
        Command::Backup(options) => backup::run(options),
        Command::Audit(options) => audit::run(options),
        Command::Mapping(command) => mapping_command::run(command),
        Command::Keys(command) => keys_command::run(command),
        Command::Watch(command) => watch_command::run(command),
        Command::Dashboard(options) => dashboard::run(&options),
        Command::Mcp(options) => mcp::run(options),
        Command::Dispatcher(options) => roles::run_dispatcher(options),
        Command::Supervisor(options) => roles::run_supervisor(options),
        Command::Worker(options) => roles::run_worker(options),
        Command::ReadDocument(options) => roles::read_document(&options),
        Command::DashboardJob => mapping_command::run_dashboard_job(),
        Command::Manual(options) => manual::run(&options, Cli::command()),
    }
}
