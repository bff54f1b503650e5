//! The processors, in one file for each family. Each is declared by an entry of the
//! [catalogue](crate::catalogue), which documents it.

pub(crate) mod cell;
pub(crate) mod date;
pub(crate) mod duration;
pub(crate) mod json;
pub(crate) mod json_ld;
pub(crate) mod list;
pub(crate) mod lookup;
pub(crate) mod markup;
pub(crate) mod measure;
pub(crate) mod meta;
pub(crate) mod number;
pub(crate) mod pagination;
pub(crate) mod regex;
pub(crate) mod replace;
pub(crate) mod select;
pub(crate) mod text;
pub(crate) mod url;
pub(crate) mod validate;

use crate::entry::{Refusal, refusal};
use crate::fault::quote;
use crate::pattern::Pattern;

/// The most steps of one search by an expression with look-around or back references. They take a few milliseconds.
const STEP_LIMIT: usize = 200_000;

/// Compiles the regular expression that a parameter holds.
fn compile_pattern(parameter: &str, text: &str) -> Result<Pattern, Vec<Refusal>> {
    Pattern::compile(text, STEP_LIMIT).map_err(|reason| {
        let message = format!("invalid regular expression {}: {reason}", quote(text));
        refusal(parameter, message)
    })
}
