//! What a body is used for, which decides how it is read.

/// What a body is used for, which decides how it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyRule {
    /// A page: other types than text are left unread, a body over the cap is an outcome.
    Page,
    /// A page or a document: what may be one is read, too.
    PageOrDocument,
    /// robots.txt: any type, and only its beginning counts (RFC 9309 2.5).
    Beginning { bytes: usize },
    /// A subresource of a page in the browser: any type.
    Subresource,
}

impl BodyRule {
    /// A page, perhaps a document.
    pub(super) fn is_page(self) -> bool {
        matches!(self, BodyRule::Page | BodyRule::PageOrDocument)
    }
}
