//! The attribute `#[needs(...)]`: a test is reported as ignored, with the reason, on a machine that does not meet its
//! requirements.
//!
//! ```ignore
//! #[needs(mongod, mount)]
//! #[tokio::test]
//! async fn a_full_disk_loses_nothing_that_was_acknowledged() { /* ... */ }
//! ```
//!
//! The names of the requirements, and how each of them is checked, are in `build.rs`. Tests can only be ignored by an
//! attribute, so the decision is made when they are compiled. If the machine has changed since then and the build
//! script could not notice it, the test fails and names the missing requirement. `cargo clean -p webfill-test-needs`
//! makes the script check again.
//!
//! Only tests depend on this crate, so no shipped code is rebuilt when the decision changes.

use proc_macro::{TokenStream, TokenTree};

// The table of all requirements: each name with the reason why a test that needs it is ignored. The reason is `None` if
// the machine meets the requirement.
include!(concat!(env!("OUT_DIR"), "/requirements.rs"));

/// Ignores the test if one of the named requirements is not met. Place this attribute above `#[test]`, which must see
/// the added `#[ignore]`.
#[proc_macro_attribute]
pub fn needs(names: TokenStream, test: TokenStream) -> TokenStream {
    for token in names {
        let name = match token {
            TokenTree::Ident(name) => name.to_string(),
            _ => continue,
        };
        match REQUIREMENTS.iter().find(|(known, _)| *known == name) {
            Some((_, None)) => {}
            Some((_, Some(reason))) => {
                return with_attribute(&format!("ignore = {reason:?}"), test);
            }
            None => {
                return compile_error(&format!("`{name}` is no requirement that build.rs knows"));
            }
        }
    }
    test
}

fn with_attribute(attribute: &str, test: TokenStream) -> TokenStream {
    let mut tokens = parse_tokens(&format!("#[{attribute}]"));
    tokens.extend(test);
    tokens
}

fn compile_error(message: &str) -> TokenStream {
    parse_tokens(&format!("compile_error!({message:?});"))
}

fn parse_tokens(code: &str) -> TokenStream {
    code.parse().expect("it is Rust")
}
