//! What the store asks of mappings when pages fill records.

use std::sync::Arc;

use webfill_mapping::MappingSet;
use webfill_store::MappingRules;

/// The rules of one set of mappings.
pub struct RulesOfSet(pub Arc<MappingSet>);

impl MappingRules for RulesOfSet {
    fn mapping_of(&self, url: &str) -> Option<&str> {
        self.0.find(url).map(|found| self.0.name(found))
    }

    fn match_fields(&self, mapping: &str) -> &[String] {
        let found = self.0.by_name(mapping);
        found.map_or(&[], |found| self.0.match_fields(found))
    }

    fn continues(&self, mapping: &str, field: &str) -> bool {
        let found = self.0.by_name(mapping);
        found.is_some_and(|found| self.0.continues(found, field))
    }
}
