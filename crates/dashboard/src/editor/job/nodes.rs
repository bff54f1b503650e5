//! Finds elements of a page by number, and the paths that lead to them.

use webfill_document::{Document, NodeRef, XPath, XValue};

/// The element of a page with this number, which is its position in the page's tree.
pub(super) fn element_by_number(document: &Document, number: usize) -> Option<NodeRef<'_>> {
    let mut nodes = document.root().descendants();
    nodes.find(|node| node.position() == number && node.is_element())
}

/// The innermost element that has the whole text of an element. For example, a click on a heading may mean a link in
/// it.
pub(super) fn innermost_element(mut node: NodeRef<'_>) -> NodeRef<'_> {
    loop {
        let is_blank = |child: &NodeRef<'_>| !child.is_element() && child.text().trim().is_empty();
        let mut children = node
            .children()
            .filter(|child| !child.is_comment() && !is_blank(child));
        match (children.next(), children.next()) {
            (Some(only), None) if only.is_element() => node = only,
            _ => return node,
        }
    }
}

/// An absolute XPath to an element. Elements are counted instead of named, so the path works whatever their names.
pub(super) fn xpath_to(node: NodeRef<'_>) -> String {
    let mut numbers = Vec::new();
    let mut next = Some(node);
    while let Some(node) = next.filter(|node| node.is_element()) {
        next = node.parent();
        let before = |sibling: &NodeRef<'_>| sibling.position() < node.position();
        let siblings = next.into_iter().flat_map(NodeRef::children);
        let elements = siblings.take_while(before).filter(|one| one.is_element());
        numbers.push(elements.count() + 1);
    }
    let steps = numbers.iter().rev().map(|number| format!("/*[{number}]"));
    steps.collect()
}

/// The number of the element that an XPath finds. If it finds a text or an attribute, the element that contains it
/// counts.
pub(super) fn element_number_at(document: &Document, path: &str) -> Option<usize> {
    let found = document.evaluate(&XPath::compile(path).ok()?).ok()?;
    let node = match found.first()? {
        XValue::Node(node) => *node,
        XValue::Attribute(attribute) => attribute.owner(),
        _ => return None,
    };
    let element = match node.is_element() {
        true => node,
        false => node.parent()?,
    };
    Some(element.position())
}

#[cfg(test)]
mod tests {
    use webfill_document::Limits;

    use super::*;

    #[test]
    fn a_path_leads_back_to_its_element() {
        let page = "<p>a<p>b<ul><li>1<li><b>2</b> 3</ul><svg><path/></svg>";
        let document = Document::parse_html(page, &Limits::default());
        for node in document
            .root()
            .descendants()
            .filter(|node| node.is_element())
        {
            let path = xpath_to(node);
            assert_eq!(
                element_number_at(&document, &path),
                Some(node.position()),
                "{path}"
            );
            assert_eq!(element_by_number(&document, node.position()), Some(node));
        }
        assert_eq!(element_by_number(&document, 1_000), None);
    }

    #[test]
    fn the_innermost_element_with_all_of_the_text_is_meant() {
        let page = "<h1> <span><!-- x --><b>Ada</b></span> </h1><h2>Ada <b>L</b></h2>";
        let document = Document::parse_html(page, &Limits::default());
        let of = |tag: &str| innermost_element(document.elements_by_tag(tag).next().unwrap()).tag();
        assert_eq!(of("h1"), Some("b"));
        assert_eq!(of("h2"), Some("h2"));
    }
}
