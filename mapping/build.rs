//! Tells the tests which Debian packages with real pages are installed, so that those that need
//! them are reported as ignored where they are not.

use std::path::Path;

const PACKAGES: &[(&str, &str)] = &[
    ("python3_doc", "/usr/share/doc/python3-doc/html/library"),
    ("postgresql_doc", "/usr/share/doc/postgresql-doc-15/html"),
    ("sqlite3_doc", "/usr/share/doc/sqlite3/c3ref"),
];

fn main() {
    for (name, folder) in PACKAGES {
        println!("cargo::rustc-check-cfg=cfg({name})");
        println!("cargo::rerun-if-changed={folder}");
        if Path::new(folder).exists() {
            println!("cargo::rustc-cfg={name}");
        }
    }
}
