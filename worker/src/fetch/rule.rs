//! What a body is needed for, which decides how it is read.

/// What a body is needed for, which decides how it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyRule {
    /// The body of a page: only text is read, and the accepted files. If the body exceeds its limit, the request ends
    /// as too large.
    Page(Files),
    /// robots.txt: any type, and only its beginning counts (RFC 9309 2.5).
    Beginning { bytes: usize },
    /// A subresource of a page in the browser: any type.
    Subresource,
}

/// The kinds of files that are accepted in addition to pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Files {
    pub documents: bool,
    pub sitemaps: bool,
    /// Whether robots.txt lists the requested URL as a sitemap.
    pub is_named_sitemap: bool,
}

impl BodyRule {
    /// Whether a body is read as a page or as another accepted file.
    pub(super) fn is_page(self) -> bool {
        matches!(self, BodyRule::Page(_))
    }

    /// The files that are accepted although they are not pages.
    pub(super) fn files(self) -> Files {
        match self {
            BodyRule::Page(files) => files,
            BodyRule::Beginning { .. } | BodyRule::Subresource => Files::default(),
        }
    }
}
