//! URLs as they are stored: without what the task's site says already.
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
//! Any other, with a port for instance, is stored as it is, and so are those of files that an older
//! version has written. The view `tasks` has them all as they are.

use std::borrow::Cow;

/// The URL of a row of `task_rows`.
pub(super) const WHOLE_URL: &str = "
    iif(url < '5',
        iif(url < '3', 'https://', 'http://')
            || iif(substr(url, 1, 1) IN ('1', '3'), 'www.', '')
            || substr(url, 2, instr(url, '/') - 2)
            || (SELECT name FROM sites WHERE sites.id = task_rows.site)
            || substr(url, instr(url, '/')),
        url)";

/// A canonical URL as it is stored for a task of a site.
pub(super) fn shortened<'a>(url: &'a str, site: &str) -> Cow<'a, str> {
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

    use super::*;

    /// What the view makes of a stored URL.
    fn whole(stored: &str, site: &str) -> String {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(
            "CREATE TABLE sites (id INTEGER PRIMARY KEY, name TEXT);
             CREATE TABLE task_rows (site INTEGER, url TEXT);",
        )
        .unwrap();
        db.execute("INSERT INTO sites VALUES (1, ?1)", [site])
            .unwrap();
        db.execute("INSERT INTO task_rows VALUES (1, ?1)", [stored])
            .unwrap();
        let sql = format!("SELECT {WHOLE_URL} FROM task_rows");
        db.query_row(&sql, [], |row| row.get(0)).unwrap()
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
            assert_eq!(shortened(url, site), stored);
            assert_eq!(whole(stored, site), url);
        }
    }

    #[test]
    fn a_url_with_a_port_and_those_of_older_files_stay_as_they_are() {
        for url in ["https://a.org:8080/x", "http://[::1]/", "ftp://a.org/x"] {
            assert_eq!(shortened(url, "a.org"), url);
        }
        for url in [
            "https://a.org:8080/x",
            "https://www.a.org/",
            "http://a.org/",
        ] {
            assert_eq!(whole(url, "a.org"), url);
        }
    }
}
