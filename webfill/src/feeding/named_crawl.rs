//! The crawl that a crawl request among the seeds names.

use serde_json::Value;
use webfill_dispatcher::crawl_spec::CrawlSpec;
use webfill_wire::Lane;

use crate::seeds::SeedRequest;

/// Its own settings, else a request's defaults; which links are followed and how fresh pages must
/// be is the command's to say.
pub fn named_crawl(request: &SeedRequest, command: &CrawlSpec) -> CrawlSpec {
    let value = |key| request.settings.get(key);
    let number = |key| value(key).and_then(Value::as_u64);
    let texts = |key| {
        let list = value(key).and_then(Value::as_array)?;
        let texts = list.iter().filter_map(Value::as_str);
        Some(texts.map(str::to_owned).collect::<Vec<_>>())
    };
    CrawlSpec {
        max_depth: number("maxdepth").unwrap_or(0) as u16,
        priority: number("priority").unwrap_or(50) as u8,
        follow: command.follow,
        lane: match value("spiderid").and_then(Value::as_str) {
            Some("browser") => Lane::Browser,
            _ => Lane::Http,
        },
        useragent: value("useragent")
            .and_then(Value::as_str)
            .map(str::to_owned),
        attrs: value("attrs").cloned(),
        allowed_domains: texts("allowed_domains").unwrap_or_default(),
        allow_regex: texts("allow_regex").unwrap_or_default(),
        deny_regex: texts("deny_regex").unwrap_or_default(),
        deny_extensions: texts("deny_extensions"),
        domain_max_pages: number("domain_max_pages"),
        max_pages: None,
        refresh_after_ms: command.refresh_after_ms,
        expires_at_ms: number("expires").map(|seconds| seconds.saturating_mul(1_000)),
        ..CrawlSpec::new(&request.app_id, &request.crawl_id)
    }
}
