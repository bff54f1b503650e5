//! Most links of most pages lead to what the crawl has taken before. Workers report canonical URLs, and
//! a canonical URL is its own canonical form: so a text that is in the index of seen URLs as it stands is a
//! duplicate, and need not be parsed.

use rusqlite::Result;
use webfill_urls::Url;
use webfill_wire::LinkKind;

use super::feed::{FeedBatch, TextLookup};
use super::model::LinkContext;

impl FeedBatch<'_> {
    /// The keys of a page's links, if their texts are canonical URLs.
    pub(super) fn keys_of<'a>(&self, texts: impl Iterator<Item = &'a str>) -> Vec<u64> {
        let keys: Vec<_> = texts.map(|text| self.seen.key(self.key, text)).collect();
        self.seen.touch(&keys);
        keys
    }

    pub(super) fn look_up_text<'a>(
        &mut self,
        text: &'a str,
        key: Option<u64>,
    ) -> Result<TextLookup<'a>> {
        let key = key.unwrap_or_else(|| self.seen.key(self.key, text));
        let is_seen = self.seen.contains(key)?;
        Ok(TextLookup { text, key, is_seen })
    }

    /// The key of a URL that was parsed, and whether the crawl has seen it.
    pub(super) fn look_up(
        &mut self,
        url: &Url,
        known: Option<TextLookup<'_>>,
    ) -> Result<(u64, bool)> {
        if let Some(known) = known.filter(|known| known.text == url.as_str()) {
            return Ok((known.key, known.is_seen));
        }
        let key = self.seen.key(self.key, url.as_str());
        Ok((key, self.seen.contains(key)?))
    }

    /// Whether a link is a duplicate that changes nothing, so that its text need not be parsed. Its scope
    /// was judged when the crawl took it.
    pub(super) fn is_plain_duplicate(
        &mut self,
        looked_up: TextLookup<'_>,
        context: &LinkContext<'_>,
    ) -> bool {
        let spec = &self.crawl.spec;
        let may_be_taken_again = spec.run_began_ms.is_some() || spec.refresh_after_ms.is_some();
        let is_plain = context.kind != LinkKind::Sitemap && !may_be_taken_again;
        looked_up.is_seen
            && is_plain
            && context
                .records
                .iter()
                .all(|record| self.was_attached_lately(looked_up.key, *record))
    }
}
