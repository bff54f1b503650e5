//! The permissions of notifications. Watches of a fleet come from other machines, and may use only targets that the
//! settings permit. A watch of `webfill crawl` may use everything that its user may. Permissions are checked when a
//! watch is added, and again at each delivery.

use std::fs::{File, OpenOptions};
use std::path::Path;

use crate::config::NotificationsConfig;
use crate::folder;

/// The settings of notifications, and whether watches may use only targets that these settings permit.
#[derive(Debug, Clone)]
pub struct Permissions {
    pub config: NotificationsConfig,
    is_of_fleet: bool,
}

impl Permissions {
    pub fn for_fleet(config: NotificationsConfig) -> Permissions {
        Permissions {
            config,
            is_of_fleet: true,
        }
    }

    /// Permissions for watches of a user on this machine, which may use any target.
    pub fn for_user(config: NotificationsConfig) -> Permissions {
        Permissions {
            config,
            is_of_fleet: false,
        }
    }

    pub(crate) fn is_of_fleet(&self) -> bool {
        self.is_of_fleet
    }

    pub(crate) fn allows_private_webhooks(&self) -> bool {
        !self.is_of_fleet || self.config.allow_private_webhooks
    }

    /// Opens a file. For a watch of a fleet, the error is `refused` if the file is not below the folder `allowed`.
    pub(crate) fn open(
        &self,
        file: &str,
        options: &mut OpenOptions,
        allowed: Option<&Path>,
        refused: &str,
    ) -> Result<File, String> {
        if self.is_of_fleet {
            let opened = allowed.and_then(|allowed| folder::open(allowed, file, options));
            return opened.ok_or_else(|| refused.to_owned());
        }
        let opened = folder::set_open_flags(options).open(file);
        opened.map_err(|error| format!("cannot open {file}: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use webfill_api::Watch;

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
        let none = Permissions::for_fleet(NotificationsConfig::default());
        let named = Permissions::for_fleet(NotificationsConfig {
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
        let private = Permissions::for_fleet(NotificationsConfig {
            allow_private_webhooks: true,
            ..NotificationsConfig::default()
        });
        let to = |url: &str| private.check(&watch(json!({"webhook": url})), "$");
        assert_eq!(to("http://127.0.0.1:8080/x"), Ok(()));
        assert_eq!(
            to("http://0.0.0.0/").unwrap_err().path,
            "$.notify[0].webhook"
        );
    }

    #[test]
    fn users_may_use_their_own_resources() {
        let user = Permissions::for_user(NotificationsConfig::default());
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
