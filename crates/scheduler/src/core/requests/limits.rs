//! The limits that a crawl is subject to, for people: each with its number, how far it is used, and how to raise it.

use std::borrow::Cow;

use serde_json::{Value, json};
use webfill_api::CrawlSpec;
use webfill_wire::CrawlKey;

use crate::core::context::Context;
use crate::frontier::{ApplicationUse, FrontierError};

/// How to raise a limit that is set in the settings.
const BY_SETTINGS: &str = "raise it in the dispatcher's settings and restart the dispatcher";

/// One limit, as shown to people.
pub(super) struct Limit {
    /// The setting or flag that sets the limit.
    name: String,
    unit: &'static str,
    most: f64,
    /// How much of the limit is used; `None` for a pace, or a limit that is counted per site.
    used: Option<u64>,
    raised_by: Cow<'static, str>,
}

impl Limit {
    /// Whether nothing more is handed out because of this limit.
    pub(super) fn is_full(&self) -> bool {
        self.used.is_some_and(|used| used as f64 >= self.most)
    }

    /// The limit in words, such as `1000 of 1000 pages (applications.shop.max_pages): raise it in ...`.
    pub(super) fn describe(&self) -> String {
        let (most, unit, name) = (self.most, self.unit, &self.name);
        let fill = match self.used {
            Some(used) => format!("{used} of {most} {unit}"),
            None => format!("{most} {unit}"),
        };
        format!("{fill} ({name}): {}", self.raised_by)
    }

    pub(super) fn json(&self) -> Value {
        json!({"limit": self.name, "most": self.most, "used": self.used, "text": self.describe()})
    }
}

/// The limits that a crawl is subject to, including those of its application.
pub(super) fn limits_of_crawl(
    cx: &mut Context,
    crawl: CrawlKey,
) -> Result<Vec<Limit>, FrontierError> {
    let status = cx.frontier.crawls().status(crawl)?;
    let spec = cx.frontier.crawls().spec(crawl)?;
    let app = spec.app_id.clone();
    let own = page_limit_of_crawl(spec, status.pages + status.leased);
    let of_sites = page_limit_per_site(spec);
    let of_application = cx.frontier.application_use(&app);
    let shared = of_application.map(|used| limits_of_application(&app, &used));
    let own = own.into_iter().chain(of_sites);
    Ok(own.chain(shared.unwrap_or_default()).collect())
}

/// The limits of an application that its crawls wait for; empty if no crawl waits.
pub(super) fn limits_awaited_by(cx: &Context, app: &str) -> Vec<Limit> {
    let Some(used) = cx.frontier.application_use(app) else {
        return Vec::new();
    };
    if !used.is_awaited {
        return Vec::new();
    }
    let limits = limits_of_application(app, &used);
    let (full, others): (Vec<Limit>, Vec<Limit>) = limits.into_iter().partition(Limit::is_full);
    match full.is_empty() {
        // No limit is full now, so the crawls wait for the application's pace, or for a limit that was full a moment
        // ago.
        true => others,
        false => full,
    }
}

/// The limits of a crawl for an answer.
pub(super) fn limits_json(cx: &mut Context, crawl: CrawlKey) -> Result<Vec<Value>, FrontierError> {
    Ok(limits_of_crawl(cx, crawl)?
        .iter()
        .map(Limit::json)
        .collect())
}

/// The page limit of the whole crawl, if it has one.
pub(super) fn page_limit_of_crawl(spec: &CrawlSpec, used: u64) -> Option<Limit> {
    let of_watch = spec.run_began_ms.is_some();
    Some(Limit {
        name: if of_watch { "max_pages" } else { "--max-pages" }.into(),
        unit: "pages",
        most: spec.max_pages? as f64,
        used: Some(used),
        raised_by: match of_watch {
            true => "raise it in its watch; it applies from the next run",
            false => "run the same command with a higher limit to continue",
        }
        .into(),
    })
}

/// The crawl's page limit per site. URLs beyond it are skipped, with the reason `budget`.
fn page_limit_per_site(spec: &CrawlSpec) -> Option<Limit> {
    Some(Limit {
        name: "domain_max_pages".into(),
        unit: "URLs of each site",
        most: spec.domain_max_pages? as f64,
        used: None,
        raised_by:
            "raise it with a further request of the crawl; links skipped for `budget` exceeded it"
                .into(),
    })
}

/// The page limit of a site, over all crawls. `left`: the remaining pages; `most`: the original number.
pub(super) fn page_limit_of_site(
    site: &str,
    left: Option<u64>,
    most: Option<u64>,
) -> Option<Limit> {
    let left = left?;
    let most = most.unwrap_or(left).max(left);
    Some(Limit {
        name: "--limit".into(),
        unit: "pages",
        most: most as f64,
        used: Some(most - left),
        raised_by: format!("`webfill site {site} --limit N` allows N further pages").into(),
    })
}

fn limits_of_application(app: &str, used: &ApplicationUse) -> Vec<Limit> {
    let limits = &used.limits;
    let limit = |key: &str, unit, most: Option<f64>, used| {
        most.map(|most| Limit {
            name: format!("applications.{app}.{key}"),
            unit,
            most,
            used,
            raised_by: BY_SETTINGS.into(),
        })
    };
    let counted = |most: Option<u64>| most.map(|most| most as f64);
    [
        limit(
            "max_pages",
            "pages",
            counted(limits.max_pages),
            Some(used.pages),
        ),
        limit(
            "max_sites",
            "sites at once",
            counted(limits.max_sites),
            Some(used.sites),
        ),
        limit(
            "pages_per_second",
            "pages a second",
            limits.pages_per_second,
            None,
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application_limits::ApplicationLimits;

    #[test]
    fn a_limit_is_reported_with_its_number_its_fill_and_how_to_raise_it() {
        let used = ApplicationUse {
            limits: ApplicationLimits {
                max_pages: Some(1_000),
                pages_per_second: Some(0.5),
                max_sites: Some(4),
            },
            pages: 1_000,
            sites: 3,
            is_awaited: true,
        };
        let limits = limits_of_application("shop", &used);
        let reported: Vec<(bool, String)> = limits
            .iter()
            .map(|limit| (limit.is_full(), limit.describe()))
            .collect();
        let expected = [
            (true, "1000 of 1000 pages (applications.shop.max_pages)"),
            (false, "3 of 4 sites at once (applications.shop.max_sites)"),
            (
                false,
                "0.5 pages a second (applications.shop.pages_per_second)",
            ),
        ];
        for ((is_full, text), (expected_full, beginning)) in reported.iter().zip(expected) {
            assert_eq!(*is_full, expected_full, "{text}");
            assert_eq!(*text, format!("{beginning}: {BY_SETTINGS}"));
        }
    }

    #[test]
    fn the_limit_of_a_site_is_reported_with_its_number() {
        let reported =
            |left, most| page_limit_of_site("a.org", left, most).map(|limit| limit.describe());
        assert_eq!(reported(None, Some(5)), None);
        let by = "`webfill site a.org --limit N` allows N further pages";
        for (left, most, beginning) in [
            (0, Some(20), "20 of 20 pages (--limit)"),
            (3, Some(20), "17 of 20 pages (--limit)"),
            (3, None, "0 of 3 pages (--limit)"),
        ] {
            assert_eq!(
                reported(Some(left), most),
                Some(format!("{beginning}: {by}"))
            );
        }
    }

    #[test]
    fn a_crawl_without_a_limit_has_none() {
        let mut spec = CrawlSpec::new("a", "c");
        assert!(page_limit_of_crawl(&spec, 5).is_none() && page_limit_per_site(&spec).is_none());
        spec.domain_max_pages = Some(3);
        let limit = page_limit_per_site(&spec).unwrap();
        assert!(!limit.is_full());
        let text = limit.describe();
        assert!(
            text.starts_with("3 URLs of each site (domain_max_pages): "),
            "{text}"
        );
        spec.max_pages = Some(7);
        let answer = page_limit_of_crawl(&spec, 5).unwrap().json();
        assert_eq!((&answer["most"], &answer["used"]), (&json!(7.0), &json!(5)));
        let text = answer["text"].as_str().unwrap();
        assert!(text.starts_with("5 of 7 pages (--max-pages): "), "{text}");
    }
}
