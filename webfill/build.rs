//! Sets link options of the binary.

use std::process::Command;

fn main() {
    // A debugger finds the separate file of symbols by the build id, which not every linker adds by default.
    println!("cargo::rustc-link-arg-bins=-Wl,--build-id=sha1");
    if is_release() && is_linked_by_lld() {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=safe"); // equal functions become one
    }
    println!("cargo::rerun-if-changed=build.rs");
}

/// Whether the profile is `release` or inherits from it, and optimises.
fn is_release() -> bool {
    var("PROFILE") == "release" && var("OPT_LEVEL") != "0"
}

/// Whether rustc links with LLD by default, as official compilers have done on this target since version 1.90. A
/// distribution's compiler may have another default; its version text names the distribution.
fn is_linked_by_lld() -> bool {
    let is_chosen_by_rust =
        var("RUSTC_LINKER").is_empty() && var("CARGO_ENCODED_RUSTFLAGS").is_empty();
    let version = Command::new(var("RUSTC")).arg("--version").output();
    let version = version.map_or_else(|_| Vec::new(), |output| output.stdout);
    let has_no_builder = version.iter().filter(|byte| **byte == b'(').count() == 1
        && !version.windows(10).any(|part| part == b"built from");
    is_chosen_by_rust && has_no_builder && var("TARGET") == "x86_64-unknown-linux-gnu"
}

fn var(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}
