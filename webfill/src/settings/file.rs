//! Reads the settings file, and finds the lines of its faults.

use std::path::Path;

use toml::Table;
use webfill_service::Fault;

use super::Settings;

/// A settings file with its text, as it was read.
pub(super) struct SettingsFile<'a> {
    path: &'a Path,
    text: String,
}

impl SettingsFile<'_> {
    pub(super) fn read(path: &Path) -> Result<SettingsFile<'_>, Fault> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Fault::usage(format!("cannot read {}: {error}", path.display())))?;
        Ok(SettingsFile { path, text })
    }

    pub(super) fn parse_table(&self) -> Result<Table, Fault> {
        self.text.parse().map_err(|error| {
            // The `Display` of the error would repeat the line, which may contain a password.
            let place = self.line_of(&error);
            let reason = error.message().lines().collect::<Vec<_>>().join(" ");
            Fault::usage(format!("{place}: {reason}"))
        })
    }

    /// The line of a fault that was found in the table of settings. This table includes the environment and has no line
    /// numbers, so the file's text is parsed again.
    pub(super) fn place_of_fault(&self, fault: &toml::de::Error) -> String {
        match toml::from_str::<Settings>(&self.text) {
            Ok(_) => "the environment".into(),
            Err(error) if error.message() == fault.message() => self.line_of(&error),
            // If parsing stops at another fault first, the line of this one is not known.
            Err(_) => self.path.display().to_string(),
        }
    }

    fn line_of(&self, error: &toml::de::Error) -> String {
        let path = self.path.display();
        match error.span().and_then(|span| self.text.get(..span.start)) {
            Some(before) => format!("{path}: line {}", 1 + before.matches('\n').count()),
            None => path.to_string(),
        }
    }
}
