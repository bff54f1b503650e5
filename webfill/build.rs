//! Generates the list of the files in `demo/`, which are compiled into the binary, and gives the binary a build
//! id, whichever linker makes it: by it a debugger finds the symbols, which are packed apart.

use std::fmt::Write;
use std::path::{Path, PathBuf};

fn main() {
    let root = Path::new("demo");
    println!("cargo::rerun-if-changed=demo");
    println!("cargo::rustc-link-arg-bins=-Wl,--build-id=sha1");
    let mut files = Vec::new();
    collect(root, &mut files);
    files.sort();
    let mut code = String::from("const ASSETS: &[Asset] = &[\n");
    for file in &files {
        let name = file
            .strip_prefix(root)
            .expect("all files are below the root");
        let full = std::env::current_dir()
            .expect("cargo sets the folder")
            .join(file);
        writeln!(
            code,
            "    Asset {{ path: {:?}, text: include_str!({:?}) }},",
            name, full
        )
        .expect("writing to a string cannot fail");
    }
    code.push_str("];\n");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    std::fs::write(out.join("demo_assets.rs"), code).expect("OUT_DIR is writable");
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_none_or(|extension| extension != "md") {
            files.push(path);
        }
    }
}
