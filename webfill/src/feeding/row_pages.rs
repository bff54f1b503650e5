//! On which pages rows are listed: these are wanted, however complete the records are that name them.

use webfill_mapping::MappingSet;
use webfill_urls::canonical;

/// Knows the pages of mappings with rows.
pub struct RowPages {
    mappings: MappingSet,
    has_any: bool,
}

impl RowPages {
    pub fn of(mappings: MappingSet) -> RowPages {
        let has_any = mappings.indexes().any(|index| mappings.lists_rows(index));
        RowPages { mappings, has_any }
    }

    /// Whether lists say which of their rows are gone.
    pub fn say_gone(&self) -> bool {
        self.mappings.says_gone()
    }

    /// Whether rows are listed on the page of one of these URLs.
    pub fn are_among(&self, urls: &[String]) -> bool {
        self.has_any && urls.iter().any(|url| self.lists_rows(url))
    }

    fn lists_rows(&self, url: &str) -> bool {
        let mapping = canonical(url, None)
            .ok()
            .and_then(|url| self.mappings.find(url.as_str()));
        mapping.is_some_and(|mapping| self.mappings.lists_rows(mapping))
    }
}
