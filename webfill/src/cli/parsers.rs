//! Parsers of values for the flags of several commands.

use std::ffi::OsString;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::Resettable;
use clap::{Args, Command};
use webfill_wire::Follow;

use crate::settings::limits::check_contact;

/// Parses the options of a command that this process runs itself. `arguments` is what a user would type after the
/// command's name.
pub fn parse_options<O: Args>(
    arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> Result<O, clap::Error> {
    parse_with(O::augment_args(unnamed_command()), arguments)
}

/// Like [`parse_options`], but ignores the environment, whose variables are meant for another command.
pub fn parse_options_only<O: Args>(
    arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> Result<O, clap::Error> {
    let command = O::augment_args(unnamed_command());
    parse_with(
        command.mut_args(|arg| arg.env(Resettable::Reset)),
        arguments,
    )
}

fn unnamed_command() -> Command {
    Command::new("webfill").no_binary_name(true)
}

fn parse_with<O: Args>(
    mut command: Command,
    arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> Result<O, clap::Error> {
    let mut matches = command.try_get_matches_from_mut(arguments)?;
    O::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// Returns a parser of whole numbers within a range. Its error message names both ends.
pub fn whole_number<N>(
    range: RangeInclusive<N>,
) -> impl Fn(&str) -> Result<N, String> + Clone + Send + Sync + 'static
where
    N: FromStr + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    move |text| match text.parse() {
        Ok(number) if range.contains(&number) => Ok(number),
        _ => Err(format!(
            "not a whole number from {} to {}",
            range.start(),
            range.end()
        )),
    }
}

/// Parses a count. If the count is a limit, 0 means that none are allowed.
pub fn parse_count(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| String::from("not a whole number, such as 1000"))
}

pub fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds.is_finite() && (0.0..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("not a number of seconds between 0 and 86400".into()),
    }
}

/// Parses a duration: `90s`, `15m`, `2h`, `1d`, or a number of seconds.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let millis = webfill_api::duration_ms(text)?;
    Ok(Duration::from_millis(millis as u64))
}

/// Like [`parse_duration`], but a unit is required: ages are mostly days, and deleting by age cannot be undone.
pub fn parse_age(text: &str) -> Result<Duration, String> {
    let age = parse_duration(text)?;
    match text.ends_with(|last: char| last.is_ascii_alphabetic()) {
        true => Ok(age),
        false => Err(format!(
            "`{text}` has no unit: write {text}d for days, {text}h for hours or {text}s for seconds"
        )),
    }
}

pub fn parse_follow(text: &str) -> Result<Follow, String> {
    text.parse()
}

/// Parses an id. Ids are parts of keys and of file names, so only some characters are allowed.
pub fn parse_id(text: &str) -> Result<String, String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    match text.len() {
        1..=128 if text.chars().all(allowed) => Ok(text.to_owned()),
        _ => Err("an id has 1 to 128 letters, digits, or - _ . :".into()),
    }
}

pub fn parse_contact(text: &str) -> Result<String, String> {
    check_contact(text).map(|()| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_numbers_that_are_allowed() {
        let parse = whole_number(2..=400_u16);
        assert_eq!((parse("2"), parse("400")), (Ok(2), Ok(400)));
        for wrong in ["2.5", "1", "401", "-3", "", "many", "99999999999999999999"] {
            let error = parse(wrong).unwrap_err();
            assert_eq!(error, "not a whole number from 2 to 400", "{wrong}");
        }
        assert_eq!(parse_count("0"), Ok(0));
        assert!(parse_count("1e6").is_err());
    }

    #[test]
    fn durations_have_units() {
        assert_eq!(parse_duration("90").unwrap().as_secs(), 90);
        assert_eq!(parse_duration("15m").unwrap().as_secs(), 900);
        assert_eq!(parse_duration("1.5h").unwrap().as_secs(), 5_400);
        for wrong in ["", "m", "-1s", "5 weeks", "1w", "infs"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }
}
