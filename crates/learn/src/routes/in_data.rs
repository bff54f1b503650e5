//! Routes to values in JSON, linked data and scripts.

use serde_json::{Value, json};

use super::Route;
use crate::labels::Leaks;
use crate::places::{ParsedQuote, ScriptNotation};
use crate::survival::Anchor;

pub(super) fn json_routes(
    anchor: Anchor,
    path: &str,
    select: impl Fn(&str) -> Value,
) -> Vec<Route> {
    let filters = path.matches("[?").count();
    let indexes = path.matches('[').count() - filters;
    let mut paths = vec![(
        path.to_owned(),
        0.2 * indexes as f64 + 0.05 * filters as f64,
    )];
    if indexes > 0 {
        paths.push((with_any_index(path), 0.1));
    }
    let route = |(path, burden): (String, f64)| Route {
        anchor,
        select: select(&path),
        then: Vec::new(),
        is_text: true,
        burden: burden + 0.05 * path.matches('.').count() as f64,
    };
    paths.into_iter().map(route).collect()
}

/// Whether a filter in a JSONPath compares something with a known value.
pub(super) fn names_known_value(path: &str, leaks: &Leaks) -> bool {
    let filters = path.split("=='").skip(1);
    let mut names = filters.filter_map(|rest| rest.split('\'').next());
    names.any(|name| leaks.occur_in(name))
}

/// The same route, but only into the first object of this type. Later objects describe related things. If the page's
/// own object lacked the value, theirs would be read.
pub(super) fn route_into_first_object(route: &Route, kind: &str) -> Route {
    let path = &route.select["parameters"]["expression"];
    Route {
        anchor: route.anchor,
        select: json!({"type": "json_ld", "parameters": {"type": kind}}),
        then: vec![
            json!({"type": "first"}),
            json!({"type": "jsonpath", "parameters": {"expression": path}}),
        ],
        is_text: true,
        burden: route.burden + 0.03,
    }
}

/// The same route, but into the JSON that a script parses.
pub(super) fn route_into_parsed_json(mut route: Route, quote: ParsedQuote) -> Route {
    let pattern = json!({"type": "regex", "parameters": {"pattern": quote.pattern()}});
    let path = std::mem::replace(&mut route.select, pattern);
    if quote == ParsedQuote::Double {
        // JSON in double quotes is itself a JSON string with escapes, so it is decoded first.
        route
            .then
            .push(json!({"type": "jsonpath", "parameters": {"expression": "$"}}));
    }
    route.then.push(path);
    route.burden += 0.1;
    route
}

/// Replaces each index in a JSONPath with `[*]`.
fn with_any_index(path: &str) -> String {
    let mut every = String::new();
    let mut rest = path;
    while let Some(open) = rest.find('[') {
        let (before, from) = rest.split_at(open);
        every.push_str(before);
        let end = from.find(']').map_or(from.len(), |end| end + 1);
        let is_index = from[1..end]
            .bytes()
            .all(|b| b.is_ascii_digit() || b == b']');
        every.push_str(if is_index { "[*]" } else { &from[..end] });
        rest = &from[end..];
    }
    every + rest
}

/// A route to the value after a key in a script. `owner` is the name of the object that has the key, because other
/// objects may have the same key.
pub(super) fn script_route(owner: Option<&str>, key: &str, written: ScriptNotation) -> Route {
    let value = written.pattern();
    let object = owner.map(|owner| format!(r#"\b{owner}["']?\s*[:=]\s*\{{[^{{}}]*?"#));
    let object = object.unwrap_or_default();
    let pattern = format!(r#"{object}["']?\b{key}["']?\s*[:=]\s*{value}"#);
    // The pattern with escapes also matches everything that the pattern without escapes matches, so its burden is
    // lower.
    let (then, burden) = match written {
        ScriptNotation::WithEscapes => {
            let decode = json!({"type": "jsonpath", "parameters": {"expression": "$"}});
            (vec![decode], 0.29)
        }
        _ => (Vec::new(), 0.3),
    };
    let burden = burden + if owner.is_some() { 0.03 } else { 0.0 };
    Route {
        anchor: Anchor::ScriptKey,
        select: json!({"type": "regex", "parameters": {"pattern": pattern}}),
        then,
        is_text: true,
        burden,
    }
}
