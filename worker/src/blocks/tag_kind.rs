//! The kinds of elements that the scan of a page distinguishes, by the names of their tags.

/// The length of the longest name that has a kind of its own.
const LONGEST: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TagKind {
    Base,
    /// Elements where people enter something.
    Field,
    Link,
    /// Elements that show something other than text.
    Media,
    Meta,
    NoScript,
    /// Elements whose content is not shown, apart from scripts and the title.
    NotShown,
    Script,
    Title,
    /// Elements that do not end a paragraph, apart from links.
    WithinText,
    Other,
}

impl TagKind {
    /// The kind of the element with this name, in any case.
    pub fn of_name(name: &str) -> TagKind {
        let mut lower = [0; LONGEST];
        let Some(lower) = lower.get_mut(..name.len()) else {
            return TagKind::Other;
        };
        lower.copy_from_slice(name.as_bytes());
        lower.make_ascii_lowercase();
        match &*lower {
            b"a" => TagKind::Link,
            b"abbr" | b"b" | b"bdi" | b"big" | b"br" | b"cite" | b"code" | b"del" | b"em"
            | b"font" | b"i" | b"ins" | b"mark" | b"q" | b"s" | b"small" | b"span" | b"strong"
            | b"sub" | b"sup" | b"u" => TagKind::WithinText,
            b"audio" | b"embed" | b"iframe" | b"img" | b"object" | b"picture" | b"svg"
            | b"video" => TagKind::Media,
            b"input" | b"select" | b"textarea" => TagKind::Field,
            b"base" => TagKind::Base,
            b"meta" => TagKind::Meta,
            b"noscript" => TagKind::NoScript,
            b"script" => TagKind::Script,
            b"style" | b"template" => TagKind::NotShown,
            b"title" => TagKind::Title,
            _ => TagKind::Other,
        }
    }

    /// Whether the element does not end a paragraph.
    pub fn is_within_text(self) -> bool {
        matches!(self, TagKind::Link | TagKind::WithinText)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_their_kind_in_any_case() {
        for (name, kind) in [
            ("a", TagKind::Link),
            ("TextArea", TagKind::Field),
            ("NOSCRIPT", TagKind::NoScript),
            ("iframe", TagKind::Media),
            ("strong", TagKind::WithinText),
            ("p", TagKind::Other),
            ("blockquote", TagKind::Other),
            ("", TagKind::Other),
        ] {
            assert_eq!(TagKind::of_name(name), kind, "{name}");
        }
    }
}
