//! The settings of a crawl within crawl requests: the keys of a request that concern the whole crawl. The dispatcher
//! applies them to the [`CrawlSpec`] of the crawl, so a later request updates the settings of an earlier one, and
//! keeps those it does not name.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use crate::crawl_spec::CrawlSpec;
use crate::scope::PatternSet;
use crate::spider::Spider;

/// The settings of a crawl within requests. `None`: the key was left out, so the setting stays.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct SpecChanges {
    spiderid: Option<Spider>,
    maxdepth: Option<u16>,
    pub(crate) allowed_domains: Option<Vec<String>>,
    pub(crate) allow_regex: Option<Vec<String>>,
    pub(crate) deny_regex: Option<Vec<String>>,
    deny_extensions: Option<Vec<String>>,
    /// When the crawl expires, in seconds since the epoch.
    expires: Option<f64>,
    useragent: Option<String>,
    pub(crate) attrs: Option<Value>,
    domain_max_pages: Option<u64>,
    body: Option<bool>,
    sitemaps: Option<bool>,
    changes: Option<bool>,
    keep_bodies: Option<bool>,
    /// The compiled patterns, kept from the check so that they are still in use when the crawl opens.
    #[serde(skip)]
    pub(crate) compiled: CompiledPatterns,
}

/// Keeps lists of patterns compiled. Any two values compare as equal, because the texts alone decide.
#[derive(Debug, Clone, Default)]
pub(crate) struct CompiledPatterns {
    pub(crate) allow: Option<Arc<PatternSet>>,
    pub(crate) deny: Option<Arc<PatternSet>>,
}

impl PartialEq for CompiledPatterns {
    fn eq(&self, _: &CompiledPatterns) -> bool {
        true
    }
}

impl SpecChanges {
    /// Merges the settings of a later request of the same crawl; the later ones win.
    pub(crate) fn merge_later(&mut self, later: SpecChanges) {
        fn replace_if_given<T>(mine: &mut Option<T>, later: Option<T>) {
            if later.is_some() {
                *mine = later;
            }
        }
        replace_if_given(&mut self.spiderid, later.spiderid);
        replace_if_given(&mut self.maxdepth, later.maxdepth);
        replace_if_given(&mut self.allowed_domains, later.allowed_domains);
        replace_if_given(&mut self.allow_regex, later.allow_regex);
        replace_if_given(&mut self.deny_regex, later.deny_regex);
        replace_if_given(&mut self.deny_extensions, later.deny_extensions);
        replace_if_given(&mut self.expires, later.expires);
        replace_if_given(&mut self.useragent, later.useragent);
        replace_if_given(&mut self.attrs, later.attrs);
        replace_if_given(&mut self.domain_max_pages, later.domain_max_pages);
        replace_if_given(&mut self.body, later.body);
        replace_if_given(&mut self.sitemaps, later.sitemaps);
        replace_if_given(&mut self.changes, later.changes);
        replace_if_given(&mut self.keep_bodies, later.keep_bodies);
        replace_if_given(&mut self.compiled.allow, later.compiled.allow);
        replace_if_given(&mut self.compiled.deny, later.compiled.deny);
    }

    /// Applies the changes to the settings of a crawl.
    pub fn apply(&self, spec: &mut CrawlSpec) {
        fn set_if_given<T: Clone>(kept: &mut T, given: &Option<T>) {
            if let Some(given) = given {
                kept.clone_from(given);
            }
        }
        set_if_given(&mut spec.lane, &self.spiderid.map(Spider::lane));
        set_if_given(&mut spec.max_depth, &self.maxdepth);
        set_if_given(&mut spec.allowed_domains, &self.allowed_domains);
        set_if_given(&mut spec.allow_regex, &self.allow_regex);
        set_if_given(&mut spec.deny_regex, &self.deny_regex);
        set_if_given(&mut spec.body, &self.body);
        set_if_given(&mut spec.sitemaps, &self.sitemaps);
        set_if_given(&mut spec.changes, &self.changes);
        set_if_given(&mut spec.keep_bodies, &self.keep_bodies);
        if self.deny_extensions.is_some() {
            spec.deny_extensions.clone_from(&self.deny_extensions);
        }
        if self.useragent.is_some() {
            spec.useragent.clone_from(&self.useragent);
        }
        if self.attrs.is_some() {
            spec.attrs.clone_from(&self.attrs);
        }
        spec.domain_max_pages = self.domain_max_pages.or(spec.domain_max_pages);
        spec.expires_at_ms = self.expires_at_ms().or(spec.expires_at_ms);
    }

    pub fn spider(&self) -> Option<Spider> {
        self.spiderid
    }

    /// When the crawl ends, in milliseconds since the epoch.
    pub(crate) fn expires_at_ms(&self) -> Option<u64> {
        self.expires.map(|seconds| (seconds * 1_000.0) as u64)
    }
}
