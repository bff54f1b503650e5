//! Writes a learned mapping.

use std::path::Path;

use serde_json::Value;
use webfill_mapping::{MappingSet, Source};
use webfill_service::Fault;

use crate::cli::MappingOutputOptions;
use crate::mapping_command::writing::write_atomically;

/// Refuses an existing output file before any work is done.
pub fn refuse_existing(options: &MappingOutputOptions) -> Result<(), Fault> {
    match &options.output {
        Some(file) if file.exists() && !options.force => Err(Fault::usage(format!(
            "--output {}: the file exists; use --force to replace it",
            file.display()
        ))),
        Some(file) if file.is_dir() => Err(Fault::usage(format!(
            "--output {}: is a folder; name a file",
            file.display()
        ))),
        _ => Ok(()),
    }
}

/// The text of a mapping file: one mapping, or a list of several.
pub fn format_mappings(mut mappings: Vec<Value>) -> Result<String, Fault> {
    let file = match mappings.len() {
        1 => mappings.remove(0),
        _ => Value::Array(mappings),
    };
    let text = format!("{file:#}\n");
    load_checked("the mapping", &text)?;
    Ok(text)
}

/// Loads a mapping file's text in the same way as a crawl does, to check it.
pub fn load_checked(name: &str, text: &str) -> Result<MappingSet, Fault> {
    let source = Source {
        name: name.to_owned(),
        text: text.to_owned(),
    };
    MappingSet::from_sources(vec![source]).map_err(Fault::error)
}

pub fn write(file: &Path, text: &str) -> Result<(), Fault> {
    write_atomically(file, text.as_bytes())
}
