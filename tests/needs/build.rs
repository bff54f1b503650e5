//! Checks which requirements of tests beyond Rust this machine meets: servers, programs, packages with real pages,
//! rights. The result is compiled into the attribute `needs`.
//!
//! This script runs again when one of these changes:
//!
//! - this file, which `deploy/install-build-deps.sh` touches when it has installed packages;
//! - the folder that `deploy/install-mongod.sh` downloads a server into, the folder that `tests/released.sh` builds the
//!   released webfill into, or the folders where `tests/warc/install.sh`, `tests/mail/install.sh`,
//!   `tests/office/install.sh`, `tests/parquet/install.sh`, `tests/prometheus/install.sh` and
//!   `tests/dashboard/install.sh` record their installations;
//! - an environment variable that names or demands one of these programs.
//!
//! Only paths within the checkout are watched, because they exist on every machine. Cargo treats a missing path as
//! changed. It would run this script and rebuild all tests at every build.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

struct Requirement {
    name: &'static str,
    is_met: fn() -> bool,
    /// The reason that is shown for each test that is ignored because of this requirement.
    reason: &'static str,
}

const REQUIREMENTS: [Requirement; 23] = [
    Requirement {
        name: "mongod",
        is_met: has_mongod,
        reason: "needs a MongoDB server: run deploy/install-mongod.sh",
    },
    Requirement {
        name: "released",
        is_met: has_released,
        reason: "needs the webfill that was released last: run tests/released.sh, which says whether there is one",
    },
    Requirement {
        name: "warc_tools",
        is_met: || warc_tools_folder().join("tools").is_file(),
        reason: "needs warcio and pywb: run tests/warc/install.sh",
    },
    Requirement {
        name: "mail_tools",
        is_met: || mail_tools_folder().join("tools").is_file(),
        reason: "needs aiosmtpd: run tests/mail/install.sh",
    },
    Requirement {
        name: "office_tools",
        is_met: || office_tools_folder().join("tools").is_file(),
        reason: "needs xlwt: run tests/office/install.sh",
    },
    Requirement {
        name: "parquet_tools",
        is_met: || parquet_tools_folder().join("tools").is_file(),
        reason: "needs pyarrow: run tests/parquet/install.sh",
    },
    Requirement {
        name: "prometheus",
        is_met: || prometheus_folder().join("tools").is_file(),
        reason: "needs prometheus and promtool: run tests/prometheus/install.sh",
    },
    Requirement {
        name: "chromium",
        is_met: || can_run("chromium", &["--version"]),
        reason: "needs the package chromium",
    },
    Requirement {
        name: "chromedriver",
        is_met: || can_run("chromium", &["--version"]) && can_run("chromedriver", &["--version"]),
        reason: "needs the packages chromium and chromium-driver",
    },
    Requirement {
        name: "axe",
        is_met: || axe_folder().join("tools").is_file(),
        reason: "needs axe-core: run tests/dashboard/install.sh",
    },
    Requirement {
        name: "namespaces",
        is_met: has_namespaces,
        reason: "needs network namespaces: this user may not create them (unshare --net --mount)",
    },
    Requirement {
        name: "mount",
        is_met: can_mount,
        reason: "needs the right to mount a tmpfs: run the tests as root",
    },
    Requirement {
        name: "loop_mount",
        is_met: can_mount_image,
        reason: "needs the right to mount an ext4 image: run the tests as root, with loop devices and mkfs.ext4",
    },
    Requirement {
        name: "memory_limit",
        is_met: can_limit_memory,
        reason: "needs the right to make a control group for memory: run the tests as root",
    },
    Requirement {
        name: "birth_time",
        is_met: || {
            std::fs::metadata(std::env::temp_dir()).is_ok_and(|folder| folder.created().is_ok())
        },
        reason: "needs a temporary folder on a file system that keeps when a file was created",
    },
    Requirement {
        name: "libfaketime",
        is_met: has_libfaketime,
        reason: "needs the package libfaketime",
    },
    Requirement {
        name: "python3_zmq",
        is_met: || can_run("/usr/bin/python3", &["-c", "import zmq"]),
        reason: "needs the package python3-zmq",
    },
    Requirement {
        name: "root",
        is_met: || std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0),
        reason: "this user may not give files to others",
    },
    Requirement {
        name: "curl",
        is_met: || can_run("curl", &["--version"]),
        reason: "needs the package curl",
    },
    Requirement {
        name: "script",
        is_met: || can_run("script", &["--version"]),
        reason: "needs the program script (package bsdutils)",
    },
    Requirement {
        name: "python3_doc",
        is_met: || Path::new("/usr/share/doc/python3-doc/html/library").is_dir(),
        reason: "needs the package python3-doc",
    },
    Requirement {
        name: "postgresql_doc",
        is_met: || Path::new("/usr/share/doc/postgresql-doc-15/html").is_dir(),
        reason: "needs the package postgresql-doc-15",
    },
    Requirement {
        name: "sqlite3_doc",
        is_met: || Path::new("/usr/share/doc/sqlite3/c3ref").is_dir(),
        reason: "needs the package sqlite3-doc",
    },
];

/// The environment variables that require tests with a MongoDB server to run. If there is no server, these tests fail.
const SERVER_IS_REQUIRED: [&str; 3] = ["CI", "REQUIRE_MONGOD", "MONGODB_URI"];

/// The environment variable that requires tests with the released webfill to run. If there is no such program, they
/// fail.
const RELEASED_IS_REQUIRED: &str = "REQUIRE_RELEASED";

fn main() {
    let mut table = String::from("const REQUIREMENTS: &[(&str, Option<&str>)] = &[\n");
    for requirement in REQUIREMENTS {
        let missing = (!(requirement.is_met)()).then_some(requirement.reason);
        table += &format!("    ({:?}, {missing:?}),\n", requirement.name);
    }
    table += "];\n";
    let file = out_dir().join("requirements.rs");
    std::fs::write(&file, table).expect("cargo's folder for build scripts is writable");
    print_rerun_rules();
}

fn print_rerun_rules() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={RELEASED_IS_REQUIRED}");
    for folder in [
        fetched_servers(),
        released_folder(),
        warc_tools_folder(),
        mail_tools_folder(),
        office_tools_folder(),
        parquet_tools_folder(),
        prometheus_folder(),
        axe_folder(),
    ] {
        create_old_folder(&folder);
        println!("cargo::rerun-if-changed={}", folder.display());
    }
    for name in SERVER_IS_REQUIRED {
        println!("cargo::rerun-if-env-changed={name}");
    }
}

/// Creates an empty folder if nothing was downloaded yet, so that there is a path to watch. The folder must look old,
/// because cargo would treat a folder newer than this run as changed.
fn create_old_folder(folder: &Path) {
    if !folder.exists() && std::fs::create_dir_all(folder).is_ok() {
        let opened = std::fs::File::open(folder);
        let _ = opened.and_then(|folder| folder.set_modified(SystemTime::UNIX_EPOCH));
    }
}

fn out_dir() -> PathBuf {
    PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"))
}

fn fetched_servers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/mongod")
}

fn released_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/released")
}

fn warc_tools_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/warc-tools/installed")
}

fn mail_tools_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/mail-tools/installed")
}

fn office_tools_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/office-tools/installed")
}

fn parquet_tools_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/parquet-tools/installed")
}

fn prometheus_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/prometheus/installed")
}

fn axe_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/dashboard-tools/installed")
}

/// Whether the released program exists. As long as there is no release, a program from an earlier build does not count.
fn has_released() -> bool {
    let commit = include_str!("../released.sh")
        .lines()
        .find_map(|line| line.strip_prefix("COMMIT="));
    let is_there = || {
        std::env::var_os(RELEASED_IS_REQUIRED).is_some()
            || released_folder().join("webfill").is_file()
    };
    commit.is_some_and(|commit| !commit.is_empty()) && is_there()
}

/// Whether `webfill-test-mongod` will find a server: one that is named or required by the environment, in the PATH, or
/// downloaded.
fn has_mongod() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some();
    let is_fetched = || {
        let versions = std::fs::read_dir(fetched_servers()).into_iter().flatten();
        versions
            .flatten()
            .any(|version| version.path().join("mongod").is_file())
    };
    SERVER_IS_REQUIRED.into_iter().any(is_set) || can_run("mongod", &["--version"]) || is_fetched()
}

/// Whether namespaces can be created in the way that `webfill_tests::isolation` uses.
fn has_namespaces() -> bool {
    let choices: [&[&str]; 2] = [
        &["--net", "--mount", "true"],
        &["--net", "--mount", "--map-root-user", "true"],
    ];
    choices
        .iter()
        .any(|arguments| can_run("unshare", arguments))
}

fn can_mount() -> bool {
    let folder = out_dir().join("mount");
    let folder = folder.to_string_lossy();
    std::fs::create_dir_all(&*folder).is_ok()
        && can_run(
            "mount",
            &["-t", "tmpfs", "-o", "size=64k", "tmpfs", &folder],
        )
        && can_run("umount", &["-l", &folder])
}

/// Whether an image can be mounted in the way that `webfill_tests::isolation` uses.
fn can_mount_image() -> bool {
    let out_dir = out_dir();
    let (image, folder) = (out_dir.join("ext4"), out_dir.join("ext4-mount"));
    let (image, folder) = (image.to_string_lossy(), folder.to_string_lossy());
    let can_mount = std::fs::create_dir_all(&*folder).is_ok()
        && can_run("truncate", &["-s", "1M", &image])
        && can_run("mkfs.ext4", &["-q", "-F", &image])
        && can_run("mount", &["-o", "loop", &image, &folder])
        && can_run("umount", &["-l", &folder]);
    // The image may not exist, so an error is ignored.
    let _ = std::fs::remove_file(&*image);
    can_mount
}

/// Whether memory can be limited in the way that `webfill_tests::memory_limit` uses, with either version of control
/// groups.
fn can_limit_memory() -> bool {
    let choices = [
        ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        ("/sys/fs/cgroup", "memory.max"),
    ];
    choices.iter().any(|(root, limit)| {
        let group = Path::new(root).join(format!("webfill-needs-{}", std::process::id()));
        let is_made = std::fs::create_dir(&group).is_ok();
        let is_limited = std::fs::write(group.join(limit), "536870912").is_ok();
        is_made && std::fs::remove_dir(&group).is_ok() && is_limited
    })
}

fn has_libfaketime() -> bool {
    ["x86_64", "aarch64"].iter().any(|machine| {
        let library = format!("/usr/lib/{machine}-linux-gnu/faketime/libfaketimeMT.so.1");
        Path::new(&library).is_file()
    })
}

fn can_run(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    command.output().is_ok_and(|output| output.status.success())
}
