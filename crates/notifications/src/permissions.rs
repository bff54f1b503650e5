//! What notifications may use. Watches of a fleet come from other machines and may only use what the settings name. A
//! watch on one machine may use everything that its user may. Permissions are checked when a watch is added, and
//! again at each delivery.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::path::{Path, PathBuf};

use webfill_api::{NotificationTarget, Refusal, Watch};

use crate::config::NotificationsConfig;
use crate::folder;
use crate::webhook::Guard;

/// The most bytes of a key.
const MOST_SECRET_BYTES: u64 = 4_096;

const NO_SECRETS: &str = "expected a file in the folder of the webhook's host below `notifications.secrets_dir` of the dispatcher's settings";
const NO_FILES: &str =
    "expected a file below the folder `notifications.files_dir` of the dispatcher's settings";
const NO_COMMAND: &str = "this dispatcher does not run it: add the whole list, the program and its arguments, to `notifications.commands` in its settings";
const NO_SERVER: &str = "no mail leaves this machine: set `notifications.smtp` and `notifications.mail_from` in the settings";
const NO_RECIPIENT: &str = "this dispatcher does not write to it: add the address, or @DOMAIN, to `notifications.mail_to` in its settings";

/// The permissions of notifications.
#[derive(Debug, Clone)]
pub struct Permissions {
    pub config: NotificationsConfig,
    is_of_fleet: bool,
}

impl Permissions {
    pub fn of_fleet(config: NotificationsConfig) -> Permissions {
        Permissions {
            config,
            is_of_fleet: true,
        }
    }

    /// The permissions of the user of this machine.
    pub fn of_user(config: NotificationsConfig) -> Permissions {
        Permissions {
            config,
            is_of_fleet: false,
        }
    }

    /// Checks the targets of a watch. `path` is the place of the watch.
    pub fn check(&self, watch: &Watch, path: &str) -> Result<(), Refusal> {
        for (index, notify) in watch.notify.iter().enumerate() {
            let at = |key: &str| format!("{path}.notify[{index}].{key}");
            self.judge(&notify.target)
                .map_err(|(key, why)| Refusal::new(&at(key), why))?;
        }
        Ok(())
    }

    /// The error names the key of the target.
    pub(crate) fn judge(&self, target: &NotificationTarget) -> Result<(), (&'static str, String)> {
        let refused = |key, why: &str| Err((key, why.to_owned()));
        match target {
            NotificationTarget::Mail(_) if self.config.smtp.is_none() => refused("mail", NO_SERVER),
            NotificationTarget::Firehose if !self.is_of_fleet => {
                refused("firehose", "only the dispatcher of a fleet has one")
            }
            _ if !self.is_of_fleet => Ok(()),
            NotificationTarget::Webhook { url, secret_file } => {
                // The addresses of a name are only known when it is posted to.
                Guard::new(self.may_be_private())
                    .judge_address_in(url)
                    .map_err(|why| ("webhook", why))?;
                match secret_file {
                    Some(file) if !is_below(self.secrets_of(url).as_deref(), file) => {
                        refused("secret_file", NO_SECRETS)
                    }
                    _ => Ok(()),
                }
            }
            NotificationTarget::Mail(address) => match self.may_write_to(address) {
                true => Ok(()),
                false => refused("mail", NO_RECIPIENT),
            },
            NotificationTarget::Command(argv) => {
                let mut allowed = self.config.commands.iter();
                match allowed.any(|allowed| allowed.argv() == argv) {
                    true => Ok(()),
                    false => refused("command", NO_COMMAND),
                }
            }
            NotificationTarget::File(file) if !is_below(self.config.files_dir.as_deref(), file) => {
                refused("file", NO_FILES)
            }
            NotificationTarget::File(_) | NotificationTarget::Firehose => Ok(()),
        }
    }

    /// The folder of the keys that sign posts to this host. Other keys must not: a watch could otherwise obtain a
    /// signature that another receiver takes for genuine.
    fn secrets_of(&self, url: &str) -> Option<PathBuf> {
        let url = reqwest::Url::parse(url).ok()?;
        let host = url.host_str()?;
        let is_name = !host.is_empty() && !host.starts_with('.') && !host.contains('/');
        is_name.then(|| self.config.secrets_dir.as_ref().map(|dir| dir.join(host)))?
    }

    fn may_write_to(&self, address: &str) -> bool {
        let address = address.to_ascii_lowercase();
        self.config.mail_to.iter().any(|allowed| {
            let allowed = allowed.to_ascii_lowercase();
            match allowed.starts_with('@') {
                true => address.ends_with(&allowed),
                false => address == allowed,
            }
        })
    }

    pub(crate) fn may_be_private(&self) -> bool {
        !self.is_of_fleet || self.config.allow_private_webhooks
    }

    pub(crate) fn open_to_append(&self, file: &str) -> Result<File, String> {
        let mut options = OpenOptions::new();
        self.open(
            file,
            options.read(true).append(true).create(true),
            NO_FILES,
            self.config.files_dir.as_deref(),
        )
    }

    /// The key in a file, without the line end.
    pub(crate) fn secret(&self, url: &str, file: &str) -> Result<Vec<u8>, String> {
        let folder = self.secrets_of(url);
        let mut options = OpenOptions::new();
        let opened = self.open(file, options.read(true), NO_SECRETS, folder.as_deref())?;
        let mut secret = Vec::new();
        opened
            .take(MOST_SECRET_BYTES)
            .read_to_end(&mut secret)
            .map_err(|error| format!("cannot read `secret_file` {file}: {error}"))?;
        while secret.last().is_some_and(u8::is_ascii_whitespace) {
            secret.pop();
        }
        match secret.is_empty() {
            true => Err(format!("`secret_file` {file} is empty")),
            false => Ok(secret),
        }
    }

    fn open(
        &self,
        file: &str,
        options: &mut OpenOptions,
        refused: &str,
        allowed: Option<&Path>,
    ) -> Result<File, String> {
        if self.is_of_fleet {
            let opened = allowed.and_then(|allowed| folder::open(allowed, file, options));
            return opened.ok_or_else(|| refused.to_owned());
        }
        let opened = folder::plainly(options).open(file);
        opened.map_err(|error| format!("cannot open {file}: {error}"))
    }
}

fn is_below(allowed: Option<&Path>, file: &str) -> bool {
    allowed.is_some_and(|allowed| folder::is_below(allowed, file))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::config::AllowedCommand;

    fn watch(notify: Value) -> Watch {
        let watch = json!({"name": "w", "urls": ["http://a.org/"], "schedule": "every 1h",
                           "notify": [notify]});
        Watch::parse(watch).unwrap()
    }

    #[test]
    fn watches_of_a_fleet_use_only_resources_named_in_the_settings() {
        let work = tempfile::tempdir().unwrap();
        for host in ["a.org", "b.org"] {
            std::fs::create_dir(work.path().join(host)).unwrap();
            std::fs::write(work.path().join(host).join("key"), host).unwrap();
        }
        std::fs::write(work.path().join("key"), "of all\n").unwrap();
        let none = Permissions::of_fleet(NotificationsConfig::default());
        let named = Permissions::of_fleet(NotificationsConfig {
            smtp: Some("smtp://mx.example".into()),
            mail_from: Some("me@b.example".into()),
            mail_to: vec!["a@b.example".into(), "@C.example".into()],
            commands: vec![
                AllowedCommand::Program("/bin/plain".into()),
                AllowedCommand::Arguments(vec!["/bin/notify".into(), "x".into()]),
            ],
            files_dir: Some(work.path().into()),
            secrets_dir: Some(work.path().into()),
            ..NotificationsConfig::default()
        });
        for (notify, key) in [
            (
                json!({"webhook": "https://a.org/", "secret_file": "key"}),
                "secret_file",
            ),
            (json!({"mail": "a@b.example"}), "mail"),
            (json!({"mail": "x@c.example"}), "mail"),
            (json!({"command": ["/bin/notify", "x"]}), "command"),
            (json!({"command": ["/bin/plain"]}), "command"),
            (json!({"file": "out.jsonl"}), "file"),
        ] {
            let refusal = none.check(&watch(notify.clone()), "$.watch").unwrap_err();
            assert_eq!(refusal.path, format!("$.watch.notify[0].{key}"));
            assert!(
                refusal.message.contains("notifications."),
                "{}",
                refusal.message
            );
            assert_eq!(named.check(&watch(notify), "$"), Ok(()));
        }
        for wrong in [
            json!({"webhook": "https://a.org/", "secret_file": "/etc/passwd"}),
            json!({"webhook": "https://a.org/", "secret_file": "../b.org/key"}),
            json!({"webhook": "https://c.org/", "secret_file": "key"}),
            json!({"webhook": "https://../", "secret_file": "key"}),
            json!({"webhook": "https://./", "secret_file": "key"}),
            json!({"mail": "x@evilc.example"}),
            json!({"mail": "b@b.example"}),
            json!({"command": ["/bin/sh", "-c", "x"]}),
            json!({"command": ["/bin/notify"]}),
            json!({"command": ["/bin/notify", "y"]}),
            json!({"command": ["/bin/notify", "x", "y"]}),
            json!({"command": ["/bin/notify", "x "]}),
            json!({"command": ["/bin/plain", "x"]}),
            json!({"webhook": "http://127.0.0.1:8080/x"}),
            json!({"webhook": "http://0x7f.1/"}),
            json!({"webhook": "https://[::ffff:10.0.0.1]/"}),
            json!({"webhook": "http://169.254.169.254/latest"}),
            json!({"webhook": "http://0.0.0.0/"}),
            json!({"file": "../out.jsonl"}),
        ] {
            let given = json!({"name": "w", "urls": ["http://a.org/"], "schedule": "every 1h",
                               "notify": [wrong.clone()]});
            let refused = Watch::parse(given).and_then(|watch| named.check(&watch, "$"));
            assert!(refused.is_err(), "{wrong}");
        }
        assert_eq!(
            none.check(&watch(json!({"webhook": "https://a.org/"})), "$"),
            Ok(())
        );
        let private = Permissions::of_fleet(NotificationsConfig {
            allow_private_webhooks: true,
            ..NotificationsConfig::default()
        });
        let to = |url: &str| private.check(&watch(json!({"webhook": url})), "$");
        assert_eq!(to("http://127.0.0.1:8080/x"), Ok(()));
        assert_eq!(
            to("http://0.0.0.0/").unwrap_err().path,
            "$.notify[0].webhook"
        );
        assert_eq!(named.secret("https://a.org/x", "key").unwrap(), b"a.org");
        assert_eq!(named.secret("https://b.org/x", "key").unwrap(), b"b.org");
        assert!(named.secret("https://c.org/x", "key").is_err());
        assert!(none.secret("https://a.org/x", "key").is_err());
    }

    #[test]
    fn users_may_use_their_own_resources() {
        let user = Permissions::of_user(NotificationsConfig::default());
        for fine in [
            json!({"webhook": "http://127.0.0.1/", "secret_file": "/etc/hostname"}),
            json!({"command": ["/bin/sh", "-c", "x"]}),
            json!({"file": "../out.jsonl"}),
        ] {
            assert_eq!(user.check(&watch(fine.clone()), "$"), Ok(()), "{fine}");
        }
        assert!(
            user.check(&watch(json!({"mail": "a@b.example"})), "$")
                .is_err()
        );
        assert!(user.check(&watch(json!({"firehose": true})), "$").is_err());
    }
}
