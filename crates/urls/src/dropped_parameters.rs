//! Query parameters that do not change the page, such as `utm_source`, which is added when a link is shared. They are
//! dropped when URLs are compared, but never from the requested URL.

use std::borrow::Cow;

/// Names of query parameters to drop. Case is ignored; `*` at the end of a name stands for any ending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DroppedParameters(Vec<String>);

impl DroppedParameters {
    /// The default value of the setting.
    pub const USUAL: &str = "utm_*";

    pub fn with_defaults() -> DroppedParameters {
        DroppedParameters(vec![DroppedParameters::USUAL.into()])
    }

    /// # Errors
    ///
    /// Says what is wrong with the first bad name. A name must not be empty, may have only characters of a parameter
    /// name in a URL, and may have a `*` only at the end.
    pub fn new(names: &[String]) -> Result<DroppedParameters, String> {
        for name in names {
            let stem = name.strip_suffix('*').unwrap_or(name);
            let is_plain = |c: char| c.is_ascii_graphic() && !"*&=#?".contains(c);
            if stem.is_empty() || !stem.chars().all(is_plain) {
                return Err(format!(
                    "`{name}` is not the name of a query parameter, such as `ref`, or the start of names, such as `utm_*`"
                ));
            }
        }
        let names = names.iter().map(|name| name.to_ascii_lowercase());
        Ok(DroppedParameters(names.collect()))
    }

    /// The canonical URL without its dropped parameters, for comparison with other URLs.
    pub fn strip_from<'u>(&self, url: &'u str) -> Cow<'u, str> {
        let Some((before, query)) = url.split_once('?').filter(|_| !self.0.is_empty()) else {
            return url.into();
        };
        let (query, fragment) = match query.find('#') {
            Some(at) => query.split_at(at),
            None => (query, ""),
        };
        if !query.split('&').any(|pair| self.is_dropped(pair)) {
            return url.into();
        }
        let kept: Vec<&str> = query
            .split('&')
            .filter(|pair| !self.is_dropped(pair))
            .collect();
        let mark = if kept.is_empty() { "" } else { "?" };
        format!("{before}{mark}{}{fragment}", kept.join("&")).into()
    }

    fn is_dropped(&self, pair: &str) -> bool {
        let name = pair.split('=').next().unwrap_or_default().as_bytes();
        self.0
            .iter()
            .any(|dropped| match dropped.strip_suffix('*') {
                Some(stem) => {
                    let beginning = name.get(..stem.len());
                    beginning.is_some_and(|begins| begins.eq_ignore_ascii_case(stem.as_bytes()))
                }
                None => name.eq_ignore_ascii_case(dropped.as_bytes()),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_parameters_are_dropped_and_all_others_stay_as_they_are() {
        let names = ["utm_*", "ref"].map(String::from);
        let dropped = DroppedParameters::new(&names).unwrap();
        for (url, expected) in [
            ("http://a.example/", "http://a.example/"),
            ("http://a.example/?", "http://a.example/?"),
            ("http://a.example/?utm_source=x", "http://a.example/"),
            (
                "http://a.example/?UTM_Source=x&b=1",
                "http://a.example/?b=1",
            ),
            ("http://a.example/?b=1&ref&c=2", "http://a.example/?b=1&c=2"),
            (
                "http://a.example/?reference=1",
                "http://a.example/?reference=1",
            ),
            ("http://a.example/?b=utm_x", "http://a.example/?b=utm_x"),
            ("http://a.example/?utm=1", "http://a.example/?utm=1"),
            ("http://a.example/?b=1&&c", "http://a.example/?b=1&&c"),
            (
                "http://a.example/?ref=1#/x?ref=2",
                "http://a.example/#/x?ref=2",
            ),
            ("http://a.example/ref=1", "http://a.example/ref=1"),
        ] {
            assert_eq!(dropped.strip_from(url), expected, "{url}");
        }
        let none = DroppedParameters::default();
        assert_eq!(none.strip_from("http://a.example/?utm_source=x").len(), 30);
        for wrong in ["", "*", "a*b", "a=b", "a b", "\u{fc}"] {
            let refused = DroppedParameters::new(&[wrong.to_owned()]).unwrap_err();
            assert!(refused.contains(wrong), "{refused}");
        }
    }
}
