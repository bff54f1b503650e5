//! The mappings in force, which the dispatcher distributes to its supervisors.

use webfill_wire::{MappingSource, MappingsVersion};

/// A checked set of mapping files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mappings {
    pub version: MappingsVersion,
    pub sources: Vec<MappingSource>,
}
