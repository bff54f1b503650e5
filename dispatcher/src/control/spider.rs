//! Who crawls, in Scrapy Cluster's words: by its spider an application names the lane of a crawl.

use serde::Deserialize;
use webfill_wire::Lane;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Spider {
    Link,
    Browser,
}

impl Spider {
    /// The names of all of them.
    pub(super) const NAMES: &[&str] = &["link", "browser"];

    pub(crate) fn of(lane: Lane) -> Spider {
        match lane {
            Lane::Http => Spider::Link,
            Lane::Browser => Spider::Browser,
        }
    }

    pub(crate) fn lane(self) -> Lane {
        match self {
            Spider::Link => Lane::Http,
            Spider::Browser => Lane::Browser,
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Spider::Link => "link",
            Spider::Browser => "browser",
        }
    }
}
