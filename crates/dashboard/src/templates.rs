//! The templates, compiled in. They escape all values, except markup that a filter has made.

mod filters;
mod foreign;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{Environment, UndefinedBehavior};
use serde_json::Value as Json;

pub(crate) use self::filters::percent_encode;
use crate::assets::Assets;

macro_rules! template {
    ($name:literal) => {
        ($name, include_str!(concat!("../templates/", $name)))
    };
}

/// All templates: name and text.
const TEMPLATES: &[(&str, &str)] = &[
    template!("layout.html"),
    template!("login.html"),
    template!("problem.html"),
    template!("overview.html"),
    template!("parts.html"),
    template!("body.html"),
    template!("cell.html"),
    template!("changes.html"),
    template!("crawl.html"),
    template!("datasets.html"),
    template!("run.html"),
    template!("dead.html"),
    template!("doubts.html"),
    template!("find.html"),
    template!("grid.html"),
    template!("mapping.html"),
    template!("mappings.html"),
    template!("page.html"),
    template!("pages.html"),
    template!("record.html"),
    template!("review.html"),
    template!("table.html"),
    template!("tables.html"),
    template!("site.html"),
    template!("sites.html"),
    template!("watch.html"),
    template!("watches.html"),
    template!("snapshot.html"),
    template!("crawls.html"),
    template!("machines.html"),
    template!("audit.html"),
    template!("editor.html"),
    template!("editor_start.html"),
];

/// The templates, with the filters and functions that they use.
pub(crate) fn environment(assets: &Assets) -> Environment<'static> {
    let mut environment = Environment::new();
    // A value that is missing from the data is shown as an empty text instead of causing an error.
    environment.set_undefined_behavior(UndefinedBehavior::Chainable);
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build();
    environment.set_syntax(syntax.expect("its delimiters are the usual ones"));
    // Without this filter, no template can show a text as unescaped markup.
    environment.remove_filter("safe");
    for (name, text) in TEMPLATES {
        let added = environment.add_template(name, text);
        added.expect("a test renders every template");
    }
    filters::add_to(&mut environment);
    foreign::add_to(&mut environment);
    let hash = assets.hash().to_owned();
    environment.add_function("asset", move |name: &str| Assets::path(&hash, name));
    environment
}

/// Fills a template with content. An error is a fault of this program; it is logged and shown on the page.
pub(crate) fn render(environment: &Environment<'_>, name: &str, content: Json) -> String {
    let content = Value::from(Serde(content));
    let rendered = environment
        .get_template(name)
        .and_then(|template| template.render(content));
    rendered.unwrap_or_else(|error| {
        tracing::error!(event = "template_failed", template = name, %error, "a page of the dashboard cannot be shown");
        format!("<!doctype html><title>webfill</title><p>Cannot show this page. See the dispatcher's log ({name}).")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_template_is_in_order_and_has_markup_escaped() {
        let environment = environment(&Assets::new());
        for (name, _) in TEMPLATES {
            let template = environment.get_template(name).unwrap();
            template.render(Value::from(Serde(json!({})))).unwrap();
        }
        let shown = render(&environment, "problem.html", json!({"text": "<b>'\"&"}));
        assert!(!shown.contains("<b>"), "{shown}");
        assert!(shown.contains("&lt;b&gt;&#x27;&quot;&amp;"), "{shown}");
    }
}
