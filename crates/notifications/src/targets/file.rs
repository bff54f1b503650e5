//! Appends a notification to a file as a line of JSON. Success is reported only once the line is on disk.

use std::fs::OpenOptions;
use std::sync::Arc;

use async_trait::async_trait;

use super::target::{
    DeliveryResources, Target, TargetRefusal, notification_with_key, run_blocking,
};
use crate::delivery::Delivery;
use crate::folder::is_below;
use crate::json_lines::append_line;
use crate::permissions::Permissions;
use crate::verdict::Verdict;

const NO_FILES: &str =
    "expected a file below the folder `notifications.files_dir` of the dispatcher's settings";

/// A target that is a file, by its path.
pub(super) struct File<'a>(pub(super) &'a str);

#[async_trait]
impl Target for File<'_> {
    fn check(&self, permissions: &Permissions) -> Result<(), TargetRefusal> {
        let folder = permissions.config.files_dir.as_deref();
        let is_allowed = || folder.is_some_and(|folder| is_below(folder, self.0));
        match !permissions.is_of_fleet() || is_allowed() {
            true => Ok(()),
            false => Err(("file", NO_FILES.to_owned())),
        }
    }

    async fn deliver(&self, means: &Arc<DeliveryResources>, delivery: &Arc<Delivery>) -> Verdict {
        let (means, delivery) = (Arc::clone(means), Arc::clone(delivery));
        let path = self.0.to_owned();
        run_blocking(move || append(&means.permissions, &path, &delivery)).await
    }
}

fn append(permissions: &Permissions, path: &str, delivery: &Delivery) -> Verdict {
    let mut options = OpenOptions::new();
    let options = options.read(true).append(true).create(true);
    let folder = permissions.config.files_dir.as_deref();
    let appended = permissions
        .open(path, options, folder, NO_FILES)
        .and_then(|opened| {
            let appended = append_line(opened, &notification_with_key(delivery));
            appended.map_err(|error| format!("cannot append to {path}: {error}"))
        });
    appended.map_or_else(Verdict::Failed, |()| Verdict::Delivered)
}
