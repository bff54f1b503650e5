//! URLs as they are stored: without the part that the task's site contains.
//!
//! The text of a URL is most of a task's row, and scheme and site are a third of it. A stored URL begins
//! with a digit for scheme and `www.`, followed by any other subdomain, and the path:
//!
//! | URL, at the site `a.org` | stored |
//! |---|---|
//! | `https://www.a.org/page` | `1/page` |
//! | `https://a.org/page` | `2/page` |
//! | `https://blog.a.org/page` | `2blog./page` |
//! | `http://www.a.org/page` | `3/page` |
//! | `http://a.org/page` | `4/page` |
//!
//! Any other URL, with a port for instance, is stored as it is. The view `tasks` shows all URLs in full.

use std::borrow::Cow;

/// The stored form of a canonical URL, for a task of this site.
pub(super) fn shorten_url<'a>(url: &'a str, site: &str) -> Cow<'a, str> {
    let (with_www, without, rest) =
        match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
            (Some(rest), _) => ('1', '2', rest),
            (_, Some(rest)) => ('3', '4', rest),
            (None, None) => return Cow::Borrowed(url),
        };
    let Some((host, path)) = rest.split_once('/') else {
        return Cow::Borrowed(url);
    };
    match host.strip_suffix(site) {
        Some("www.") => Cow::Owned(format!("{with_www}/{path}")),
        Some(subdomain) => Cow::Owned(format!("{without}{subdomain}/{path}")),
        None => Cow::Borrowed(url),
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::super::schema::create_tables_for_tests;
    use super::*;

    /// The URL that the view makes of a stored one.
    fn expand_stored(stored: &str, site: &str) -> String {
        let db = Connection::open_in_memory().unwrap();
        create_tables_for_tests(&db);
        db.execute("INSERT INTO sites (id, name) VALUES (1, ?1)", [site])
            .unwrap();
        let sql = "INSERT INTO task_rows (crawl, site, priority, depth, rank, url) VALUES (1, 1, 1, 0, 0, ?1)";
        db.execute(sql, [stored]).unwrap();
        db.query_row("SELECT url FROM tasks", [], |row| row.get(0))
            .unwrap()
    }

    #[test]
    fn a_stored_url_is_short_and_becomes_whole_again() {
        let cases = [
            ("https://www.a.org/page?q=/1", "a.org", "1/page?q=/1"),
            ("https://a.org/", "a.org", "2/"),
            ("https://blog.a.org/x", "a.org", "2blog./x"),
            ("https://www.blog.a.org/x", "a.org", "2www.blog./x"),
            ("http://www.a.org/5", "a.org", "3/5"),
            ("http://a.org/http://b.org/", "a.org", "4/http://b.org/"),
            ("http://127.0.0.1/", "127.0.0.1", "4/"),
            ("http://user:1@a.org/", "a.org", "4user:1@/"),
        ];
        for (url, site, stored) in cases {
            assert_eq!(shorten_url(url, site), stored);
            assert_eq!(expand_stored(stored, site), url);
        }
    }

    #[test]
    fn a_url_with_a_port_stays_as_it_is() {
        for url in ["https://a.org:8080/x", "http://[::1]/", "ftp://a.org/x"] {
            assert_eq!(shorten_url(url, "a.org"), url);
            assert_eq!(expand_stored(url, "a.org"), url);
        }
    }
}
