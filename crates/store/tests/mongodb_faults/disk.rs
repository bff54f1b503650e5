use std::process::Command;

use serde_json::{Map, json};
use tempfile::TempDir;
use webfill_store::{ExportFilter, ExportKind, Page, Save};
use webfill_test_mongod::Mongod;
use webfill_test_needs::needs;

use super::writer::{open_store, page, retry_until_accepted};

/// A small tmpfs, unmounted on drop.
struct SmallDisk(TempDir);

impl SmallDisk {
    fn mount() -> SmallDisk {
        let disk = SmallDisk(tempfile::tempdir().unwrap());
        disk.run_mount(&["-t", "tmpfs", "-o", "size=80m", "tmpfs"]);
        disk
    }

    fn run_mount(&self, options: &[&str]) {
        let mut mount = Command::new("mount");
        let mounted = mount.args(options).arg(self.0.path()).status();
        assert!(mounted.unwrap().success(), "cannot mount a small disk");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

/// A text that cannot be compressed.
fn incompressible_text(seed: u64) -> String {
    let mut rng = fastrand::Rng::with_seed(seed);
    (0..200_000)
        .map(|_| char::from(rng.u8(b'!'..b'{')))
        .collect()
}

/// A server dies of a full disk. Once there is room again, it still has everything that it had confirmed.
#[needs(mongod, mount)]
#[tokio::test]
async fn a_full_disk_loses_nothing_that_was_acknowledged() {
    let disk = SmallDisk::mount();
    let mut mongod = Mongod::start_in(disk.0.path());
    let store = open_store(&mongod.uri("test")).await.unwrap();
    let large = |number| Save {
        page: Page {
            fields: Map::from_iter([(String::from("noise"), json!(incompressible_text(number)))]),
            ..page(number)
        },
        records: Vec::new(),
    };
    let mut acknowledged = 0;
    let error = loop {
        match store.save(vec![large(acknowledged)]).await.remove(0) {
            Ok(_) => acknowledged += 1,
            Err(error) => break error,
        }
        assert!(acknowledged < 5_000, "the disk never filled up");
    };
    assert!(error.is_retry(), "{error}");
    mongod.kill();
    disk.run_mount(&["-o", "remount,size=400m"]);
    mongod.restart();
    retry_until_accepted(|| store.save(vec![large(acknowledged)])).await;
    let everything = ExportFilter::default();
    let rows = store
        .export(ExportKind::Pages, &everything, &mut |_| Ok(()))
        .await;
    assert_eq!(rows.unwrap(), acknowledged + 1);
}
