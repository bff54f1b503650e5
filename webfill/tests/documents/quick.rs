//! Tests that `make quick` finds the tests of each changed file, wherever its crate is.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::program::ROOT;
use crate::repository::Repository;

/// Pairs of a changed file and the filter that selects the tests to run.
const CHANGES: &[(&str, &str)] = &[
    ("dispatcher/src/new.rs", "package(=webfill-dispatcher)"),
    ("crates/wire/src/new/part.rs", "package(=webfill-wire)"),
    (
        "crates/dashboard/templates/new.html",
        "package(=webfill-dashboard)",
    ),
    ("crates/store/Cargo.toml", "package(=webfill-store)"),
    ("tests/mongod/src/new.rs", "package(=webfill-test-mongod)"),
    (
        "tests/simulation/src/new.rs",
        "package(=webfill-simulation)",
    ),
    ("tests/src/new.rs", "binary(=webfill-tests)"),
    ("tests/crawls/new.rs", "(binary(=crawls) & test(/^new::/))"),
    (
        "tests/dashboard/new/part.rs",
        "(binary(=dashboard) & test(/^new::/))",
    ),
    ("tests/fill/new.rs", "(binary(=fill) & test(/^new::/))"),
    ("docs/new.md", "package(=webfill)"),
];

#[test]
fn a_changed_file_selects_the_tests_of_its_package() {
    let copy = RepositoryCopy::new();
    for (file, expected) in CHANGES {
        assert_eq!(copy.chosen_filter(file), *expected, "{file}");
    }
    for file in [
        "deploy/new.toml",
        "tests/deploy/new.sh",
        "tests/fleet/new.rs",
    ] {
        assert_eq!(copy.chosen_filter(file), "", "{file}");
    }
}

/// A copy of this repository's manifests, with a fake cargo that records its arguments.
struct RepositoryCopy {
    folder: tempfile::TempDir,
}

impl RepositoryCopy {
    fn new() -> RepositoryCopy {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let copy = RepositoryCopy { folder };
        let manifests = Repository::read().files.into_iter();
        let manifests = manifests.filter(|path| path.ends_with("Cargo.toml"));
        for path in manifests.chain(["tests/quick.sh".to_owned()]) {
            copy.append(&path, &fs::read(Path::new(ROOT).join(&path)).unwrap());
        }
        copy.append(".gitignore", b"/bin/\n/asked\n");
        copy.append("bin/cargo", b"#!/bin/sh\nprintf '%s\\n' \"$@\" >asked\n");
        let cargo = copy.folder.path().join("bin/cargo");
        fs::set_permissions(cargo, fs::Permissions::from_mode(0o755)).unwrap();
        copy.run("git init -q && git add .");
        copy.run("git -c user.name=a -c user.email=a@example.org commit -q -m all");
        copy
    }

    fn append(&self, path: &str, content: &[u8]) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).unwrap();
        let mut all = fs::read(&path).unwrap_or_default();
        all.extend_from_slice(content);
        fs::write(path, all).unwrap();
    }

    fn run(&self, script: &str) {
        let mut shell = Command::new("bash");
        let shell = shell.args(["-c", script]).current_dir(self.folder.path());
        let output = shell.output().expect("bash starts");
        assert!(output.status.success(), "{script}: {output:?}");
    }

    /// The filter of tests that `make quick` passes to nextest if this file has changed.
    fn chosen_filter(&self, file: &str) -> String {
        self.append(file, b"# changed\n");
        self.run("rm -f asked && PATH=$PWD/bin:$PATH bash tests/quick.sh");
        self.run("git checkout -q . && git clean -qfd");
        let asked = fs::read_to_string(self.folder.path().join("asked")).unwrap_or_default();
        let mut arguments = asked.lines().skip_while(|line| *line != "--filterset");
        arguments.nth(1).unwrap_or_default().to_owned()
    }
}
