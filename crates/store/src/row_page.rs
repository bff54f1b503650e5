//! A page with rows that become records.

use crate::crawl::CrawlId;
use crate::listing::Listing;
use crate::reread::Reread;
use crate::store::Save;

/// A page with rows, fetched or read again.
pub(crate) struct RowPage<'a> {
    pub(crate) listings: &'a [Listing],
    /// The crawl that the page was fetched for. Rows that want further fields enter this crawl. `None` if unknown.
    pub(crate) crawl: Option<CrawlId>,
    /// The keys of the records that the page was fetched for.
    pub(crate) records: &'a [String],
    pub(crate) url: &'a str,
    /// The URL of the first page of the page's list; `None` if unknown.
    pub(crate) list: Option<String>,
    pub(crate) mapping: Option<&'a str>,
    pub(crate) mapping_version: Option<&'a str>,
    pub(crate) started_at_ms: i64,
}

impl<'a> From<&'a Save> for RowPage<'a> {
    fn from(save: &'a Save) -> RowPage<'a> {
        RowPage {
            listings: &save.page.listings,
            crawl: Some(CrawlId::new(&save.page.app_id, &save.page.crawl_id)),
            records: &save.records,
            url: &save.page.url,
            list: None,
            mapping: save.page.mapping.as_deref(),
            mapping_version: save.page.mapping_version.as_deref(),
            started_at_ms: save.page.started_at_ms,
        }
    }
}

impl<'a> From<&'a Reread> for RowPage<'a> {
    fn from(reread: &'a Reread) -> RowPage<'a> {
        RowPage {
            listings: &reread.listings,
            crawl: None,
            records: &reread.records,
            url: &reread.url,
            list: None,
            mapping: reread.mapping.as_deref(),
            mapping_version: reread.mapping_version.as_deref(),
            started_at_ms: reread.started_at_ms,
        }
    }
}
