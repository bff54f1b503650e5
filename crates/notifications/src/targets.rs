//! The kinds of notification targets, with their permissions and deliveries. `webfill_api` has their settings and the
//! way they are shown.

mod command;
mod file;
mod firehose;
mod mail;
mod target;
mod webhook;

use webfill_api::{NotificationTarget, Refusal, Watch};

pub(crate) use self::target::{DeliveryResources, Target};
pub(crate) use self::webhook::Webhooks;
use crate::permissions::Permissions;

pub(crate) fn target_of(target: &NotificationTarget) -> Box<dyn Target + '_> {
    match target {
        NotificationTarget::Webhook { url, secret_file } => Box::new(webhook::Webhook {
            url,
            secret_file: secret_file.as_deref(),
        }),
        NotificationTarget::Mail(address) => Box::new(mail::Mail(address)),
        NotificationTarget::Command(argv) => Box::new(command::Command(argv)),
        NotificationTarget::File(path) => Box::new(file::File(path)),
        NotificationTarget::Firehose => Box::new(firehose::Firehose),
    }
}

impl Permissions {
    /// Checks the targets of a watch. `path` is the JSON path of the watch.
    pub fn check(&self, watch: &Watch, path: &str) -> Result<(), Refusal> {
        for (index, notify) in watch.notify.iter().enumerate() {
            let at = |key: &str| format!("{path}.notify[{index}].{key}");
            target_of(&notify.target)
                .check(self)
                .map_err(|(key, why)| Refusal::new(&at(key), why))?;
        }
        Ok(())
    }
}
