//! Repairs faults of page trees that other PDF readers tolerate: nodes without a type, nodes that are their own
//! descendants, and pages without a size. The parser counts pages twice in such a tree, or misses them, and
//! `pdf-extract` panics at a page without a size.

use std::collections::HashSet;

use pdf_extract::{Dictionary, Document, Object, ObjectId};

/// The size of a page without a size of its own, in points, as in other PDF readers.
const US_LETTER: [i64; 4] = [0, 0, 612, 792];

pub(super) fn repair_tree(document: &mut Document) {
    let root = document.catalog().and_then(|it| it.get(b"Pages"));
    let Ok(root) = root.and_then(Object::as_reference) else {
        return;
    };
    let walk = Walk::new(document, root);
    for (id, kind) in walk.untyped {
        if let Ok(node) = document.get_dictionary_mut(id) {
            node.set("Type", Object::Name(kind.into()));
        }
    }
    if walk.has_loops
        && let Ok(root) = document.get_dictionary_mut(root)
    {
        let pages = walk.pages.iter().map(|id| Object::from(*id));
        root.set("Kids", pages.collect::<Vec<Object>>());
    }
    for page in walk.pages {
        set_default_size(document, page);
    }
}

/// What a walk through the page tree has found.
#[derive(Default)]
struct Walk {
    pages: Vec<ObjectId>,
    /// Nodes without a type, each with the type that it should have.
    untyped: Vec<(ObjectId, &'static str)>,
    /// Whether a node was reached twice.
    has_loops: bool,
}

impl Walk {
    fn new(document: &Document, root: ObjectId) -> Walk {
        let mut walk = Walk::default();
        let mut seen = HashSet::new();
        let mut nodes = vec![root];
        while let Some(id) = nodes.pop() {
            let Ok(node) = document.get_dictionary(id) else {
                continue;
            };
            if !seen.insert(id) {
                walk.has_loops = true;
                continue;
            }
            let kids = node.get_deref(b"Kids", document).and_then(Object::as_array);
            match kids {
                Ok(kids) => {
                    let kids = kids.iter().rev().filter_map(|kid| kid.as_reference().ok());
                    nodes.extend(kids);
                    walk.note_type(id, node, "Pages");
                }
                Err(_) if node.has(b"Contents") || node.has_type(b"Page") => {
                    walk.pages.push(id);
                    walk.note_type(id, node, "Page");
                }
                Err(_) => {}
            }
        }
        walk
    }

    fn note_type(&mut self, id: ObjectId, node: &Dictionary, kind: &'static str) {
        if !node.has_type(kind.as_bytes()) {
            self.untyped.push((id, kind));
        }
    }
}

/// Sets the size of a page if neither it nor its parents have one. If a page is its own ancestor, the chain of parents
/// is cut at the repetition.
fn set_default_size(document: &mut Document, page: ObjectId) {
    let mut seen = HashSet::from([page]);
    let mut node = page;
    while let Ok(dictionary) = document.get_dictionary(node) {
        if let Ok(size) = dictionary.get(b"MediaBox") {
            if is_size(document, size) {
                return;
            }
            break;
        }
        let Ok(parent) = dictionary.get(b"Parent").and_then(Object::as_reference) else {
            break;
        };
        if !seen.insert(parent) {
            if let Ok(node) = document.get_dictionary_mut(node) {
                node.remove(b"Parent");
            }
            break;
        }
        node = parent;
    }
    if let Ok(page) = document.get_dictionary_mut(page) {
        page.set("MediaBox", US_LETTER.map(Object::from).to_vec());
    }
}

fn is_size(document: &Document, size: &Object) -> bool {
    let is_number = |one: &Object| {
        let one = document.dereference(one);
        one.is_ok_and(|(_, one)| one.as_float().is_ok())
    };
    let numbers = document
        .dereference(size)
        .and_then(|(_, size)| size.as_array());
    numbers.is_ok_and(|numbers| numbers.len() >= 4 && numbers.iter().all(is_number))
}
