//! Loads mappings from their files.

use std::path::Path;

use webfill_mapping::MappingSet;
use webfill_service::Fault;

use crate::settings::Settings;

/// Loads the mappings of a crawl or a fleet. If the default folder is missing, there are no mappings; any other missing
/// folder is an error.
pub fn load_mappings(folder: &Path) -> Result<MappingSet, Fault> {
    if folder == Settings::default().mappings && !folder.exists() {
        return MappingSet::from_sources(Vec::new()).map_err(Fault::usage);
    }
    MappingSet::load_dir(folder).map_err(Fault::usage)
}

/// Loads the mappings of one file, or of all files of a folder, as named on the command line.
pub fn load_files(path: &Path) -> Result<MappingSet, Fault> {
    let loaded = if path.is_dir() {
        MappingSet::load_dir(path)
    } else {
        MappingSet::load_file(path)
    };
    loaded.map_err(Fault::usage)
}
