//! Walks the axes of XPath over the tree.
//!
//! A walk starts from a whole node-set. Except on the axis `parent`, it visits no node twice, even if the nodes contain
//! each other. So `//*//*//*` takes three passes over the page. From a single node, a walk goes in the order of the
//! axis, so that a search for a position can stop early.

use std::ops::{ControlFlow, Range};

use rustc_hash::FxHashSet;

use super::ast::Axis;
use super::plan::StepAxis;
use crate::limits::{Budget, OutOfTime};
use crate::tree::{Kind, NameId, NodeId, ROOT, Tree};

/// A node in the sense of XPath: a node of the tree, or one of its attributes. Items compare by document order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Item {
    pub(crate) node: NodeId,
    /// The number of the attribute plus one; 0 if the item is the node itself.
    attribute: u32,
}

impl Item {
    pub(crate) const ROOT: Item = Item::node(ROOT);

    pub(crate) const fn node(node: NodeId) -> Self {
        Item { node, attribute: 0 }
    }

    pub(crate) fn new_attribute(node: NodeId, index: u32) -> Self {
        Item {
            node,
            attribute: index + 1,
        }
    }

    /// The number of the attribute, if the item is one.
    pub(crate) fn attribute(self) -> Option<u32> {
        self.attribute.checked_sub(1)
    }

    pub(crate) fn is_node(self) -> bool {
        self.attribute == 0
    }
}

/// A node test whose name has been looked up for the page.
#[derive(Clone, Copy)]
pub(crate) enum ResolvedTest<'p> {
    Name(NameId),
    AnyName,
    AnyNode,
    Text,
    Comment,
    Instruction(Option<&'p str>),
}

/// Why a walk ends early: the visitor has enough, or there was an error, such as the end of the time budget.
pub(crate) enum WalkEnd<E> {
    Enough,
    Error(E),
}

pub(crate) type Flow<E> = ControlFlow<WalkEnd<E>>;

pub(crate) struct Walk<'t, F> {
    pub(crate) tree: &'t Tree,
    pub(crate) budget: &'t Budget,
    pub(crate) test: ResolvedTest<'t>,
    pub(crate) visit: F,
}

/// Whether a walk on this axis goes against document order, as on `ancestor::`.
pub(crate) fn is_reverse(way: StepAxis) -> bool {
    use Axis::{Ancestor, AncestorOrSelf, Preceding, PrecedingSibling};
    matches!(
        way,
        StepAxis::Axis(Ancestor | AncestorOrSelf | Preceding | PrecedingSibling)
    )
}

impl<E, F> Walk<'_, F>
where
    E: From<OutOfTime>,
    F: FnMut(Item) -> Flow<E>,
{
    /// Walks from each item of `from`, which must be in document order.
    pub(crate) fn run(&mut self, way: StepAxis, from: &[Item]) -> Flow<E> {
        match way {
            StepAxis::EachChild => self.walk_descendants(from, false),
            StepAxis::EachAttribute => self.walk_attributes_within(from),
            StepAxis::Axis(axis) => self.run_axis(axis, from),
        }
    }

    fn run_axis(&mut self, axis: Axis, from: &[Item]) -> Flow<E> {
        match axis {
            Axis::Myself => from.iter().try_for_each(|item| self.offer_item(*item)),
            Axis::Child => from
                .iter()
                .filter(|item| item.is_node())
                .try_for_each(|item| {
                    self.tree
                        .children(item.node)
                        .try_for_each(|child| self.offer(child))
                }),
            Axis::Descendant => self.walk_descendants(from, false),
            Axis::DescendantOrSelf => self.walk_descendants(from, true),
            Axis::Attribute => from
                .iter()
                .filter(|item| item.is_node())
                .try_for_each(|item| self.walk_attributes(item.node)),
            Axis::Parent => from.iter().try_for_each(|item| match self.parent(*item) {
                Some(parent) => self.offer(parent),
                None => ControlFlow::Continue(()),
            }),
            Axis::Ancestor => self.walk_ancestors(from, false),
            Axis::AncestorOrSelf => self.walk_ancestors(from, true),
            Axis::Following => self.walk_following(from),
            Axis::Preceding => self.walk_preceding(from),
            Axis::FollowingSibling => self.walk_following_siblings(from),
            Axis::PrecedingSibling => self.walk_preceding_siblings(from),
            // The axis is empty, because elements have no namespaces in the tree.
            Axis::Namespace => ControlFlow::Continue(()),
        }
    }

    fn parent(&self, item: Item) -> Option<NodeId> {
        if item.is_node() {
            self.tree.parent(item.node)
        } else {
            Some(item.node)
        }
    }

    fn walk_descendants(&mut self, from: &[Item], with_self: bool) -> Flow<E> {
        let mut covered = 0;
        for item in from {
            if !item.is_node() {
                if with_self {
                    self.offer_item(*item)?;
                }
                continue;
            }
            let first = item.node + NodeId::from(!with_self);
            let end = self.tree.end(item.node);
            self.walk_range(first.max(covered)..end)?;
            covered = covered.max(end);
        }
        ControlFlow::Continue(())
    }

    fn walk_attributes(&mut self, node: NodeId) -> Flow<E> {
        if let ResolvedTest::Name(name) = self.test {
            self.spend(1)?;
            return match self.tree.find_attribute(node, name) {
                Some(index) => (self.visit)(Item::new_attribute(node, index)),
                None => ControlFlow::Continue(()),
            };
        }
        if !matches!(self.test, ResolvedTest::AnyName | ResolvedTest::AnyNode) {
            return ControlFlow::Continue(());
        }
        self.tree.attributes(node).try_for_each(|index| {
            self.spend(1)?;
            (self.visit)(Item::new_attribute(node, index))
        })
    }

    /// Visits the attributes of the items, and those of their descendants.
    fn walk_attributes_within(&mut self, from: &[Item]) -> Flow<E> {
        let mut covered = 0;
        for item in from.iter().filter(|item| item.is_node()) {
            let end = self.tree.end(item.node);
            let owners = item.node.max(covered)..end;
            covered = covered.max(end);
            let ResolvedTest::Name(name) = self.test else {
                owners
                    .into_iter()
                    .try_for_each(|owner| self.walk_attributes(owner))?;
                continue;
            };
            let named = self.tree.attributes_named(name);
            let owner_of = |index: u32| self.tree.attribute(index).owner;
            let first = named.partition_point(|index| owner_of(*index) < owners.start);
            for index in &named[first..] {
                let owner = owner_of(*index);
                if owner >= owners.end {
                    break;
                }
                self.spend(1)?;
                (self.visit)(Item::new_attribute(owner, *index))?;
            }
        }
        ControlFlow::Continue(())
    }

    fn walk_ancestors(&mut self, from: &[Item], with_self: bool) -> Flow<E> {
        let mut seen = FxHashSet::default();
        for item in from {
            if with_self && !item.is_node() {
                self.offer_item(*item)?;
            }
            let mut next = match with_self && item.is_node() {
                true => Some(item.node),
                false => self.parent(*item),
            };
            while let Some(node) = next {
                if from.len() > 1 && !seen.insert(node) {
                    break;
                }
                self.offer(node)?;
                next = self.tree.parent(node);
            }
        }
        ControlFlow::Continue(())
    }

    /// Visits the nodes on the axis `following`. For an attribute, these are the nodes that follow its element, as in
    /// libxml2 and `sxd-xpath`.
    fn walk_following(&mut self, from: &[Item]) -> Flow<E> {
        match from.iter().map(|item| self.tree.end(item.node)).min() {
            Some(first) => self.walk_range(first..self.tree.len()),
            None => ControlFlow::Continue(()),
        }
    }

    fn walk_preceding(&mut self, from: &[Item]) -> Flow<E> {
        let Some(last) = from.last() else {
            return ControlFlow::Continue(());
        };
        if let ResolvedTest::Name(name) = self.test {
            let named = self.tree.elements_named(name);
            let before = named.partition_point(|node| *node < last.node);
            return named[..before].iter().rev().try_for_each(|node| {
                self.spend(1)?;
                self.offer_if(self.tree.end(*node) <= last.node, *node)
            });
        }
        (0..last.node).rev().try_for_each(|node| {
            self.spend(1)?;
            self.offer_if(self.tree.end(node) <= last.node, node)
        })
    }

    fn walk_following_siblings(&mut self, from: &[Item]) -> Flow<E> {
        let mut parents = FxHashSet::default();
        for item in from.iter().filter(|item| item.is_node()) {
            if from.len() > 1 && !parents.insert(self.tree.parent(item.node)) {
                continue;
            }
            let mut next = self.tree.next_sibling(item.node);
            while let Some(sibling) = next {
                self.offer(sibling)?;
                next = self.tree.next_sibling(sibling);
            }
        }
        ControlFlow::Continue(())
    }

    fn walk_preceding_siblings(&mut self, from: &[Item]) -> Flow<E> {
        let mut parents = FxHashSet::default();
        for item in from.iter().rev().filter(|item| item.is_node()) {
            if from.len() > 1 && !parents.insert(self.tree.parent(item.node)) {
                continue;
            }
            let mut next = self.tree.previous_sibling(item.node);
            while let Some(sibling) = next {
                self.offer(sibling)?;
                next = self.tree.previous_sibling(sibling);
            }
        }
        ControlFlow::Continue(())
    }

    /// Visits the nodes in a range of the document. Uses the index if the test is for a name.
    fn walk_range(&mut self, nodes: Range<NodeId>) -> Flow<E> {
        let ResolvedTest::Name(name) = self.test else {
            return nodes.into_iter().try_for_each(|node| self.offer(node));
        };
        let named = self.tree.elements_named(name);
        let first = named.partition_point(|node| *node < nodes.start);
        for node in &named[first..] {
            if *node >= nodes.end {
                break;
            }
            self.spend(1)?;
            (self.visit)(Item::node(*node))?;
        }
        ControlFlow::Continue(())
    }

    fn offer(&mut self, node: NodeId) -> Flow<E> {
        self.offer_item(Item::node(node))
    }

    fn offer_if(&mut self, condition: bool, node: NodeId) -> Flow<E> {
        if condition {
            self.offer(node)
        } else {
            ControlFlow::Continue(())
        }
    }

    fn offer_item(&mut self, item: Item) -> Flow<E> {
        self.spend(1)?;
        if self.passes(item) {
            (self.visit)(item)
        } else {
            ControlFlow::Continue(())
        }
    }

    /// Whether an item passes the node test. A name in the test means an element, so an attribute never passes it:
    /// `@href/self::href` is empty.
    fn passes(&self, item: Item) -> bool {
        match self.test {
            ResolvedTest::AnyNode => true,
            _ if !item.is_node() => false,
            ResolvedTest::Name(name) => self.tree.is_named(item.node, name),
            ResolvedTest::AnyName => self.tree.is_element(item.node),
            ResolvedTest::Text => self.tree.kind(item.node) == Kind::Text,
            ResolvedTest::Comment => self.tree.kind(item.node) == Kind::Comment,
            ResolvedTest::Instruction(target) => {
                self.tree.kind(item.node) == Kind::Instruction
                    && target.is_none_or(|target| {
                        self.tree
                            .aside_of(item.node)
                            .is_some_and(|aside| &*aside.target == target)
                    })
            }
        }
    }

    fn spend(&self, units: usize) -> Flow<E> {
        match self.budget.spend(units) {
            Ok(()) => ControlFlow::Continue(()),
            Err(out_of_time) => ControlFlow::Break(WalkEnd::Error(out_of_time.into())),
        }
    }
}
