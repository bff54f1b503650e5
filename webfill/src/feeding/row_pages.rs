//! Recognises pages that list rows. These pages are crawled even if their records have no missing fields.

use webfill_mapping::MappingSet;
use webfill_urls::canonical_url;

/// The mappings that show which pages list rows.
pub struct RowPages {
    mappings: MappingSet,
    has_any: bool,
}

impl RowPages {
    pub fn new(mappings: MappingSet) -> RowPages {
        let has_any = mappings.indexes().any(|index| mappings.lists_rows(index));
        RowPages { mappings, has_any }
    }

    /// Whether any lists mark missing rows as gone.
    pub fn can_detect_gone(&self) -> bool {
        self.mappings.has_complete_lists()
    }

    /// Whether one of these URLs is a page that lists rows.
    pub fn any_lists_rows(&self, urls: &[String]) -> bool {
        self.has_any && urls.iter().any(|url| self.lists_rows(url))
    }

    fn lists_rows(&self, url: &str) -> bool {
        let mapping = canonical_url(url, None)
            .ok()
            .and_then(|url| self.mappings.find(url.as_str()));
        mapping.is_some_and(|mapping| self.mappings.lists_rows(mapping))
    }
}
