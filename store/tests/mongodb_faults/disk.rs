use std::process::{Command, Stdio};

use serde_json::{Map, json};
use tempfile::TempDir;
use webfill_store::{ExportFilter, ExportKind, Page, Save};
use webfill_test_mongod::Mongod;

use crate::writer::{insist, open_store, page};

/// A small tmpfs, unmounted at the end.
struct SmallDisk(TempDir);

impl SmallDisk {
    /// `None` where mounting is not allowed.
    fn mount() -> Option<SmallDisk> {
        let disk = SmallDisk(tempfile::tempdir().unwrap());
        disk.run_mount(&["-t", "tmpfs", "-o", "size=80m", "tmpfs"])
            .then_some(disk)
    }

    fn run_mount(&self, options: &[&str]) -> bool {
        let mut mount = Command::new("mount");
        mount.args(options).arg(self.0.path()).stderr(Stdio::null());
        mount.status().is_ok_and(|status| status.success())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

/// Text of which compression makes nothing.
fn noise(seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut letter = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'!' + (state % 90) as u8)
    };
    (0..200_000).map(|_| letter()).collect()
}

/// A server without room dies. What it had confirmed is there when it is given room.
#[tokio::test]
async fn a_full_disk_loses_nothing_that_was_acknowledged() {
    let Some(disk) = SmallDisk::mount() else {
        eprintln!("skipped: mounting a small disk is not allowed here");
        return;
    };
    let Some(mut mongod) = Mongod::start_in(disk.0.path()) else {
        return;
    };
    let store = open_store(&mongod.uri("test")).await.unwrap();
    let large = |number| Save {
        page: Page {
            fields: Map::from_iter([(String::from("noise"), json!(noise(number)))]),
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
    assert!(disk.run_mount(&["-o", "remount,size=400m"]));
    mongod.restart();
    insist(|| store.save(vec![large(acknowledged)])).await;
    let everything = ExportFilter::default();
    let rows = store
        .export(ExportKind::Pages, &everything, &mut |_| Ok(()))
        .await;
    assert_eq!(rows.unwrap(), acknowledged + 1);
}
