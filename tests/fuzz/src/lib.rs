//! Fuzz targets: one for each reader of input from outside.
//!
//! A target reads any bytes as webfill would, and panics if webfill breaks a promise. `make fuzz` searches for such
//! bytes ([`Target::run`] under libFuzzer, in `engine.rs`). `make test` reads the inputs in `corpus/` again, with
//! limits on time and memory.

mod control;
mod headers;
mod mappings;
mod pages;
mod robots;
mod urls;
mod wire;

/// A reader of input from outside. Its name is also that of its folder in `corpus/`.
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
}

/// All targets.
pub const TARGETS: [Target; 7] = [
    Target {
        name: "wire",
        run: wire::run,
    },
    Target {
        name: "control",
        run: control::run,
    },
    Target {
        name: "robots",
        run: robots::run,
    },
    Target {
        name: "urls",
        run: urls::run,
    },
    Target {
        name: "mappings",
        run: mappings::run,
    },
    Target {
        name: "pages",
        run: pages::run,
    },
    Target {
        name: "headers",
        run: headers::run,
    },
];

/// The target with this name, if there is one.
pub fn target(name: &str) -> Option<&'static Target> {
    const { &TARGETS }.iter().find(|target| target.name == name)
}

/// Splits off the first byte of an input, which selects how the rest is read. It is 0 if the input is empty.
fn split_choice(input: &[u8]) -> (u8, &[u8]) {
    match input.split_first() {
        Some((first, rest)) => (*first, rest),
        None => (0, input),
    }
}
