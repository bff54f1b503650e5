//! Request headers that the operator configures for the pages of a site (`fetch.headers`), above all `Accept-Language`.

use webfill_mapping::normalize_request_header;
use webfill_urls::Url;

/// The configured request headers of all sites.
#[derive(Debug, Clone, Default)]
pub struct SiteHeaders(Vec<SiteHeader>);

#[derive(Debug, Clone)]
struct SiteHeader {
    /// A domain, which stands for itself and its subdomains; `None` for every site.
    domain: Option<String>,
    name: String,
    value: String,
}

impl SiteHeaders {
    /// Reads lines `SITE NAME: VALUE`; `*` is every site.
    ///
    /// # Errors
    ///
    /// Names the line and its fault.
    pub fn parse(lines: &[String]) -> Result<SiteHeaders, String> {
        let read = |line: &String| {
            SiteHeader::parse(line).map_err(|why| format!("fetch.headers: `{line}`: {why}"))
        };
        let mut headers = lines.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        // The header of the longest domain decides. Among those of one domain, the last does.
        headers.sort_by_key(|header| header.domain.as_ref().map_or(0, String::len));
        Ok(SiteHeaders(headers))
    }

    /// The configured headers for the site of a URL, each name once.
    pub fn of(&self, url: &Url) -> Vec<(&str, &str)> {
        let host = url.host_str().unwrap_or_default();
        let mut found: Vec<(&str, &str)> = Vec::new();
        for header in self.0.iter().filter(|header| header.is_for(host)) {
            found.retain(|(name, _)| *name != header.name);
            found.push((&header.name, &header.value));
        }
        found
    }

    /// The headers for the site of a URL as text. It becomes part of the description of how a page was read, because
    /// the page may depend on the headers.
    pub fn as_text(&self, url: &Url) -> String {
        let headers = self.of(url).into_iter();
        headers
            .map(|(name, value)| format!(" {name}={value}"))
            .collect()
    }
}

impl SiteHeader {
    fn parse(line: &str) -> Result<SiteHeader, String> {
        const FORM: &str = "expected `SITE NAME: VALUE`, as in `shop.example Accept-Language: de`";
        let (site, header) = line.trim().split_once(' ').ok_or(FORM)?;
        let (name, value) = header.split_once(':').ok_or(FORM)?;
        let (name, value) = normalize_request_header(name.trim(), value.trim())?;
        let domain = match site {
            "*" => None,
            site => Some(parse_domain(site).ok_or_else(|| format!("`{site}` is not a site"))?),
        };
        Ok(SiteHeader {
            domain,
            name,
            value,
        })
    }

    fn is_for(&self, host: &str) -> bool {
        let Some(domain) = &self.domain else {
            return true;
        };
        let above = host.strip_suffix(domain.as_str());
        above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
    }
}

/// The domain in the form used in canonical URLs.
fn parse_domain(site: &str) -> Option<String> {
    let url = Url::parse(&format!("http://{site}/")).ok()?;
    let is_host = url.path() == "/" && url.port().is_none() && url.username().is_empty();
    let host = url.host_str().filter(|_| is_host)?;
    Some(host.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[&str]) -> Result<SiteHeaders, String> {
        let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
        SiteHeaders::parse(&lines)
    }

    #[test]
    fn the_header_of_the_longest_domain_decides() {
        let headers = headers(&[
            "shop.example Accept-Language: fr",
            "* Accept-Language: en",
            "* DNT: 1",
            "Bücher.example accept-language: de-DE, de;q=0.8",
            "de.shop.example Accept-Language: de",
        ])
        .unwrap();
        let sent = |url: &str, name: &str| {
            let url = Url::parse(url).unwrap();
            let found = headers
                .of(&url)
                .into_iter()
                .find(|(known, _)| *known == name);
            found.map(|(_, value)| value.to_owned())
        };
        for (url, language) in [
            ("http://other.example/", "en"),
            ("http://shop.example/x", "fr"),
            ("http://www.shop.example:8080/", "fr"),
            ("http://de.shop.example/", "de"),
            ("http://workshop.example/", "en"),
            ("http://xn--bcher-kva.example/", "de-DE, de;q=0.8"),
        ] {
            assert_eq!(
                sent(url, "accept-language").as_deref(),
                Some(language),
                "{url}"
            );
            assert_eq!(sent(url, "dnt").as_deref(), Some("1"), "{url}");
        }
        let url = Url::parse("http://shop.example/").unwrap();
        assert_eq!(headers.as_text(&url), " dnt=1 accept-language=fr");
        assert_eq!(SiteHeaders::default().as_text(&url), "");
    }

    #[test]
    fn a_wrong_line_is_named() {
        for wrong in [
            "",
            "Accept-Language: de",
            "shop.example",
            "shop.example Accept-Language",
            "shop.example Accept-Language:",
            "shop.example Cookie: a=b",
            "shop.example Host: a",
            "shop.example/x Accept-Language: de",
            "shop.example:80x Accept-Language: de",
        ] {
            let why = headers(&[wrong]).unwrap_err();
            assert!(
                why.starts_with(&format!("fetch.headers: `{wrong}`: ")),
                "{why}"
            );
        }
    }
}
