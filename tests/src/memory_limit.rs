//! A machine with little memory. This is a control group, which limits the memory of all of its processes together.
//! When memory runs out, the kernel first drops cached pages of files. If that is not enough, it kills one of the
//! processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A control group with its files. It is removed when this value is dropped, provided that its processes have ended.
pub struct MemoryLimit {
    folder: PathBuf,
    files: Files,
}

/// The paths of the files of a control group. They differ between the versions of control groups (Linux,
/// `cgroup-v1/memory` and `cgroup-v2`).
#[derive(Clone, Copy)]
struct Files {
    root: &'static str,
    limit: &'static str,
    /// The file with the line `oom_kill N`, where N is the number of processes that were killed.
    events: &'static str,
}

const VERSIONS: [Files; 2] = [
    Files {
        root: "/sys/fs/cgroup/memory",
        limit: "memory.limit_in_bytes",
        events: "memory.oom_control",
    },
    Files {
        root: "/sys/fs/cgroup",
        limit: "memory.max",
        events: "memory.events",
    },
];

impl MemoryLimit {
    /// Creates a control group with this limit. Panics if the system forbids it, so such tests have the attribute
    /// `#[needs(memory_limit)]`.
    pub fn with_mib(mib: u64) -> MemoryLimit {
        static LIMITS: AtomicU32 = AtomicU32::new(0);
        let number = LIMITS.fetch_add(1, Ordering::SeqCst);
        let name = format!("webfill-test-{}-{number}", std::process::id());
        let made = VERSIONS.into_iter().find_map(|files| {
            let folder = Path::new(files.root).join(&name);
            fs::create_dir(&folder).ok()?;
            let limit = MemoryLimit { folder, files };
            // Swap must count as memory. Not all kernels have these two files, so errors are ignored.
            let _ = fs::write(limit.folder.join("memory.swap.max"), "0");
            let bytes = (mib << 20).to_string();
            fs::write(limit.folder.join(files.limit), &bytes).ok()?;
            let _ = fs::write(limit.folder.join("memory.memsw.limit_in_bytes"), &bytes);
            Some(limit)
        });
        made.expect("control groups for memory, and the right to make one")
    }

    /// The file into which a process writes its id to join the group.
    pub(crate) fn members_file(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }

    /// The number of processes in the group that were killed because memory ran out.
    pub fn killed_count(&self) -> u64 {
        let text = fs::read_to_string(self.folder.join(self.files.events)).expect("its events");
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count.expect("a count").parse().expect("a number")
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        // If a process of a failed test is still in the group, this fails and the folder remains.
        let _ = fs::remove_dir(&self.folder);
    }
}
