//! Regular expressions: `regex` (linear time) where possible, else `fancy-regex` for look-around and back references.
//! The steps of `fancy-regex` are limited, so that no page can make it hang.
//!
//! A compiled expression takes some 100 KB. A mapping set may have thousands, and one process uses only some of them.
//! So expressions are compiled once to check them, dropped, and compiled again at first use.

use std::sync::OnceLock;

use regex::RegexBuilder;

/// The longest expression of any kind, in bytes.
pub(crate) const MAX_EXPRESSION_BYTES: usize = 4096;

/// The limits on the memory of one compiled expression, and on the cache of its searches, in bytes.
const MAX_COMPILED_BYTES: usize = 2 << 20;
const MAX_SEARCH_BYTES: usize = 512 << 10;

/// A regular expression that is known to compile.
#[derive(Debug)]
pub(crate) struct Pattern {
    text: String,
    step_limit: usize,
    /// The name of each group; `None` for a group without a name. Group 0 is the whole match.
    groups: Vec<Option<String>>,
    needs_steps: bool,
    compiled: OnceLock<Compiled>,
}

#[derive(Debug)]
enum Compiled {
    Plain(regex::Regex),
    Fancy(fancy_regex::Regex),
}

/// The search took more steps than allowed on this text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StepLimitExceeded;

/// A match. Group 0 is the whole match.
pub(crate) enum Groups<'t> {
    Plain(regex::Captures<'t>),
    Fancy(fancy_regex::Captures<'t, str>),
}

impl<'t> Groups<'t> {
    /// The text of a group; `None` if the group took no part in the match.
    pub(crate) fn get(&self, group: usize) -> Option<&'t str> {
        match self {
            Groups::Plain(groups) => groups.get(group).map(|found| found.as_str()),
            Groups::Fancy(groups) => groups.get(group).map(|found| found.as_str()),
        }
    }

    /// The range of the whole match, in bytes.
    pub(crate) fn range(&self) -> std::ops::Range<usize> {
        match self {
            Groups::Plain(groups) => groups.get(0).map(|found| found.range()),
            Groups::Fancy(groups) => groups.get(0).map(|found| found.range()),
        }
        .unwrap_or_default()
    }
}

impl Pattern {
    /// Compiles `text` to check it. `step_limit` bounds the backtracking of expressions with look-around or back
    /// references; others need no limit.
    ///
    /// # Errors
    ///
    /// One line that says what is wrong with the expression, and where.
    pub(crate) fn compile(text: &str, step_limit: usize) -> Result<Pattern, String> {
        if text.len() > MAX_EXPRESSION_BYTES {
            return Err(format!(
                "{} bytes; the limit is {MAX_EXPRESSION_BYTES}",
                text.len()
            ));
        }
        let compiled = compile_engine(text, step_limit)?;
        let names = |names: &mut dyn Iterator<Item = Option<&str>>| -> Vec<Option<String>> {
            names.map(|name| name.map(str::to_owned)).collect()
        };
        Ok(Pattern {
            text: text.to_owned(),
            step_limit,
            groups: match &compiled {
                Compiled::Plain(regex) => names(&mut regex.capture_names()),
                Compiled::Fancy(regex) => names(&mut regex.capture_names()),
            },
            needs_steps: matches!(compiled, Compiled::Fancy(_)),
            compiled: OnceLock::new(),
        })
    }

    fn compile_once(&self) -> &Compiled {
        self.compiled.get_or_init(|| {
            compile_engine(&self.text, self.step_limit).expect("what compiled once compiles again")
        })
    }

    /// The expression as it was written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether the expression has look-around or back references, so that its steps are limited.
    pub(crate) fn needs_steps(&self) -> bool {
        self.needs_steps
    }

    pub(crate) fn is_match(&self, text: &str) -> Result<bool, StepLimitExceeded> {
        match self.compile_once() {
            Compiled::Plain(regex) => Ok(regex.is_match(text)),
            Compiled::Fancy(regex) => regex.is_match(text).map_err(|_| StepLimitExceeded),
        }
    }

    /// Calls `visit` with each match, from left to right, until it returns false.
    pub(crate) fn for_each_match<'t>(
        &self,
        text: &'t str,
        mut visit: impl FnMut(Groups<'t>) -> bool,
    ) -> Result<(), StepLimitExceeded> {
        match self.compile_once() {
            Compiled::Plain(regex) => {
                for groups in regex.captures_iter(text) {
                    if !visit(Groups::Plain(groups)) {
                        break;
                    }
                }
            }
            Compiled::Fancy(regex) => {
                for groups in regex.captures_iter(text) {
                    if !visit(Groups::Fancy(groups.map_err(|_| StepLimitExceeded)?)) {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// The number of groups, including the whole match.
    pub(crate) fn group_count(&self) -> usize {
        self.groups.len()
    }

    /// The number of the group called `name`.
    pub(crate) fn group_index(&self, name: &str) -> Option<usize> {
        self.groups
            .iter()
            .position(|known| known.as_deref() == Some(name))
    }

    /// The names of the groups that have one, in order.
    pub(crate) fn group_names(&self) -> impl Iterator<Item = &str> {
        self.groups.iter().flatten().map(String::as_str)
    }
}

fn compile_engine(text: &str, step_limit: usize) -> Result<Compiled, String> {
    let plain = RegexBuilder::new(text)
        .size_limit(MAX_COMPILED_BYTES)
        .dfa_size_limit(MAX_SEARCH_BYTES)
        .build();
    let refusal = match plain {
        Ok(regex) => return Ok(Compiled::Plain(regex)),
        Err(refusal) => refusal,
    };
    let fancy = fancy_regex::RegexBuilder::new(text)
        .backtrack_limit(step_limit)
        .delegate_size_limit(MAX_COMPILED_BYTES)
        .delegate_dfa_size_limit(MAX_SEARCH_BYTES)
        .build();
    match (fancy, refusal) {
        (_, regex::Error::CompiledTooBig(limit)) => Err(format!(
            "the compiled expression takes more than {limit} bytes; use smaller repetitions"
        )),
        (Ok(regex), _) => Ok(Compiled::Fancy(regex)),
        (Err(error), refusal) => Err(error_line(&refusal, &error)),
    }
}

/// The error if neither engine can compile the expression. It is the error of `regex`, unless the expression only uses
/// a feature that `regex` lacks.
fn error_line(refusal: &regex::Error, error: &fancy_regex::Error) -> String {
    let report = refusal.to_string();
    let last_line = report.lines().last().unwrap_or_default();
    let message = last_line.strip_prefix("error: ").unwrap_or(last_line);
    if message.contains("not supported") {
        return error.to_string().replace('\n', " ");
    }
    match report.lines().find_map(caret_column) {
        Some(column) => format!("{message}, at character {column}"),
        None => message.to_owned(),
    }
}

/// The column of the caret in an error report of `regex`, counted from 1. The report indents the expression by four.
fn caret_column(line: &str) -> Option<usize> {
    let caret = line.find('^')?;
    let only_caret = line.trim_start().chars().all(|c| matches!(c, '^' | ' '));
    (only_caret && caret >= 4).then(|| caret - 3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn matches(pattern: &str, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        Pattern::compile(pattern, 1000)
            .unwrap()
            .for_each_match(text, |groups| {
                found.push(groups.get(0).unwrap_or_default().to_owned());
                true
            })
            .unwrap();
        found
    }

    #[test]
    fn plain_expressions_stay_plain_and_look_around_works() {
        assert!(!Pattern::compile(r"\d+", 10).unwrap().needs_steps());
        assert!(Pattern::compile(r"a(?!b)", 10).unwrap().needs_steps());
        assert_eq!(matches(r"\d+", "1 22 333"), ["1", "22", "333"]);
        assert_eq!(matches(r"\b(\w)\w\1\b", "aba abc cdc"), ["aba", "cdc"]);
    }

    #[test]
    fn a_catastrophic_expression_is_given_up_in_milliseconds() {
        let pattern = Pattern::compile(r"^(?:(?:a|aa)(?!x))+$", 20_000).unwrap();
        let text = format!("{}!", "a".repeat(60));
        let start = Instant::now();
        assert_eq!(pattern.is_match(&text), Err(StepLimitExceeded));
        // Without a limit on its steps, the search would practically never end.
        assert!(start.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn errors_fit_on_one_line_and_name_the_place() {
        for (pattern, part) in [
            ("a(b", "unclosed group, at character 2"),
            ("[z-a]", "invalid character class range"),
            (r"(?!a)(", "parenthes"),
            (r"\w{1000}{1000}", "takes more than"),
        ] {
            let error = Pattern::compile(pattern, 10).unwrap_err();
            assert!(error.contains(part), "{pattern}: {error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }
}
