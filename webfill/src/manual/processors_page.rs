//! Generates `processors.md` from the catalogue of processors.

use webfill_mapping::processors_manual;

const HEAD: &str = "\
# Processors

A processor is one step of a chain in a mapping, such as
`{\"type\": \"css\", \"parameters\": {\"selector\": \"h1\"}}`. [Mappings](../../etl-mappings/README.md) explains the format
around it, and [chains](../../etl-mappings/README.md#chains) how steps follow each other. Each example on this page runs
as a test: \"in\" is the output of the step before, `⏎` a line break. This page is written by `make reference` from
`crates/mapping/src/catalogue.rs`.

";

pub fn generate_page() -> String {
    format!("{HEAD}{}\n", processors_manual().trim_end())
}
