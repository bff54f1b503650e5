//! Fragments that are routes. Single-page applications name their pages `#/x` or `#!x`. To the server all of them are
//! one page, so only a browser can distinguish them.

use url::Url;

use crate::{MAX_URL_BYTES, UrlRefusal, canonical_url};

/// The route in the fragment of a link. `#/` and `#!` alone are not routes: they lead to the landing page, or nowhere.
pub fn fragment_route(text: &str) -> Option<&str> {
    let (_, fragment) = text.trim().split_once('#')?;
    let route = fragment.strip_prefix('!').or_else(|| {
        let is_path = fragment.starts_with('/');
        is_path.then_some(fragment)
    })?;
    (!route.trim_start_matches('/').is_empty()).then_some(fragment)
}

/// Like [`canonical_url`], but keeps a fragment that is a route.
///
/// # Errors
///
/// Those of [`canonical_url`].
pub fn canonical_url_with_route(text: &str, base: Option<&Url>) -> Result<Url, UrlRefusal> {
    with_route(canonical_url(text, base)?, text)
}

/// The canonical URL of a link, with the link's fragment if that is a route.
///
/// # Errors
///
/// The URL with the fragment is too long.
pub fn with_route(mut url: Url, text: &str) -> Result<Url, UrlRefusal> {
    let Some(route) = fragment_route(text) else {
        return Ok(url);
    };
    url.set_fragment(Some(route));
    if url.as_str().len() > MAX_URL_BYTES {
        return Err(UrlRefusal::too_long(text));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_fragments_that_name_pages_are_routes() {
        for (text, expected) in [
            ("/#/user/1", "http://a.example/#/user/1"),
            ("#!user", "http://a.example/shop#!user"),
            ("#!/user?x=1", "http://a.example/shop#!/user?x=1"),
            ("http://b.example/#/a b", "http://b.example/#/a%20b"),
            ("#top", "http://a.example/shop"),
            ("#", "http://a.example/shop"),
            ("#/", "http://a.example/shop"),
            ("#!", "http://a.example/shop"),
            ("#!/", "http://a.example/shop"),
            ("#a/b", "http://a.example/shop"),
        ] {
            let base = Url::parse("http://a.example/shop").unwrap();
            let url = canonical_url_with_route(text, Some(&base)).unwrap();
            assert_eq!(url.as_str(), expected, "{text}");
            let again = canonical_url_with_route(url.as_str(), None).unwrap();
            assert_eq!(again, url, "{text}");
        }
        let long = format!("http://a.example/#/{}", "x".repeat(MAX_URL_BYTES));
        assert!(canonical_url_with_route(&long, None).is_err());
    }
}
