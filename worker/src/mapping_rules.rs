//! Gives the store the rules of mappings that it needs when pages fill records.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use webfill_mapping::MappingSet;
use webfill_store::{MappingOrder, MappingRules};

/// The rules of all mappings of one set.
pub struct MappingSetRules(pub Arc<MappingSet>);

impl Debug for MappingSetRules {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.names()).finish()
    }
}

impl MappingRules for MappingSetRules {
    fn order(&self) -> MappingOrder {
        MappingOrder(self.0.names().map(str::to_owned).collect())
    }

    fn mapping_of(&self, url: &str) -> Option<&str> {
        self.0.find(url).map(|found| self.0.name(found))
    }

    fn match_fields(&self, mapping: &str) -> &[String] {
        let found = self.0.find_by_name(mapping);
        found.map_or(&[], |found| self.0.match_fields(found))
    }

    fn continued_fields(&self, mapping: &str) -> Vec<&str> {
        let found = self.0.find_by_name(mapping);
        found.map_or_else(Vec::new, |found| self.0.continued_fields(found))
    }

    fn marks_missing_rows(&self) -> bool {
        self.0.has_complete_lists()
    }

    fn lists_rows(&self, mapping: &str) -> bool {
        let found = self.0.find_by_name(mapping);
        found.is_some_and(|found| self.0.lists_rows(found))
    }
}
