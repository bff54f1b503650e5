//! Link options of the binary.

use std::process::Command;

fn main() {
    // A debugger finds the symbols, which are packed apart, by the build id. Not every linker adds one by itself.
    println!("cargo::rustc-link-arg-bins=-Wl,--build-id=sha1");
    if is_release() && is_linked_by_lld() {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=safe"); // equal functions become one
    }
    println!("cargo::rerun-if-changed=build.rs");
}

/// Whether the profile is `release`, or one of those like it that optimise.
fn is_release() -> bool {
    var("PROFILE") == "release" && var("OPT_LEVEL") != "0"
}

/// Whether Rust chooses the linker, and chooses LLD: since 1.90 on this target, if the compiler is not a distribution's,
/// which names its builder in its version.
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
