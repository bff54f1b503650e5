//! What a body is used for, which decides how it is read.

/// What a body is used for, which decides how it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyRule {
    /// A page: other types than text are left unread, except those of files that are taken, too. A body
    /// over the cap is an outcome.
    Page(Files),
    /// robots.txt: any type, and only its beginning counts (RFC 9309 2.5).
    Beginning { bytes: usize },
    /// A subresource of a page in the browser: any type.
    Subresource,
}

/// The files that are taken beside pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Files {
    pub documents: bool,
    pub sitemaps: bool,
    /// robots.txt says that it is one.
    pub is_named_sitemap: bool,
}

impl BodyRule {
    /// A page, or a file that is taken, too.
    pub(super) fn is_page(self) -> bool {
        matches!(self, BodyRule::Page(_))
    }

    /// The files that are taken.
    pub(super) fn files(self) -> Files {
        match self {
            BodyRule::Page(files) => files,
            BodyRule::Beginning { .. } | BodyRule::Subresource => Files::default(),
        }
    }
}
