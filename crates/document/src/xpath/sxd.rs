//! Copies a page into an `sxd-document`, and evaluates expressions on it with `sxd-xpath` ("sxd").
//!
//! The `sxd-document` is built once per page, when the first expression needs it. Many pages never need it. Only this
//! module knows the nodes and values of sxd.

use std::cell::RefCell;

use rustc_hash::FxHashMap;
use self_cell::self_cell;
use sxd_document::Package;
use sxd_document::dom;
use sxd_xpath::context::Evaluation;
use sxd_xpath::function::{Args, Error, Function};
use sxd_xpath::nodeset::Node;
use sxd_xpath::{Context, Value, XPath};

use super::number::{number_to_text, text_to_number};
use super::walk::Item;
use crate::tree::{Kind, ROOT, Tree};

/// The length limit of the result of `concat`, in bytes. Without it, an expression that repeats a path could copy the
/// page in memory many times.
const CONCAT_BYTES: usize = 32 << 20;

/// How many bytes of memory the copy of a node, an attribute and a byte of text takes at most.
/// `crates/document/tests/memory.rs` compares this with actual allocations.
const NODE_BYTES: usize = 560;
const ATTRIBUTE_BYTES: usize = 250;
const BYTES_PER_TEXT_BYTE: usize = 5;

/// An upper limit of the memory that the copy of a tree needs, in bytes.
pub(crate) fn memory_of(tree: &Tree) -> usize {
    tree.len() as usize * NODE_BYTES
        + tree.attribute_count() * ATTRIBUTE_BYTES
        + tree.text_bytes() * BYTES_PER_TEXT_BYTE
}

/// A value that is not a node-set.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Single {
    Text(String),
    Number(f64),
    Boolean(bool),
}

struct SxdNodes<'p> {
    /// The nodes in the `sxd-document`, by the numbers of the tree's nodes.
    nodes: Vec<Node<'p>>,
    context: RefCell<Context<'p>>,
}

self_cell!(
    struct Cell {
        owner: Package,
        #[not_covariant]
        dependent: SxdNodes,
    }
);

pub(crate) struct SxdTree(Cell);

impl SxdTree {
    /// Copies a whole page.
    pub(crate) fn from_tree(tree: &Tree) -> Self {
        SxdTree(Cell::new(Package::new(), |package| SxdNodes {
            nodes: copy_tree(tree, package.as_document()),
            context: RefCell::new(core_functions()),
        }))
    }

    /// Creates an empty document, for expressions that need nothing from the page.
    pub(crate) fn empty() -> Self {
        SxdTree(Cell::new(Package::new(), |package| SxdNodes {
            nodes: vec![package.as_document().root().into()],
            context: RefCell::new(core_functions()),
        }))
    }

    /// Evaluates an expression at the node `at`, or at the root if this document does not contain that node.
    pub(crate) fn evaluate(
        &self,
        expression: &XPath,
        at: Item,
        attribute_name: Option<&str>,
        variables: Vec<(&str, Single)>,
    ) -> Result<Single, String> {
        self.0.with_dependent(|_, built| {
            let mut context = built.context.borrow_mut();
            for (name, value) in variables {
                context.set_variable(name, into_value(value));
            }
            let node = built.node(at, attribute_name);
            let value = expression
                .evaluate(&context, node)
                .map_err(|error| error.to_string())?;
            Ok(into_single(value))
        })
    }

    /// Evaluates an expression at the root with the unmodified `sxd-xpath`.
    #[cfg(test)]
    pub(crate) fn evaluate_stock(&self, expression: &str) -> Result<Stock, String> {
        let compiled = sxd_xpath::Factory::new()
            .build(expression)
            .map_err(|e| e.to_string())?;
        let compiled = compiled.ok_or("empty")?;
        self.0.with_dependent(|_, built| {
            let value = compiled
                .evaluate(&Context::new(), built.nodes[ROOT as usize])
                .map_err(|error| error.to_string())?;
            Ok(match value {
                Value::Nodeset(set) => {
                    let nodes = set.document_order();
                    Stock::Nodes(nodes.iter().map(Node::string_value).collect())
                }
                other => Stock::Single(into_single(other)),
            })
        })
    }
}

#[cfg(test)]
#[derive(Debug, PartialEq)]
pub(crate) enum Stock {
    /// The texts of a set of nodes.
    Nodes(Vec<String>),
    Single(Single),
}

impl<'p> SxdNodes<'p> {
    fn node(&self, at: Item, attribute_name: Option<&str>) -> Node<'p> {
        let node = self
            .nodes
            .get(at.node as usize)
            .copied()
            .unwrap_or(self.nodes[0]);
        match (node, attribute_name) {
            (Node::Element(element), Some(name)) => {
                element.attribute(name).map_or(node, Node::Attribute)
            }
            _ => node,
        }
    }
}

fn into_value<'p>(single: Single) -> Value<'p> {
    match single {
        Single::Text(text) => Value::String(text),
        Single::Number(number) => Value::Number(number),
        Single::Boolean(boolean) => Value::Boolean(boolean),
    }
}

fn into_single(value: Value<'_>) -> Single {
    match value {
        Value::Number(number) => Single::Number(number),
        Value::Boolean(boolean) => Single::Boolean(boolean),
        other => Single::Text(other.into_string()),
    }
}

/// Copies the tree in document order, so that a parent exists before its children.
fn copy_tree<'p>(tree: &Tree, document: dom::Document<'p>) -> Vec<Node<'p>> {
    let mut nodes: Vec<Node<'p>> = Vec::with_capacity(tree.len() as usize);
    nodes.push(document.root().into());
    for id in ROOT + 1..tree.len() {
        let parent = tree
            .parent(id)
            .map_or(nodes[0], |parent| nodes[parent as usize]);
        nodes.push(match tree.kind(id) {
            Kind::Element(name) => {
                let element = document.create_element(tree.name(name));
                for index in tree.attributes(id) {
                    let name = tree.name(tree.attribute(index).name);
                    element.set_attribute_value(name, tree.attribute_value(index));
                }
                append(parent, element);
                element.into()
            }
            Kind::Text => {
                let text = document.create_text(tree.text(id));
                if let Node::Element(parent) = parent {
                    parent.append_child(text);
                }
                text.into()
            }
            Kind::Comment | Kind::Document => {
                let comment = document.create_comment(tree.string_value(id));
                append(parent, comment);
                comment.into()
            }
            Kind::Instruction => {
                let (target, data) = tree
                    .aside_of(id)
                    .map_or(("", ""), |aside| (&*aside.target, &*aside.text));
                let instruction = document.create_processing_instruction(target, Some(data));
                append(parent, instruction);
                instruction.into()
            }
        });
    }
    nodes
}

fn append<'p, N>(parent: Node<'p>, child: N)
where
    N: Into<dom::ChildOfRoot<'p>> + Into<dom::ChildOfElement<'p>>,
{
    match parent {
        Node::Element(parent) => parent.append_child(child),
        Node::Root(root) => root.append_child(child),
        _ => {}
    }
}

/// The core functions of XPath. Functions of sxd are replaced if they do not follow the standard, or if a page could
/// make them take long.
fn core_functions<'p>() -> Context<'p> {
    let mut context = Context::new();
    context.set_function("number", ToNumber);
    context.set_function("string", ToText);
    context.set_function("concat", Concat);
    context.set_function("translate", Translate);
    context
}

/// `number()`: accepts digits with at most one point and one minus, and white space around them. The function of sxd
/// also accepts `+5`, `1e3` and `inf`.
struct ToNumber;

impl Function for ToNumber {
    fn evaluate<'c, 'd>(
        &self,
        _context: &Evaluation<'c, 'd>,
        arguments: Vec<Value<'d>>,
    ) -> Result<Value<'d>, Error> {
        let mut arguments = Args(arguments);
        arguments.exactly(1)?;
        Ok(Value::Number(match &arguments[0] {
            Value::Number(number) => *number,
            Value::Boolean(boolean) => f64::from(u8::from(*boolean)),
            _ => text_to_number(&arguments.pop_string()?),
        }))
    }
}

/// `string()`: writes negative zero as `0`. The function of sxd writes `-0`.
struct ToText;

impl Function for ToText {
    fn evaluate<'c, 'd>(
        &self,
        _context: &Evaluation<'c, 'd>,
        arguments: Vec<Value<'d>>,
    ) -> Result<Value<'d>, Error> {
        let mut arguments = Args(arguments);
        arguments.exactly(1)?;
        Ok(Value::String(match &arguments[0] {
            Value::Number(number) => number_to_text(*number),
            _ => arguments.pop_string()?,
        }))
    }
}

/// `concat()`, with a limit on the length of its result.
struct Concat;

impl Function for Concat {
    fn evaluate<'c, 'd>(
        &self,
        _context: &Evaluation<'c, 'd>,
        arguments: Vec<Value<'d>>,
    ) -> Result<Value<'d>, Error> {
        let mut whole = String::new();
        for argument in arguments {
            let piece = argument.into_string();
            if whole.len() + piece.len() > CONCAT_BYTES {
                let message = format!("the result of concat is longer than {CONCAT_BYTES} bytes");
                return Err(Error::Other(message));
            }
            whole.push_str(&piece);
        }
        Ok(Value::String(whole))
    }
}

/// `translate()`. The function of sxd takes ten times as long, so a page could make it take seconds.
struct Translate;

impl Function for Translate {
    fn evaluate<'c, 'd>(
        &self,
        _context: &Evaluation<'c, 'd>,
        arguments: Vec<Value<'d>>,
    ) -> Result<Value<'d>, Error> {
        let mut arguments = Args(arguments);
        arguments.exactly(3)?;
        let (to, from) = (arguments.pop_string()?, arguments.pop_string()?);
        let mut replacements: FxHashMap<char, Option<char>> = FxHashMap::default();
        let mut to = to.chars();
        for character in from.chars() {
            let replacement = to.next();
            replacements.entry(character).or_insert(replacement);
        }
        let replaced = |character| match replacements.get(&character) {
            Some(replacement) => *replacement,
            None => Some(character),
        };
        Ok(Value::String(
            arguments
                .pop_string()?
                .chars()
                .filter_map(replaced)
                .collect(),
        ))
    }
}
