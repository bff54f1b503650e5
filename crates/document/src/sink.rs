//! Receives the calls of the HTML and XML parsers, and builds the tree from them ([`Growing`]).

use std::borrow::Cow;
use std::cell::RefCell;

use html5ever::interface::{
    Attribute, ElementFlags, ExpandedName, NodeOrText, QuirksMode, TreeSink,
};
use html5ever::tendril::StrTendril;
use html5ever::{LocalName, Namespace, QualName};

use crate::growing::{DOCUMENT, Data, Growing};
use crate::limits::{Limits, Truncation};

pub(crate) struct Sink {
    tree: RefCell<Growing>,
}

/// Refers to a node for the parser. It contains the name of the element, because the parser needs the names of open
/// elements very often.
#[derive(Clone)]
pub(crate) struct Handle {
    index: u32,
    namespace: Namespace,
    local: LocalName,
}

impl Handle {
    fn unnamed(index: u32) -> Self {
        Handle {
            index,
            namespace: html5ever::ns!(),
            local: html5ever::local_name!(""),
        }
    }
}

impl Sink {
    pub(crate) fn new(limits: &Limits, input_bytes: usize) -> Self {
        Sink {
            tree: RefCell::new(Growing::new(limits, input_bytes)),
        }
    }

    pub(crate) fn reached_limit(&self) -> Option<Truncation> {
        self.tree.borrow().reached_limit()
    }

    fn create(&self, data: Data) -> Handle {
        Handle::unnamed(self.tree.borrow_mut().create(data))
    }
}

impl TreeSink for Sink {
    type Handle = Handle;
    type Output = Growing;
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) -> Growing {
        self.tree.into_inner()
    }

    fn parse_error(&self, _message: Cow<'static, str>) {}

    fn get_document(&self) -> Handle {
        Handle::unnamed(DOCUMENT)
    }

    fn elem_name<'a>(&'a self, target: &'a Handle) -> ExpandedName<'a> {
        ExpandedName {
            ns: &target.namespace,
            local: &target.local,
        }
    }

    fn create_element(
        &self,
        name: QualName,
        attributes: Vec<Attribute>,
        flags: ElementFlags,
    ) -> Handle {
        let (namespace, local) = (name.ns.clone(), name.local.clone());
        let integration_point = flags.mathml_annotation_xml_integration_point;
        let data = Data::Element {
            name,
            attributes,
            integration_point,
        };
        Handle {
            index: self.tree.borrow_mut().create(data),
            namespace,
            local,
        }
    }

    fn create_comment(&self, text: StrTendril) -> Handle {
        self.create(Data::Comment(text))
    }

    fn create_pi(&self, target: StrTendril, data: StrTendril) -> Handle {
        self.create(Data::Instruction { target, data })
    }

    fn append(&self, parent: &Handle, child: NodeOrText<Handle>) {
        let mut tree = self.tree.borrow_mut();
        match child {
            NodeOrText::AppendNode(node) => tree.append(parent.index, node.index),
            NodeOrText::AppendText(text) => tree.append_text(parent.index, text),
        }
    }

    fn append_based_on_parent_node(
        &self,
        element: &Handle,
        previous_element: &Handle,
        child: NodeOrText<Handle>,
    ) {
        let has_parent = self.tree.borrow().parent(element.index).is_some();
        if has_parent {
            self.append_before_sibling(element, child);
        } else {
            self.append(previous_element, child);
        }
    }

    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}

    /// Returns the template itself. So the contents of a template are its children, and expressions can find them.
    fn get_template_contents(&self, target: &Handle) -> Handle {
        target.clone()
    }

    fn allow_declarative_shadow_roots(&self, _intended_parent: &Handle) -> bool {
        false
    }

    fn same_node(&self, x: &Handle, y: &Handle) -> bool {
        x.index == y.index
    }

    fn set_quirks_mode(&self, _mode: QuirksMode) {}

    fn append_before_sibling(&self, sibling: &Handle, child: NodeOrText<Handle>) {
        let mut tree = self.tree.borrow_mut();
        match child {
            NodeOrText::AppendNode(node) => tree.insert_before(sibling.index, node.index),
            NodeOrText::AppendText(text) => tree.insert_text_before(sibling.index, text),
        }
    }

    fn add_attrs_if_missing(&self, target: &Handle, attributes: Vec<Attribute>) {
        self.tree
            .borrow_mut()
            .add_missing_attributes(target.index, attributes);
    }

    fn remove_from_parent(&self, target: &Handle) {
        self.tree.borrow_mut().detach(target.index);
    }

    fn reparent_children(&self, node: &Handle, new_parent: &Handle) {
        self.tree
            .borrow_mut()
            .move_children(node.index, new_parent.index);
    }

    fn is_mathml_annotation_xml_integration_point(&self, handle: &Handle) -> bool {
        self.tree.borrow().is_integration_point(handle.index)
    }
}
