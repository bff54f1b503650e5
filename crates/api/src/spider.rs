//! `spiderid`, Scrapy Cluster's name for the program that crawls. Here it chooses the lane of a
//! crawl: `link` is the lane `http`, `browser` the lane `browser`.

use serde::Deserialize;
use webfill_wire::Lane;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Spider {
    Link,
    Browser,
}

impl Spider {
    /// Every value of `spiderid`.
    pub(crate) const NAMES: &[&str] = &["link", "browser"];

    /// The spider that crawls in a lane.
    pub fn for_lane(lane: Lane) -> Spider {
        match lane {
            Lane::Http => Spider::Link,
            Lane::Browser => Spider::Browser,
        }
    }

    pub fn lane(self) -> Lane {
        match self {
            Spider::Link => Lane::Http,
            Spider::Browser => Lane::Browser,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Spider::Link => "link",
            Spider::Browser => "browser",
        }
    }
}
