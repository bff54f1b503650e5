//! Errors of the command line, as they are printed.

use std::process::ExitCode;

use clap::error::ErrorKind;
use webfill_service::ExitStatus;

/// Prints the error of a mistyped command in one sentence, or the help text if it was requested.
pub fn print_usage(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // An error means that the reader has closed the pipe, which is allowed.
            let _ = error.print();
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            webfill_service::say!("{}", error.to_string().trim_end());
            ExitCode::from(ExitStatus::Usage.code())
        }
        _ => {
            webfill_service::say!("webfill: {}", usage_sentence(error));
            ExitCode::from(ExitStatus::Usage.code())
        }
    }
}

/// The error in a typed command, as one sentence.
pub fn usage_sentence(error: &clap::Error) -> String {
    let text = error.to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut sentence = lines
        .next()
        .unwrap_or_default()
        .trim_start_matches("error: ")
        .to_owned();
    for line in
        lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"))
    {
        sentence.push_str(if line.starts_with("tip:") { "; " } else { " " });
        sentence.push_str(line.trim_start_matches("tip: "));
    }
    sentence
}
