//! Routes to a place on a page: they lead from a stable anchor to the place, in as few steps as possible.

mod in_data;

use serde_json::{Value, json};
use webfill_document::NodeRef;

use self::in_data::{
    json_routes, names_known_value, route_into_first_object, route_into_parsed_json, script_route,
};
use crate::anchors::{
    is_short_class, is_valid_step_name, own_anchors, text_condition, xpath_literal,
};
use crate::labels::{Labels, Leaks};
use crate::places::{PlaceKind, Places, Root, ScriptNotation};
use crate::steps::{absolute_paths, relative_paths};
use crate::survival::Anchor;

/// A way to find a place on a page, beginning at an anchor.
pub(crate) struct Route {
    pub(crate) anchor: Anchor,
    pub(crate) select: Value,
    pub(crate) then: Vec<Value>,
    /// Whether the route yields plain text of the page, where white space has no meaning.
    pub(crate) is_text: bool,
    pub(crate) burden: f64,
}

/// How many levels of the tree above a place are searched for anchors.
const LEVELS: usize = 8;

/// The type of linked-data objects that consist of a name and a value.
const NAMED_OBJECT: &str = "PropertyValue";

/// All routes to a place.
pub(crate) fn routes(
    page: &Places<'_>,
    index: usize,
    labels: &Labels,
    leaks: &Leaks,
) -> Vec<Route> {
    if page.roots.is_empty() {
        return routes_from(page, None, index, labels, leaks);
    }
    let Some(element) = page.element_of(index) else {
        return Vec::new();
    };
    let roots = page.roots.iter().filter(|root| root.node.contains(element));
    let routes = roots.map(|root| {
        let routes = routes_from(page, Some(root), index, labels, leaks);
        routes
            .into_iter()
            .map(|route| route_within_row(route, root))
    });
    routes.flatten().collect()
}

/// Continues a route to a place in a row, or in a part of the row such as a cell.
fn route_within_row(mut route: Route, root: &Root<'_>) -> Route {
    route.burden += root.burden;
    let Some(lead) = &root.lead else {
        return route;
    };
    let next = std::mem::replace(&mut route.select, lead.clone());
    if next["parameters"]["expression"] != "." {
        route.then.insert(0, next);
    }
    // If the route is only a path, its anchor is that of the part of the row, such as the header of a cell. A route
    // with an anchor of its own, such as a class, keeps it.
    if route.anchor == Anchor::Path {
        route.anchor = root.anchor;
    }
    route
}

/// Makes an XPath relative to a row instead of the page.
fn rebase_xpath(expression: &str, root: Option<&Root<'_>>) -> String {
    let Some(root) = root else {
        return expression.to_owned();
    };
    match expression.strip_prefix('(') {
        Some(rest) => format!("({}{rest}", root.path),
        None => format!("{}{expression}", root.path),
    }
}

fn routes_from(
    page: &Places<'_>,
    root: Option<&Root<'_>>,
    index: usize,
    labels: &Labels,
    leaks: &Leaks,
) -> Vec<Route> {
    match &page.all[index].at {
        PlaceKind::JsonLd(_, path) | PlaceKind::Json(path) | PlaceKind::ParsedJson(path, _)
            if names_known_value(path, leaks) =>
        {
            Vec::new()
        }
        // If there are several objects with a name and a value, they are distinguished by their names, not by their
        // order.
        PlaceKind::JsonLd(kind, _)
            if kind == NAMED_OBJECT && page.has_several_linked_objects(kind) =>
        {
            Vec::new()
        }
        PlaceKind::JsonLd(kind, path) => {
            let mut routes = json_routes(
                Anchor::JsonLd,
                path,
                |path| json!({"type": "json_ld", "parameters": {"type": kind, "expression": path}}),
            );
            if page.has_several_linked_objects(kind) {
                let of_first: Vec<Route> = routes
                    .iter()
                    .map(|route| route_into_first_object(route, kind))
                    .collect();
                routes.extend(of_first);
            }
            routes
        }
        PlaceKind::Json(path) => json_routes(
            Anchor::Json,
            path,
            |path| json!({"type": "jsonpath", "parameters": {"expression": path}}),
        ),
        PlaceKind::ParsedJson(path, quote) => {
            let routes = json_routes(
                Anchor::Json,
                path,
                |path| json!({"type": "jsonpath", "parameters": {"expression": path}}),
            );
            let routes = routes.into_iter();
            routes
                .map(|route| route_into_parsed_json(route, *quote))
                .collect()
        }
        PlaceKind::ScriptKey(key, written, owner) => {
            let mut notations = vec![*written];
            if *written == ScriptNotation::InDoubleQuotes {
                // On other pages, the value may contain escapes, so a pattern with escapes is tried too.
                notations.push(ScriptNotation::WithEscapes);
            }
            let owner = owner.as_deref().filter(|owner| !leaks.occur_in(owner));
            let owners = [None].into_iter().chain(owner.map(Some));
            let route = |owner| {
                let routes = notations.iter();
                routes.map(move |written| script_route(owner, key, *written))
            };
            owners.flat_map(route).collect()
        }
        PlaceKind::Attribute(owner, name) => {
            let mut routes = match root {
                None => meta_routes(*owner, name),
                Some(_) => Vec::new(),
            };
            routes.extend(named_link_route(*owner, name, labels, root));
            let end = Ending {
                node: *owner,
                forms: vec![(format!("/@{name}"), 0.2)],
            };
            tree_routes(page, root, index, &end, labels, leaks, &mut routes);
            routes
        }
        PlaceKind::Text(text) => {
            let Some(parent) = text.parent().filter(|node| node.is_element()) else {
                return Vec::new();
            };
            let end = Ending {
                node: parent,
                forms: text_steps(*text, parent),
            };
            let mut routes = routes_after_icon(*text, parent, leaks, root);
            tree_routes(page, root, index, &end, labels, leaks, &mut routes);
            routes
        }
        PlaceKind::Element(element) => {
            let end = Ending {
                node: *element,
                forms: vec![(String::new(), 0.0)],
            };
            let mut routes = Vec::new();
            tree_routes(page, root, index, &end, labels, leaks, &mut routes);
            routes
        }
    }
}

/// The element where routes end, and the steps from there to the value, each with its burden.
struct Ending<'d> {
    node: NodeRef<'d>,
    forms: Vec<(String, f64)>,
}

fn meta_routes(owner: NodeRef<'_>, attribute: &str) -> Vec<Route> {
    if owner.tag() != Some("meta") || attribute != "content" {
        return Vec::new();
    }
    let names = ["property", "name", "itemprop"];
    let named = names.iter().filter_map(|name| owner.attribute(name));
    let route = |name: &str| Route {
        anchor: Anchor::Meta,
        select: json!({"type": "meta", "parameters": {"name": name.trim()}}),
        then: Vec::new(),
        is_text: true,
        burden: 0.0,
    };
    named
        .filter(|name| !name.trim().is_empty())
        .map(route)
        .collect()
}

/// A route to the target of a link, found by the link's text. The text must be a label that many of the pages have.
fn named_link_route(
    owner: NodeRef<'_>,
    attribute: &str,
    labels: &Labels,
    root: Option<&Root<'_>>,
) -> Option<Route> {
    let text = crate::fold::collapse_white_space(owner.text());
    if (owner.tag(), attribute) != (Some("a"), "href") || !labels.has(&text) {
        return None;
    }
    let is_text = text_condition(owner.text(), &text, labels)?;
    let expression = rebase_xpath(&format!("//a[{is_text}]/@href"), root);
    Some(xpath_route(Anchor::Label, expression, 0.05))
}

/// The ways to write the last steps of a route from an element to one of its texts, each with its burden.
fn text_steps(text: NodeRef<'_>, parent: NodeRef<'_>) -> Vec<(String, f64)> {
    let texts: Vec<NodeRef<'_>> = parent
        .children()
        .filter(|child| child.is_text() && !is_blank(child.text()))
        .take(200)
        .collect();
    let number = texts.iter().position(|one| *one == text).unwrap_or(0) + 1;
    let is_whole = parent.text().trim() == text.text().trim();
    let mut forms = Vec::new();
    if is_whole {
        forms.push((String::new(), 0.0));
    }
    forms.push(("/text()".to_owned(), 0.1));
    if texts.len() > 1 {
        forms.push((format!("/text()[normalize-space(.)][{number}]"), 0.3));
        if number == texts.len() {
            forms.push(("/text()[normalize-space(.)][last()]".to_owned(), 0.35));
        }
    }
    forms
}

fn tree_routes(
    page: &Places<'_>,
    root: Option<&Root<'_>>,
    index: usize,
    end: &Ending<'_>,
    labels: &Labels,
    leaks: &Leaks,
    routes: &mut Vec<Route>,
) {
    let mut starts: Vec<(Anchor, String, NodeRef<'_>, f64)> = Vec::new();
    let mut node = end.node;
    for level in 0..LEVELS {
        // The search for anchors ends at the row, because a row cannot be found from inside itself.
        if root.is_some_and(|root| root.node == node) {
            break;
        }
        for (anchor, xpath, burden) in own_anchors(page, node, leaks) {
            let xpath = rebase_xpath(&xpath, root);
            starts.push((anchor, xpath, node, burden + 0.05 * level as f64));
        }
        match node.parent().filter(|parent| parent.is_element()) {
            Some(parent) => node = parent,
            None => break,
        }
    }
    starts.extend(icon_route_starts(page, index, end, leaks, root));
    // The row itself is also a start: it is already found, and plain steps lead from there to the value.
    starts.extend(root.map(|root| (root.anchor, root.path.clone(), root.node, 0.0)));
    for (anchor, xpath, from, burden) in starts {
        for (steps, more) in relative_paths(from, end.node) {
            if !compares_known_value(&steps, leaks) {
                let xpath = format!("{xpath}{steps}");
                push_routes(routes, anchor, &xpath, burden + more, end);
            }
        }
    }
    if root.is_none()
        && let Some(paths) = absolute_paths(end.node)
    {
        for (path, burden) in paths {
            push_routes(routes, Anchor::Path, &path, burden, end);
        }
    }
    crate::beside::add_label_routes(
        page,
        root.map(|root| root.node),
        index,
        end.node,
        labels,
        &mut |xpath, burden, is_text| {
            if compares_known_value(xpath, leaks) {
                return;
            }
            let xpath = rebase_xpath(xpath, root);
            if is_text {
                routes.push(xpath_route(Anchor::Label, xpath, burden));
            } else {
                push_routes(routes, Anchor::Label, &xpath, burden, end);
            }
        },
    );
}

/// Routes that begin at an icon right before the value: an element without text, recognised by its name. Other values
/// have other icons.
fn icon_route_starts<'d>(
    page: &Places<'d>,
    index: usize,
    end: &Ending<'d>,
    leaks: &Leaks,
    root: Option<&Root<'_>>,
) -> Vec<(Anchor, String, NodeRef<'d>, f64)> {
    let is_text = matches!(page.all[index].at, PlaceKind::Text(_));
    let node = end.node;
    let Some(icon) = element_before(node).filter(|icon| is_text && icon.text().trim().is_empty())
    else {
        return Vec::new();
    };
    let Some(tag) = node.tag().filter(|tag| is_valid_step_name(tag)) else {
        return Vec::new();
    };
    let anchors = own_anchors(page, icon, leaks).into_iter();
    let anchors = anchors.filter(|(_, xpath, _)| !xpath.starts_with('('));
    let starts = anchors.map(|(anchor, xpath, burden)| {
        let beside = format!("{xpath}/following-sibling::*[1][self::{tag}]");
        (anchor, rebase_xpath(&beside, root), node, burden + 0.1)
    });
    starts.collect()
}

/// Routes from an icon to the text right after it, in the same element.
fn routes_after_icon(
    text: NodeRef<'_>,
    parent: NodeRef<'_>,
    leaks: &Leaks,
    root: Option<&Root<'_>>,
) -> Vec<Route> {
    let before = parent.children().take_while(|child| *child != text);
    let Some(icon) = before
        .last()
        .filter(|icon| icon.is_element() && icon.text().trim().is_empty())
    else {
        return Vec::new();
    };
    let class = icon
        .attribute("class")
        .filter(|class| is_short_class(class) && !leaks.occur_in(class));
    let (Some(tag), Some(class)) = (icon.tag(), class.and_then(xpath_literal)) else {
        return Vec::new();
    };
    if !is_valid_step_name(tag) {
        return Vec::new();
    }
    let icon = format!("{tag}[@class={class}]");
    // A text right after another icon belongs to that icon, so it is excluded.
    let own = format!("[preceding-sibling::*[1][self::{icon}]]");
    let after = format!("//{icon}/following-sibling::text()[normalize-space(.)]{own}");
    vec![xpath_route(
        Anchor::WholeClass,
        rebase_xpath(&after, root),
        0.1,
    )]
}

/// The element right before another one.
fn element_before(node: NodeRef<'_>) -> Option<NodeRef<'_>> {
    let siblings = node.parent()?.children().filter(|child| child.is_element());
    siblings.take_while(|sibling| *sibling != node).last()
}

fn push_routes(
    routes: &mut Vec<Route>,
    anchor: Anchor,
    xpath: &str,
    burden: f64,
    end: &Ending<'_>,
) {
    for (form, more) in &end.forms {
        let route = xpath_route(anchor, format!("{xpath}{form}"), burden + more);
        routes.push(route);
    }
}

fn xpath_route(anchor: Anchor, expression: String, burden: f64) -> Route {
    Route {
        anchor,
        select: json!({"type": "xpath", "parameters": {"expression": expression}}),
        then: Vec::new(),
        is_text: true,
        burden,
    }
}

/// Whether the XPath function `normalize-space` leaves nothing of the text. It does not treat no-break spaces as white
/// space.
fn is_blank(text: &str) -> bool {
    text.chars().all(|c| matches!(c, ' ' | '\t' | '\n' | '\r'))
}

/// Whether an expression compares a whole `class` attribute with a text that contains a known value.
fn compares_known_value(expression: &str, leaks: &Leaks) -> bool {
    expression.split("[@class=").skip(1).any(|rest| {
        let quote = rest.chars().next().unwrap_or_default();
        let named = rest.split(quote).nth(1).unwrap_or_default();
        leaks.occur_in(named)
    })
}
