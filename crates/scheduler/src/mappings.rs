//! The mappings in force, which the dispatcher distributes to its supervisors.

use webfill_wire::{MappingSource, MappingsVersion};

/// Mapping files that were checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mappings {
    pub version: MappingsVersion,
    pub sources: Vec<MappingSource>,
}
