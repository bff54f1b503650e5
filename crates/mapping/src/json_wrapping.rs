//! Recognises the scripts that servers wrap around JSON: a guard such as `)]}',`, a call such as `callback({..});`
//! (JSONP), or an assignment such as `var data = {..};`.

/// What servers put before their JSON so that scripts of other sites cannot use it.
const GUARDS: [&str; 11] = [
    ")]}',",
    ")]}'",
    ")]}",
    "while(1);",
    "while (1);",
    "for(;;);",
    "for (;;);",
    "{}&&",
    "{} &&",
    "throw 1;",
    "&&&START&&&",
];

/// The length of a guard at the beginning of `text`, or 0.
pub(crate) fn guard_length(text: &str) -> usize {
    let guard = GUARDS.iter().find(|guard| text.starts_with(**guard));
    guard.map_or(0, |guard| guard.len())
}

/// The length of a call or an assignment at the beginning of `text`, up to the JSON itself. `None` if neither is there.
pub(crate) fn wrapping_length(text: &str) -> Option<usize> {
    let inner = skip_condition(text);
    let opened = match strip_declaration(inner) {
        Some(declared) => strip_name(declared)?.strip_prefix('=')?,
        None => {
            let behind = strip_name(inner)?;
            behind.strip_prefix(['(', '='])?
        }
    };
    let json = opened.trim_start();
    json.starts_with(['{', '['])
        .then(|| text.len() - json.len())
}

/// Skips `typeof callback === 'function' &&`, which some servers put before the call.
fn skip_condition(text: &str) -> &str {
    let behind = text.strip_prefix("typeof ").and_then(|condition| {
        let (condition, behind) = condition.split_once("&&")?;
        (condition.len() < 200 && condition.contains("function")).then(|| behind.trim_start())
    });
    behind.unwrap_or(text)
}

fn strip_declaration(text: &str) -> Option<&str> {
    let keywords = ["var ", "let ", "const "];
    let behind = keywords
        .iter()
        .find_map(|keyword| text.strip_prefix(keyword));
    behind.map(str::trim_start)
}

/// The text behind a name such as `callback`, `app.data` or `window["data"]`.
fn strip_name(text: &str) -> Option<&str> {
    const MOST_BYTES: usize = 200;
    let is_part = |c: char| {
        c.is_alphanumeric() || matches!(c, '_' | '$' | '.' | '[' | ']' | '"' | '\'' | '-')
    };
    let end = text.find(|c| !is_part(c))?;
    let begins = text.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '$'));
    (begins && end <= MOST_BYTES).then(|| text[end..].trim_start())
}

/// Whether a text begins as a JSON object or list, perhaps with a guard or in a call. No page with elements begins so.
pub(crate) fn begins_as_json(text: &str) -> bool {
    let text = text.trim_start();
    let text = text[guard_length(text)..].trim_start();
    let text = match text
        .strip_prefix("/*")
        .and_then(|comment| comment.split_once("*/"))
    {
        Some((_, behind)) => behind.trim_start(),
        None => text,
    };
    let text = &text[wrapping_length(text).unwrap_or(0)..];
    let begins = |open: char, next: &[char]| {
        let inner = text.strip_prefix(open).map(str::trim_start);
        inner.is_some_and(|inner| inner.starts_with(next))
    };
    begins('{', &['"', '}']) || begins('[', &['{', '"'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_assignments_are_recognised() {
        for (script, json) in [
            (r#"cb({"a":1})"#, r#"{"a":1})"#),
            ("jQuery12_3.x ( [1] );", "[1] );"),
            (r#"window["cb"]({})"#, "{})"),
            ("typeof cb === 'function' && cb({});", "{});"),
            ("var data = {};", "{};"),
            ("window.__DATA__={}", "{}"),
        ] {
            assert_eq!(
                wrapping_length(script).map(|at| &script[at..]),
                Some(json),
                "{script}"
            );
        }
        for other in [
            "",
            "{}",
            "cb(",
            "cb(1)",
            "see [1]",
            "if (x) {}",
            "a == {}",
            "function f() {}",
            "1({})",
            "x => {}",
        ] {
            assert_eq!(wrapping_length(other), None, "{other}");
        }
    }
}
