//! Scripts and style sheets, compiled in. Their paths contain a hash of all of them, so that browsers may cache them
//! permanently, and fetch them again after an upgrade.

use hyper::header::{CACHE_CONTROL, HeaderValue};
use sha2::{Digest, Sha256};
use webfill_service::http::Answer;

use crate::answer::{with_content_type, with_header};
use crate::secrets::hex;

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const PICTURE: &str = "image/svg+xml";

/// All assets: name, type, content.
const ASSETS: &[(&str, &str, &str)] = &[
    ("change.js", SCRIPT, include_str!("../assets/change.js")),
    (
        "dashboard.css",
        STYLE,
        include_str!("../assets/dashboard.css"),
    ),
    (
        "dashboard.js",
        SCRIPT,
        include_str!("../assets/dashboard.js"),
    ),
    ("drop.js", SCRIPT, include_str!("../assets/drop.js")),
    ("grid.js", SCRIPT, include_str!("../assets/grid.js")),
    ("review.js", SCRIPT, include_str!("../assets/review.js")),
    ("tables.css", STYLE, include_str!("../assets/tables.css")),
    ("mark.svg", PICTURE, include_str!("../assets/mark.svg")),
    ("live.js", SCRIPT, include_str!("../assets/live.js")),
    ("charts.js", SCRIPT, include_str!("../assets/charts.js")),
    (
        "uplot.css",
        STYLE,
        include_str!("../vendor/uplot/uPlot.min.css"),
    ),
    (
        "uplot.js",
        SCRIPT,
        // The licence of uPlot is sent together with its code.
        concat!(
            "/*\n",
            include_str!("../vendor/uplot/LICENSE"),
            "*/\n",
            include_str!("../vendor/uplot/uPlot.iife.min.js")
        ),
    ),
    ("editor.css", STYLE, include_str!("../assets/editor.css")),
    ("editor.js", SCRIPT, include_str!("../assets/editor.js")),
    (
        "editor-dom.js",
        SCRIPT,
        include_str!("../assets/editor-dom.js"),
    ),
    (
        "editor-names.js",
        SCRIPT,
        include_str!("../assets/editor-names.js"),
    ),
    (
        "editor-form.js",
        SCRIPT,
        include_str!("../assets/editor-form.js"),
    ),
    (
        "editor-results.js",
        SCRIPT,
        include_str!("../assets/editor-results.js"),
    ),
];

/// How many hexadecimal digits of the hash are in the path of an asset.
const DIGITS: usize = 16;

#[derive(Debug)]
pub(crate) struct Assets {
    hash: String,
}

impl Assets {
    pub(crate) fn new() -> Assets {
        let mut digest = Sha256::new();
        for (name, _, content) in ASSETS {
            for text in [name, content] {
                digest.update((text.len() as u64).to_le_bytes());
                digest.update(text);
            }
        }
        let mut hash = hex(&digest.finalize());
        hash.truncate(DIGITS);
        Assets { hash }
    }

    pub(crate) fn hash(&self) -> &str {
        &self.hash
    }

    /// The path of an asset. The hash is in the folder's name, so scripts can import each other by their file names.
    pub(crate) fn path(hash: &str, name: &str) -> String {
        format!("/dashboard/assets/{hash}/{name}")
    }

    /// An asset of this build. If a page of an older build requests it, with another hash, it is sent as not cacheable.
    pub(crate) fn get(&self, hash: &str, name: &str) -> Option<Answer> {
        let (_, kind, content) = ASSETS.iter().find(|(known, ..)| *known == name)?;
        let kind = HeaderValue::from_static(kind);
        let answer = with_content_type(200, kind, content.as_bytes().to_vec());
        let kept = match hash == self.hash {
            true => "public, max-age=31536000, immutable",
            false => "no-store",
        };
        Some(with_header(answer, CACHE_CONTROL, kept))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_style_sheets_together_are_small() {
        let styles = ASSETS.iter().filter(|(_, kind, _)| *kind == STYLE);
        let bytes: usize = styles.map(|(.., content)| content.len()).sum();
        let all = bytes + include_str!("../assets/frame.css").len();
        assert!(all <= 40_000, "{all} bytes");
    }

    #[test]
    fn an_asset_of_this_build_is_cached_permanently_and_unknown_ones_are_missing() {
        let assets = Assets::new();
        assert_eq!(assets.hash().len(), DIGITS);
        let kept = |hash: &str, name: &str| {
            let answer = assets.get(hash, name)?;
            let header = answer.headers()[CACHE_CONTROL].to_str().unwrap();
            Some(header.contains("immutable"))
        };
        assert_eq!(kept(assets.hash(), "dashboard.css"), Some(true));
        assert_eq!(kept("another", "dashboard.css"), Some(false));
        assert_eq!(kept(assets.hash(), "../Cargo.toml"), None);
    }
}
