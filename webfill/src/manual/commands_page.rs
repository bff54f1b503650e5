//! Generates `commands.md`: every command with its arguments, as Markdown.

use std::fmt::Write;

use clap::{Arg, Command};

use super::exit_statuses_of;

const HEAD: &str = "\
# Commands

Every command of webfill with its arguments, as `--help` shows them. This page is written by `make reference`; to
change it, change the help texts in `webfill/src`. [data.md](data.md) explains
what commands print and how they exit.
";

/// The guide in `docs/` that the reference of each command links to.
const GUIDES: [(&str, &str); 29] = [
    ("webfill audit", "../explanation/security.md#the-audit-log"),
    ("webfill backup", "../how-to/operate.md"),
    ("webfill changes", "../explanation/changes.md"),
    ("webfill crawl", "data.md#webfill-crawl"),
    ("webfill dashboard", "../how-to/dashboard.md"),
    ("webfill drain", "../how-to/operate.md"),
    ("webfill export", "data.md#webfill-export"),
    ("webfill extract", "../how-to/extract.md"),
    ("webfill feed", "../how-to/demand.md"),
    ("webfill fill", "../how-to/fill.md"),
    ("webfill health", "../explanation/health.md"),
    ("webfill lists", "../how-to/listings.md#list-progress"),
    ("webfill info", "../how-to/demand.md#watching-and-steering"),
    ("webfill keys", "../explanation/security.md"),
    ("webfill mapping check", "data.md#webfill-mapping-test"),
    ("webfill mapping learn", "data.md#webfill-mapping-learn"),
    ("webfill mapping repair", "data.md#webfill-mapping-repair"),
    ("webfill mapping save", "data.md#webfill-mapping-save"),
    ("webfill mapping schema", "../../etl-mappings/README.md"),
    ("webfill mapping test", "data.md#webfill-mapping-test"),
    (
        "webfill prune",
        "../how-to/operate.md#how-long-pages-are-kept",
    ),
    ("webfill reload", "data.md#webfill-reload"),
    ("webfill retry", "../how-to/demand.md#watching-and-steering"),
    ("webfill site", "data.md#sites-that-back-off"),
    ("webfill sites", "data.md#sites-that-back-off"),
    ("webfill supervisor", "data.md#webfill-supervisor"),
    ("webfill trace", "../how-to/operate.md#history-of-a-url"),
    ("webfill watch", "../how-to/watches.md"),
    (
        "webfill why",
        "../how-to/demand.md#why-a-url-is-not-fetched",
    ),
];

/// Generates the page for the whole command line. `webfill` must have been built (`Command::build`).
pub fn generate_page(webfill: &Command) -> String {
    let mut page = HEAD.to_owned();
    let commands = runnable_commands(webfill);
    page.push_str("\n| command | |\n|---|---|\n");
    for command in &commands {
        let name = full_name_of(command);
        let link = format!("[`{name}`](#{})", name.replace(' ', "-"));
        let about = command.get_about().map(ToString::to_string);
        let _ = writeln!(
            page,
            "| {link} | {} |",
            escape_cell(&about.unwrap_or_default())
        );
    }
    for command in commands {
        write_command(command, &mut page);
    }
    page
}

/// The commands that can be run. A command with subcommands is replaced by them.
fn runnable_commands(command: &Command) -> Vec<&Command> {
    let below = command.get_subcommands();
    let below = below.filter(|one| !one.is_hide_set() && one.get_name() != "help");
    let mut leaves: Vec<&Command> = below.flat_map(runnable_commands).collect();
    if leaves.is_empty() {
        leaves.push(command);
    }
    leaves
}

fn write_command(command: &Command, page: &mut String) {
    let name = full_name_of(command);
    let _ = write!(page, "\n## `{name}`\n\n{}\n\n", description_of(command));
    let usage = command.clone().render_usage().to_string();
    for line in usage.trim_start_matches("Usage: ").lines() {
        let _ = writeln!(page, "    {}", line.trim());
    }
    let arguments = command.get_arguments();
    let mut arguments: Vec<&Arg> = arguments.filter(|one| is_listed(one)).collect();
    arguments.sort_by_key(|one| !one.is_positional());
    if !arguments.is_empty() {
        page.push_str("\n| argument | meaning | default |\n|---|---|---|\n");
    }
    for argument in arguments {
        let (meaning, default) = meaning_and_default(argument);
        let name = escape_cell(&usage_of(argument));
        let _ = writeln!(page, "| `{name}` | {meaning} | {default} |");
    }
    let codes = exit_statuses_of(&name.replace(' ', "-")).iter();
    let codes: Vec<String> = codes.map(|status| status.code().to_string()).collect();
    let _ = writeln!(page, "\nExit codes: {}.", codes.join(", "));
    let guide = GUIDES.iter().find(|(of, _)| name.starts_with(of));
    if let Some((_, link)) = guide {
        let file = link.split('#').next().unwrap_or(link);
        let text = file.rsplit('/').next().unwrap_or(file);
        let _ = writeln!(page, "\nMore: [{text}]({link}).");
    }
}

fn is_listed(argument: &Arg) -> bool {
    let general = ["help", "version"].contains(&argument.get_id().as_str());
    !argument.is_hide_set() && !general
}

/// The name of a command as it is typed, such as `webfill mapping test`.
fn full_name_of(command: &Command) -> String {
    let name = command.get_display_name().unwrap_or(command.get_name());
    let words = command.get_bin_name().unwrap_or(name);
    words.to_owned()
}

fn description_of(command: &Command) -> String {
    let about = command.get_long_about().or(command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    match about.split_once("\n\n") {
        Some((first, more)) => format!("{first}.\n\n{more}"),
        None => about,
    }
}

/// Formats an argument as it is typed: `--delay SECONDS` for `--delay <SECONDS>`.
fn usage_of(argument: &Arg) -> String {
    let values = match argument
        .get_num_args()
        .is_some_and(|many| many.takes_values())
    {
        true => values_of(argument),
        false => String::new(),
    };
    let Some(long) = argument.get_long() else {
        return values;
    };
    let optional = argument
        .get_num_args()
        .is_some_and(|many| many.min_values() == 0);
    match values.as_str() {
        "" => format!("--{long}"),
        values if optional => format!("--{long}[={values}]"),
        values => format!("--{long} {values}"),
    }
}

fn values_of(argument: &Arg) -> String {
    let possible = argument.get_possible_values();
    if !possible.is_empty() && !argument.is_hide_possible_values_set() {
        let names: Vec<&str> = possible.iter().map(|value| value.get_name()).collect();
        // List the possible values, unless the list is too long for the column. A longer list becomes part of the
        // meaning.
        if names.concat().len() < 40 {
            return names.join("|");
        }
    }
    let names = argument.get_value_names().unwrap_or_default();
    let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
    let many = argument.is_positional()
        && argument
            .get_num_args()
            .is_some_and(|many| many.max_values() > 1);
    format!("{}{}", names.join(" "), if many { "..." } else { "" })
}

/// The help text of an argument for a table cell, and the default value that the text mentions.
fn meaning_and_default(argument: &Arg) -> (String, String) {
    let help = argument.get_long_help().or(argument.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    let (mut meaning, mut default) = match help.split_once(" [default: ") {
        Some((before, rest)) => match rest.split_once(']') {
            Some((default, after)) => (format!("{before}{after}"), default.to_owned()),
            None => (help, String::new()),
        },
        None => (help, String::new()),
    };
    for value in argument.get_possible_values() {
        if let Some(help) = value.get_help() {
            let _ = write!(meaning, "; `{}`: {help}", value.get_name());
        }
    }
    if let Some(variable) = argument.get_env() {
        let _ = write!(meaning, "; also `{}`", variable.to_string_lossy());
    }
    let takes_values = argument.get_action().takes_values();
    if default.is_empty() && takes_values {
        let values = argument.get_default_values().iter();
        let values: Vec<_> = values.map(|value| value.to_string_lossy()).collect();
        default = values.join(",");
    }
    (escape_cell(&meaning), escape_cell(&default))
}

/// Formats a text for one cell of a table.
fn escape_cell(text: &str) -> String {
    text.replace("\n\n", ". ")
        .replace('\n', " ")
        .replace('|', "\\|")
}
