//! Gives the binary a build id, whichever linker is used. Debuggers need it to find the symbols, which are packaged
//! separately.

fn main() {
    println!("cargo::rustc-link-arg-bins=-Wl,--build-id=sha1");
    println!("cargo::rerun-if-changed=build.rs");
}
