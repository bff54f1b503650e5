//! A parsed page: its tree, whether it was truncated, and its copies in the form of `sxd-xpath`. The copies are built
//! when they are first needed.

use std::cell::{Cell, OnceCell};
use std::time::Duration;

use html5ever::LocalName;

use crate::freeze::freeze;
use crate::limits::{Limits, Truncation};
use crate::node::NodeRef;
use crate::parse::{self, Parsed};
use crate::tree::{ROOT, Tree};
use crate::vocabulary::Vocabulary;
use crate::xpath::sxd::{self, SxdTree};

/// A parsed page. Parsing never fails; a page that exceeds the limits is cut, and [`Document::truncation`] says so.
///
/// A document stays on the thread that parsed it, because it builds an `sxd-document` for some expressions, which
/// cannot move. Dropping it frees everything.
pub struct Document {
    pub(crate) tree: Tree,
    pub(crate) vocabulary: Vocabulary,
    pub(crate) is_html: bool,
    truncated: Option<Truncation>,
    memory_bytes: usize,
    most_memory_bytes: usize,
    evaluation_time: Duration,
    /// The time that is left for evaluating expressions.
    pub(crate) time_left: Cell<Duration>,
    sxd: OnceCell<SxdTree>,
    pub(crate) blank_sxd: OnceCell<SxdTree>,
}

impl Document {
    /// Parses as browsers do (HTML standard, 13.2), without scripting, so that the contents of `noscript` are in the
    /// tree. Element names have no namespace, and are in lower case except for some of SVG (`foreignObject`). The
    /// contents of a `template` are its children. `text` must be decoded, lossily if necessary.
    pub fn parse_html(text: &str, limits: &Limits) -> Document {
        Document::from_parsed(parse::parse_html(text, limits), true, text.len(), limits)
    }

    /// Parses XML or XHTML, and tolerates text that is not well-formed. Names keep their case. The prefix of an
    /// element is part of its name (`media:title`) unless it is XHTML, SVG or MathML, or in the namespace of the root
    /// element.
    pub fn parse_xml(text: &str, limits: &Limits) -> Document {
        Document::from_parsed(parse::parse_xml(text, limits), false, text.len(), limits)
    }

    fn from_parsed(parsed: Parsed, is_html: bool, input_bytes: usize, limits: &Limits) -> Document {
        let frozen = freeze(&parsed.tree, input_bytes, limits);
        Document {
            tree: frozen.tree,
            vocabulary: frozen.vocabulary,
            is_html,
            truncated: parsed.truncation.or(frozen.truncation),
            memory_bytes: parsed.tree.memory_bytes(),
            most_memory_bytes: limits.memory_bytes,
            evaluation_time: limits.evaluation_time,
            time_left: Cell::new(limits.evaluation_time),
            sxd: OnceCell::new(),
            blank_sxd: OnceCell::new(),
        }
    }

    /// Why a part of the page, usually its end, is missing from the tree; `None` if the tree is complete.
    pub fn truncation(&self) -> Option<Truncation> {
        self.truncated
    }

    /// An upper limit of the memory that the tree and its copies for expressions need, in bytes.
    pub fn memory_bytes(&self) -> usize {
        match self.sxd.get() {
            Some(_) => self.memory_bytes + self.sxd_tree_bytes(),
            None => self.memory_bytes,
        }
    }

    /// The copy of the tree for expressions that need one. `None` if it would need more memory than the document may
    /// have.
    pub(crate) fn sxd_tree(&self) -> Option<&SxdTree> {
        if self.sxd.get().is_none()
            && self.memory_bytes + self.sxd_tree_bytes() > self.most_memory_bytes
        {
            return None;
        }
        Some(self.sxd.get_or_init(|| SxdTree::from_tree(&self.tree)))
    }

    fn sxd_tree_bytes(&self) -> usize {
        sxd::memory_of(&self.tree)
    }

    /// The document node, which contains all others.
    pub fn root(&self) -> NodeRef<'_> {
        NodeRef::new(self, ROOT)
    }

    /// The elements with a name, in document order, found by an index.
    pub fn elements_by_tag(&self, tag: &str) -> impl Iterator<Item = NodeRef<'_>> {
        let name = self.tree.name_id(&LocalName::from(tag));
        self.tree
            .elements_named(name)
            .iter()
            .map(|id| NodeRef::new(self, *id))
    }

    pub(crate) fn evaluation_time(&self) -> Duration {
        self.evaluation_time
    }
}
