//! The settings of notifications (`[notifications]`).

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::smtp_address::SmtpAddress;

/// The resources of the dispatcher's machine that a fleet's notifications may use, and how mail is sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NotificationsConfig {
    /// The server that sends mail: `smtps://HOST[:PORT]`, `smtp://HOST[:PORT]`, or `plain://127.0.0.1[:PORT]`. `None`
    /// disables mail.
    pub smtp: Option<String>,
    pub smtp_user: Option<String>,
    pub smtp_password_file: Option<PathBuf>,
    /// The sender's mail address.
    pub mail_from: Option<String>,
    /// Addresses that watches of a fleet may write to; `@DOMAIN` stands for all addresses of a domain.
    pub mail_to: Vec<String>,
    /// The programs that a watch may run if a dispatcher serves it, each with all of its arguments.
    pub commands: Vec<AllowedCommand>,
    /// The folder of the files that a watch may append to if a dispatcher serves it.
    pub files_dir: Option<PathBuf>,
    /// The folder of keys that watches of a fleet may sign webhook posts with. Keys for a host are in a subfolder with
    /// the host's name.
    pub secrets_dir: Option<PathBuf>,
    /// Whether watches of a fleet may post to private addresses.
    pub allow_private_webhooks: bool,
    /// A PEM file of certificate authorities that are trusted in addition to the usual ones.
    pub ca_file: Option<PathBuf>,
    /// An alert is raised when a notification has been undeliverable for this many seconds.
    pub undelivered_after: f64,
}

/// A program that may run, with exactly these arguments: a program may be safe with some arguments, and do anything
/// with others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AllowedCommand {
    /// A program without arguments.
    Program(String),
    /// The program, and its arguments.
    Arguments(Vec<String>),
}

impl AllowedCommand {
    pub(crate) fn argv(&self) -> &[String] {
        match self {
            AllowedCommand::Program(program) => std::slice::from_ref(program),
            AllowedCommand::Arguments(argv) => argv,
        }
    }
}

impl Default for NotificationsConfig {
    fn default() -> Self {
        NotificationsConfig {
            smtp: None,
            smtp_user: None,
            smtp_password_file: None,
            mail_from: None,
            mail_to: Vec::new(),
            commands: Vec::new(),
            files_dir: None,
            secrets_dir: None,
            allow_private_webhooks: false,
            ca_file: None,
            undelivered_after: 600.0,
        }
    }
}

impl NotificationsConfig {
    /// Checks the settings. The error names the key.
    pub fn check(&self) -> Result<(), String> {
        if let Some(smtp) = &self.smtp {
            SmtpAddress::parse(smtp)
                .map_err(|why| format!("notifications.smtp = \"{smtp}\": {why}"))?;
            if self.mail_from.is_none() {
                return Err(
                    "notifications.mail_from: mail needs a sender such as webfill@b.example".into(),
                );
            }
        }
        if let Some(from) = &self.mail_from
            && from.parse::<lettre::Address>().is_err()
        {
            return Err(format!(
                "notifications.mail_from = \"{from}\": expected an address of mail"
            ));
        }
        if self.smtp_user.is_some() != self.smtp_password_file.is_some() {
            return Err(
                "notifications.smtp_user and notifications.smtp_password_file need each other"
                    .into(),
            );
        }
        for command in &self.commands {
            let program = command.argv().first().map_or("", String::as_str);
            if !Path::new(program).is_absolute() {
                return Err(format!(
                    "notifications.commands: `{program}`: expected the whole path of a program, or a list of it and its arguments"
                ));
            }
        }
        match (1.0..=86_400.0).contains(&self.undelivered_after) {
            true => Ok(()),
            false => Err(format!(
                "notifications.undelivered_after = {}: expected 1 to 86400 seconds",
                self.undelivered_after
            )),
        }
    }

    pub fn undelivered_after_ms(&self) -> i64 {
        (self.undelivered_after * 1_000.0) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_setting_is_named() {
        let refused = |change: fn(&mut NotificationsConfig)| {
            let mut config = NotificationsConfig::default();
            change(&mut config);
            config.check().unwrap_err()
        };
        assert_eq!(NotificationsConfig::default().check(), Ok(()));
        for (why, key) in [
            (
                refused(|config| config.smtp = Some("mx".into())),
                "notifications.smtp",
            ),
            (
                refused(|config| config.smtp = Some("smtp://mx".into())),
                "notifications.mail_from",
            ),
            (
                refused(|config| config.mail_from = Some("me".into())),
                "notifications.mail_from",
            ),
            (
                refused(|config| config.smtp_user = Some("me".into())),
                "notifications.smtp_user",
            ),
            (
                refused(|config| config.commands = vec![AllowedCommand::Program("mail".into())]),
                "notifications.commands",
            ),
            (
                refused(|config| config.commands = vec![AllowedCommand::Arguments(vec![])]),
                "notifications.commands",
            ),
            (
                refused(|config| config.undelivered_after = 0.0),
                "notifications.undelivered_after",
            ),
        ] {
            assert!(why.contains(key), "{why}");
        }
    }
}
