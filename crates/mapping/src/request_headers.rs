//! Request headers that mappings may send in addition to webfill's own. The list is closed: none of them identifies
//! the sender, changes the target of the request, selects a part of the response, or controls the connection.

use crate::reader::Key;

const fn header_key(name: &'static str) -> Key {
    Key {
        name,
        required: false,
    }
}

/// The allowed headers, by the names that mapping files use.
pub(crate) const REQUEST_HEADERS: &[Key] = &[
    header_key("Accept"),
    header_key("Accept-Language"),
    header_key("DNT"),
    header_key("Save-Data"),
    header_key("Sec-GPC"),
    header_key("X-Requested-With"),
];

const MOST_BYTES: usize = 500;

/// Checks a header and returns it in the form that is sent, with its name in lower case.
///
/// # Errors
///
/// What is wrong with the header.
pub fn normalize_request_header(name: &str, value: &str) -> Result<(String, String), String> {
    let mut names = REQUEST_HEADERS.iter().map(|known| known.name);
    if !names.any(|known| known.eq_ignore_ascii_case(name)) {
        let names: Vec<&str> = REQUEST_HEADERS.iter().map(|known| known.name).collect();
        let names = names.join(", ");
        return Err(format!(
            "header `{name:.60}` may not be set: allowed are {names}"
        ));
    }
    let fits = |c: char| c == ' ' || c.is_ascii_graphic();
    let is_value = !value.is_empty() && value.trim() == value && value.chars().all(fits);
    if !is_value || value.len() > MOST_BYTES {
        return Err(format!(
            "expected a value of 1 to {MOST_BYTES} printable ASCII characters for {name}, without space around it"
        ));
    }
    Ok((name.to_ascii_lowercase(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_harmless_headers_may_be_set() {
        for name in [
            "Accept-Language",
            "accept-language",
            "DNT",
            "X-Requested-With",
        ] {
            let (sent, _) = normalize_request_header(name, "de").unwrap();
            assert_eq!(sent, name.to_ascii_lowercase());
        }
        for name in [
            "Host",
            "Cookie",
            "Authorization",
            "Proxy-Authorization",
            "Content-Length",
            "Connection",
            "Transfer-Encoding",
            "TE",
            "Trailer",
            "Upgrade",
            "User-Agent",
            "Range",
            "If-None-Match",
            "If-Modified-Since",
            "If-Range",
            "Accept-Encoding",
            "Referer",
            "Origin",
            "From",
            "Via",
            "X-Forwarded-For",
            "Forwarded",
            "Keep-Alive",
            "Expect",
            ":authority",
            "",
            " Accept",
            "Accept\r\nX",
        ] {
            assert!(normalize_request_header(name, "x").is_err(), "{name}");
        }
        for value in [
            "",
            " de",
            "de ",
            "d\te",
            "d\r\nX: y",
            "dé",
            &"d".repeat(501),
        ] {
            assert!(
                normalize_request_header("Accept-Language", value).is_err(),
                "{value:?}"
            );
        }
    }
}
