//! The program of `make fuzz`: libFuzzer with the target that `FUZZ_TARGET` names.
#![no_main]

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use webfill_fuzz::{Target, target};

static TARGET: OnceLock<&'static Target> = OnceLock::new();

thread_local! {
    static LAST_PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

fuzz_target!(init: prepare(), |input: &[u8]| run(input));

fn prepare() {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let Some(target) = target(&name) else {
        eprintln!("FUZZ_TARGET `{name}` is no target");
        std::process::exit(2);
    };
    TARGET.get_or_init(|| target);
    // The panic hook of libFuzzer would end the process at once. It is replaced by a hook that only keeps the message,
    // because panics that the tested code catches are no failures.
    panic::set_hook(Box::new(|panic| {
        LAST_PANIC.with_borrow_mut(|last| *last = panic.to_string());
    }));
}

fn run(input: &[u8]) {
    let target = TARGET.get().expect("it is set before the first input");
    if panic::catch_unwind(AssertUnwindSafe(|| (target.run)(input))).is_err() {
        LAST_PANIC.with_borrow(|last| eprintln!("{last}"));
        std::process::abort();
    }
}
