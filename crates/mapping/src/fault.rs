//! Errors in mapping files, for the person who writes them: file, line, JSON path, the invalid text,
//! and the most similar valid name, if there is one.

use std::fmt;

/// An error in a mapping file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The name of the file, as the loader was given it.
    pub source: String,
    /// The line, counted from 1; `None` if the file could not be read.
    pub line: Option<usize>,
    /// The column, counted from 1; `None` unless the text is not valid JSON.
    pub column: Option<usize>,
    /// The path in the JSON, such as `fields[1].processors[0].parameters.expression`; empty for the file as a whole.
    pub path: String,
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(column) = self.column {
            write!(f, ":{column}")?;
        }
        if !self.path.is_empty() {
            write!(f, ": {}", self.path)?;
        }
        write!(f, ": {}", self.message)
    }
}

/// All errors in a set of mappings. They are displayed one per line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct LoadErrors(pub Vec<Fault>);

impl fmt::Display for LoadErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.0.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{fault}")?;
        }
        Ok(())
    }
}

/// Formats a text for an error message: in quotes, on one line, shortened.
pub(crate) fn quote(text: &str) -> String {
    const SHOWN_CHARS: usize = 120;
    let mut shown = String::with_capacity(text.len().min(SHOWN_CHARS) + 2);
    shown.push('"');
    for (index, character) in text.chars().enumerate() {
        if index == SHOWN_CHARS {
            shown.push('…');
            break;
        }
        match character {
            '\n' => shown.push_str("\\n"),
            '\t' => shown.push_str("\\t"),
            control if control.is_control() => shown.extend(control.escape_unicode()),
            other => shown.push(other),
        }
    }
    shown.push('"');
    shown
}

/// Sorts names by their similarity to `typed`, the most similar first.
pub fn nearest_first<'n>(typed: &str, names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    let likeness = |name: &str| strsim::jaro_winkler(&typed.to_lowercase(), &name.to_lowercase());
    let mut names: Vec<(f64, &str)> = names
        .into_iter()
        .map(|name| (likeness(name), name))
        .collect();
    names.sort_by(|left, right| right.0.total_cmp(&left.0));
    names.into_iter().map(|(_, name)| name).collect()
}

/// The end of an error message that suggests the name most similar to `typed`; empty if no name is similar.
pub(crate) fn did_you_mean<'n>(typed: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    const NEAR: f64 = 0.75;
    let folded = typed.to_ascii_lowercase().replace('-', "_");
    names
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&folded, name), name))
        .filter(|(nearness, _)| *nearness >= NEAR)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, name)| format!(", did you mean `{name}`?"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_names_file_line_path_and_text() {
        let fault = Fault {
            source: "shop.json".into(),
            line: Some(12),
            column: None,
            path: "fields[0].name".into(),
            message: format!("bad name {}", quote("A\nB")),
        };
        assert_eq!(
            fault.to_string(),
            r#"shop.json:12: fields[0].name: bad name "A\nB""#
        );
    }

    #[test]
    fn the_nearest_name_is_suggested_and_a_far_one_is_not() {
        let names = ["expression", "pattern", "selector"];
        assert_eq!(
            did_you_mean("expresion", names),
            ", did you mean `expression`?"
        );
        assert_eq!(did_you_mean("zzz", names), "");
    }

    #[test]
    fn names_are_listed_by_their_likeness() {
        let names = ["born", "home_page", "name"];
        assert_eq!(nearest_first("Nam", names)[0], "name");
        assert_eq!(nearest_first("homepage", names)[0], "home_page");
        assert_eq!(nearest_first("zzz", names), names);
    }

    #[test]
    fn quoted_text_is_short_and_on_one_line() {
        let long = quote(&"x".repeat(5000));
        assert!(long.chars().count() < 130);
        assert_eq!(quote("\u{1b}[31m"), r#""\u{1b}[31m""#);
    }
}
