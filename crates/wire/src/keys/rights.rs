//! Rights, which limit what the owner of a client's key or token may do. A list has them after the key, as `apps=a,b`
//! and `read-only`. Without them, the owner has all rights of a client.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// The rights of the owner of a client's key or token.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rights {
    /// The applications that the owner may query, feed and change; `None` means all.
    apps: Option<Arc<BTreeSet<String>>>,
    /// Whether the owner may only query, and change nothing.
    read_only: bool,
}

const APPS: &str = "apps=";
const READ_ONLY: &str = "read-only";

impl Rights {
    /// All rights of a client.
    pub const ALL: Rights = Rights {
        apps: None,
        read_only: false,
    };

    /// Rights for these applications only; for all if `apps` is empty.
    pub fn new(apps: &[String], read_only: bool) -> Result<Rights, String> {
        if let Some(wrong) = apps.iter().find(|app| !is_valid_app_id(app)) {
            return Err(format!(
                "`{wrong}` is no application: 1 to 200 characters, without white space, `,` and `/`"
            ));
        }
        let apps: BTreeSet<String> = apps.iter().cloned().collect();
        Ok(Rights {
            apps: (!apps.is_empty()).then(|| Arc::new(apps)),
            read_only,
        })
    }

    /// Parses the rights in a line of a list: the words after the key.
    pub fn parse(words: &[&str]) -> Result<Rights, String> {
        let (mut apps, mut read_only) = (None, false);
        for word in words {
            match word.strip_prefix(APPS) {
                Some(named) if apps.is_none() => {
                    let named: Vec<String> = named.split(',').map(str::to_owned).collect();
                    apps = Some(named);
                }
                None if *word == READ_ONLY && !read_only => read_only = true,
                _ => {
                    return Err(format!(
                        "`{word}` is no right: expected `apps=A,B` or `read-only`, once each"
                    ));
                }
            }
        }
        Rights::new(&apps.unwrap_or_default(), read_only)
    }

    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Whether the rights are limited to some applications. If so, the owner has no access to anything that concerns
    /// all applications.
    pub fn is_limited_to_apps(&self) -> bool {
        self.apps.is_some()
    }

    /// The applications that the rights are limited to; `None` if there is no limit.
    pub fn apps(&self) -> Option<Vec<String>> {
        let apps = self.apps.as_ref();
        apps.map(|apps| apps.iter().cloned().collect())
    }

    pub fn permits_app(&self, app_id: &str) -> bool {
        self.apps.as_ref().is_none_or(|apps| apps.contains(app_id))
    }
}

fn is_valid_app_id(app: &str) -> bool {
    let fits = |c: char| !c.is_whitespace() && !c.is_control() && !",/".contains(c);
    (1..=200).contains(&app.chars().count()) && app.chars().all(fits)
}

/// The rights as written in a list; empty for [`Rights::ALL`].
impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let apps = self.apps.as_ref().map(|apps| {
            let apps: Vec<&str> = apps.iter().map(String::as_str).collect();
            format!("{APPS}{}", apps.join(","))
        });
        let read_only = self.read_only.then(|| READ_ONLY.to_owned());
        let words: Vec<String> = apps.into_iter().chain(read_only).collect();
        f.write_str(&words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_survive_formatting_and_parsing() {
        for (words, shown) in [
            (&[][..], ""),
            (&["read-only"], "read-only"),
            (&["apps=b,a"], "apps=a,b"),
            (&["read-only", "apps=shop:1"], "apps=shop:1 read-only"),
        ] {
            let rights = Rights::parse(words).unwrap();
            assert_eq!(rights.to_string(), shown);
            let again: Vec<&str> = shown.split_whitespace().collect();
            assert_eq!(Rights::parse(&again).unwrap(), rights);
        }
        assert_eq!(Rights::parse(&[]).unwrap(), Rights::ALL);
    }

    #[test]
    fn unknown_words_are_refused_as_rights() {
        for wrong in [
            &["readonly"][..],
            &["apps"],
            &["apps="],
            &["apps=a,"],
            &["apps=a/b"],
            &["apps=a", "apps=b"],
            &["read-only", "read-only"],
            &["Read-Only"],
        ] {
            assert!(Rights::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn only_the_named_applications_are_permitted() {
        let bound = Rights::parse(&["apps=a,b"]).unwrap();
        assert!(bound.is_limited_to_apps() && bound.permits_app("a") && bound.permits_app("b"));
        for other in ["ab", "c", "", "A"] {
            assert!(!bound.permits_app(other), "{other}");
        }
        assert!(!Rights::ALL.is_limited_to_apps() && Rights::ALL.permits_app("whatever"));
    }
}
