//! Changes the data that a page has for programs: microdata, JSON-LD, `meta` elements and the title.

use serde_json::{Value, json};

use super::choices::Choices;
use super::tree::{NodeId, Tree};

/// Properties of schema.org that are often used as class names, too.
const PROPERTIES: [&str; 10] = [
    "name",
    "price",
    "author",
    "description",
    "brand",
    "telephone",
    "address",
    "model",
    "genre",
    "director",
];

/// Drops microdata, or adds it to elements whose class contains the name of a property.
pub(super) fn change_microdata(tree: &mut Tree, choices: &Choices) {
    let is_dropped = choices.decide("drop microdata", 0.6);
    for node in tree.elements() {
        let Some(element) = tree.element_mut(node) else {
            continue;
        };
        if is_dropped {
            for name in ["itemprop", "itemscope", "itemtype", "property", "typeof"] {
                // On a `meta` element, `property` is the name of the element and not microdata, so it stays.
                if element.tag != "meta" {
                    element.remove(name);
                }
            }
        } else if let Some(class) = element.get("class") {
            let class = class.to_lowercase();
            let named = PROPERTIES
                .iter()
                .find(|property| class.contains(**property));
            if let Some(property) = named {
                element.set("itemprop", (*property).to_owned());
            }
        }
    }
}

fn is_json_ld(tree: &Tree, node: NodeId) -> bool {
    let kind = tree.element(node).and_then(|element| element.get("type"));
    kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/ld+json"))
}

/// Drops JSON-LD, converts it into a graph, or adds JSON-LD with the name of the page's subject.
pub(super) fn change_json_ld(tree: &mut Tree, choices: &Choices) {
    let mut scripts = tree.elements_of("script");
    scripts.retain(|script| is_json_ld(tree, *script));
    if scripts.is_empty() {
        return add_json_ld(tree);
    }
    let is_dropped = choices.decide("drop JSON-LD", 0.5);
    for script in scripts {
        if is_dropped {
            tree.remove(script);
            continue;
        }
        let [text] = *tree.children(script) else {
            continue;
        };
        let data = tree
            .text(text)
            .and_then(|text| serde_json::from_str(text).ok());
        if let Some(data) = data {
            let graph: Value = match data {
                Value::Array(all) => json!({"@context": "https://schema.org", "@graph": all}),
                one => json!({"@context": "https://schema.org", "@graph": [one]}),
            };
            tree.set_text(text, graph.to_string().replace("</", "<\\/"));
        }
    }
}

fn add_json_ld(tree: &mut Tree) {
    let heading = tree
        .elements_of("h1")
        .first()
        .map(|node| tree.text_within(*node));
    let head = tree.elements_of("head").first().copied();
    let (Some(name), Some(head)) = (heading.filter(|name| !name.is_empty()), head) else {
        return;
    };
    let data = json!({"@context": "https://schema.org", "@type": "Thing", "name": name});
    let text = data.to_string().replace("</", "<\\/");
    let script = tree.create_text_element("script", &[("type", "application/ld+json")], &text);
    tree.append(head, script);
}

/// Adds the site's name to the title, and drops or adds `meta` elements.
pub(super) fn change_head(tree: &mut Tree, choices: &Choices) {
    let title = tree.elements_of("title").first().copied();
    let text = title.and_then(|title| tree.children(title).first().copied());
    let old = text.and_then(|text| tree.text(text)).map(str::to_owned);
    if let (Some(node), Some(old)) = (text, &old) {
        let new = match choices.number("title") % 4 {
            0 => format!("{} | The Site", old.trim()),
            1 => format!("The Site - {}", old.trim()),
            _ => old.clone(),
        };
        tree.set_text(node, new);
    }
    for node in tree.elements_of("meta") {
        let Some(element) = tree.element(node) else {
            continue;
        };
        let name = element.get("property").or(element.get("name"));
        let Some(name) = name.map(str::to_owned) else {
            continue;
        };
        let what = format!("meta {}", name.split(':').next().unwrap_or_default());
        if choices.decide(&what, 0.3) {
            tree.remove(node);
        }
    }
    let head = tree.elements_of("head").first().copied();
    if let (Some(head), Some(old)) = (head, old)
        && choices.decide("og:title", 0.4)
    {
        let attributes = [("property", "og:title"), ("content", old.trim())];
        let meta = tree.create_element("meta", &attributes);
        tree.append(head, meta);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_ld_is_added_with_the_name_of_the_heading() {
        let mut tree = Tree::parse("<html><head></head><body><h1>A &lt;/script&gt; B</h1>");
        change_json_ld(&mut tree, &Choices::new(1));
        let html = tree.to_html(false);
        let again = Tree::parse(&html);
        let script = again.elements_of("script")[0];
        let data: Value = serde_json::from_str(&again.text_within(script)).unwrap();
        assert_eq!(data["name"], "A </script> B");
    }
}
