//! Parses JSON from pages, and evaluates JSONPath (RFC 9535) on it. Both are bounded: the number of
//! values in a text is estimated before it is parsed, and the cost of an expression before it runs.

use serde_json::Value;
use serde_json_path::JsonPath;

use crate::fault::quote;
use crate::json_text::{self, JsonText};
use crate::limits::Limits;
use crate::pattern::MAX_EXPRESSION_BYTES;

/// The greatest nesting of brackets in an expression.
const MAX_NESTING: usize = 64;

/// The cost of a call of `match` or `search`, in visited values. It is high because each call compiles its expression.
const REGEX_CALL_VISITS: usize = 256;

/// The greatest memory that one value takes, in bytes.
const VALUE_BYTES: usize = 300;

/// Parses the JSON in `text` if it needs at most `memory_bytes`. Skips text that pages put around JSON, such as
/// comments.
///
/// # Errors
///
/// The reason why the text is not parsed.
pub(crate) fn parse(text: &str, limits: &Limits, memory_bytes: usize) -> Result<JsonText, String> {
    let values = count_values(text);
    if values > limits.json_values {
        return Err(format!(
            "about {values} JSON values; the limit is {}",
            limits.json_values
        ));
    }
    let needed = estimate_memory(text);
    if needed > memory_bytes {
        return Err(format!(
            "about {} MiB of memory, {} are left",
            needed >> 20,
            memory_bytes >> 20
        ));
    }
    let most = limits.json_values.min(memory_bytes / VALUE_BYTES);
    let read = json_text::read(text, most);
    match read.values.is_empty() {
        true => Err(format!("not JSON: {}", read.oddity.unwrap_or_default())),
        false => Ok(read),
    }
}

/// An upper bound of the memory for the JSON in a text, in bytes. Values in lists and in small objects cost most: 290
/// bytes each, as measured while lists grow.
pub(crate) fn estimate_memory(text: &str) -> usize {
    count_values(text) * VALUE_BYTES + text.len()
}

/// An upper bound of the number of values in a JSON text: each value except the first follows a comma or an opening
/// bracket.
fn count_values(text: &str) -> usize {
    let mut in_string = false;
    let mut escaped = false;
    let mut count = 1;
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b',' | b'[' | b'{' if !in_string => count += 1,
            _ => {}
        }
    }
    count
}

/// A compiled JSONPath expression.
#[derive(Debug)]
pub(crate) struct JsonQuery {
    path: JsonPath,
    cost: Cost,
}

impl JsonQuery {
    /// Compiles an expression.
    ///
    /// # Errors
    ///
    /// One line that repeats the expression and says what is wrong with it.
    pub(crate) fn compile(expression: &str) -> Result<JsonQuery, String> {
        let refuse = |reason: String| format!("invalid JSONPath {}: {reason}", quote(expression));
        if expression.len() > MAX_EXPRESSION_BYTES {
            return Err(refuse(format!("over {MAX_EXPRESSION_BYTES} bytes long")));
        }
        let cost = Cost::from_expression(expression);
        if cost.nesting > MAX_NESTING {
            return Err(refuse(format!("over {MAX_NESTING} brackets deep")));
        }
        let path = JsonPath::parse(expression).map_err(|error| {
            let reason = format!("{} at character {}", error.message(), error.position());
            refuse(match expression.starts_with('$') {
                true => reason,
                false => format!("{reason}; an expression begins with $"),
            })
        })?;
        Ok(JsonQuery { path, cost })
    }

    /// The values that the expression finds, in order.
    ///
    /// # Errors
    ///
    /// The expression might take too long on this value, so it was not evaluated.
    pub(crate) fn find<'v>(
        &self,
        value: &'v Value,
        limits: &Limits,
    ) -> Result<Vec<&'v Value>, String> {
        if self.cost.can_explode() {
            let visits = self.cost.estimate_visits(value);
            if visits > limits.json_visits {
                return Err(
                    "the JSONPath could take too long on this page: make it more direct".to_owned(),
                );
            }
        }
        Ok(self.path.query(value).all())
    }
}

/// The parts of a JSONPath expression that multiply its cost.
#[derive(Debug, Default, PartialEq, Eq)]
struct Cost {
    /// The number of `..`. Each `..` after the first visits every value once for each level above it.
    descendants: u32,
    /// The number of `$` within filters. For each tested value, such a `$` starts again from the root.
    restarts: u32,
    /// How many selectors the brackets have, multiplied over all brackets. For example, `[*,*]` doubles the cost of
    /// everything after it.
    selectors: usize,
    regex_calls: bool,
    nesting: usize,
}

impl Cost {
    fn from_expression(expression: &str) -> Cost {
        let mut cost = Cost {
            selectors: 1,
            regex_calls: expression.contains("match") || expression.contains("search"),
            ..Cost::default()
        };
        let mut open: Vec<(char, usize)> = Vec::new();
        let mut quote = None;
        let mut before = ' ';
        let mut characters = expression.char_indices();
        while let Some((at, character)) = characters.next() {
            match (quote, character) {
                (Some(_), '\\') => {
                    characters.next();
                }
                (Some(opened), closing) if opened == closing => quote = None,
                (Some(_), _) => {}
                (None, '\'' | '"') => quote = Some(character),
                (None, '[' | '(') => open.push((character, 1)),
                (None, ']' | ')') => {
                    let (_, selectors) = open.pop().unwrap_or((' ', 1));
                    cost.selectors = cost.selectors.saturating_mul(selectors);
                }
                (None, ',') => {
                    if let Some((_, selectors)) = open.last_mut().filter(|(c, _)| *c == '[') {
                        *selectors += 1;
                    }
                }
                (None, '.') if before == '.' => cost.descendants += 1,
                (None, '$') if at > 0 => cost.restarts += 1,
                _ => {}
            }
            cost.nesting = cost.nesting.max(open.len());
            before = if quote.is_none() { character } else { ' ' };
        }
        cost
    }

    fn can_explode(&self) -> bool {
        self.descendants > 1 || self.restarts > 0 || self.selectors > 1 || self.regex_calls
    }

    /// A rough upper bound of the number of values that the expression visits within `value`.
    fn estimate_visits(&self, value: &Value) -> usize {
        let (values, depth) = count_and_depth(value);
        let levels = depth.saturating_pow(self.descendants.saturating_sub(1));
        values
            .saturating_mul(levels)
            .saturating_mul(values.saturating_pow(self.restarts))
            .saturating_mul(self.selectors)
            .saturating_mul(if self.regex_calls {
                REGEX_CALL_VISITS
            } else {
                1
            })
    }
}

/// The number of values within a value, and their greatest depth. Recursive, because the parser limits the depth.
fn count_and_depth(value: &Value) -> (usize, usize) {
    let add = |(values, depth): (usize, usize), child: &Value| {
        let (more, deeper) = count_and_depth(child);
        (values + more, depth.max(deeper + 1))
    };
    match value {
        Value::Array(entries) => entries.iter().fold((1, 1), add),
        Value::Object(members) => members.values().fold((1, 1), add),
        _ => (1, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::time::{Duration, Instant};

    #[test]
    fn cost_multipliers_within_texts_are_ignored() {
        let cost = Cost::from_expression("$..a[?@.b == $.c && match(@.d, '..,[$')][*,*]");
        assert_eq!((cost.descendants, cost.restarts, cost.selectors), (1, 1, 2));
        assert!(cost.regex_calls);
        assert!(!Cost::from_expression("$.store.book[*]['a..$']").can_explode());
    }

    #[test]
    fn expressions_that_explode_are_refused_within_milliseconds() {
        let mut deep = json!([1, 2]);
        for _ in 0..100 {
            deep = json!([deep, 1]);
        }
        let wide = json!(vec![json!({"a": "b"}); 50_000]);
        let limits = Limits::default();
        let doubling = format!("${}", "[*,*]".repeat(60));
        let cases = [
            ("$..*..*..*..*", &deep),
            (doubling.as_str(), &deep),
            ("$..[?count($..*) > 3]", &wide),
            ("$[?match(@.a, '(a|b)*')]", &wide),
        ];
        for (expression, value) in cases {
            let query = JsonQuery::compile(expression).unwrap();
            let start = Instant::now();
            assert!(query.find(value, &limits).is_err(), "{expression}");
            assert!(start.elapsed() < Duration::from_secs(20), "{expression}");
        }
        let plain = JsonQuery::compile("$..a").unwrap();
        assert_eq!(plain.find(&wide, &limits).unwrap().len(), 50_000);
    }

    #[test]
    fn bad_expressions_are_refused_with_the_place() {
        for (expression, part) in [
            ("store.book", "begins with $"),
            ("$[", "at character"),
            ("$[?@.a ==]", "at character"),
            (&format!("$[?{}", "(".repeat(3000)), "brackets deep"),
            (&format!("${}", ".a".repeat(3000)), "bytes long"),
        ] {
            let error = JsonQuery::compile(expression).unwrap_err();
            assert!(error.contains(part), "{expression}: {error}");
        }
    }

    #[test]
    fn json_with_raw_line_breaks_in_texts_is_read_and_huge_json_is_not() {
        let limits = Limits::default();
        assert_eq!(
            parse("{\"a\": \"b\nc\"}", &limits, usize::MAX).map(|read| read.values),
            Ok(vec![json!({"a": "b c"})])
        );
        let huge = format!("[{}1]", "1,".repeat(600_000));
        assert!(
            parse(&huge, &limits, usize::MAX)
                .unwrap_err()
                .contains("600002")
        );
        assert!(
            parse("{", &limits, usize::MAX)
                .unwrap_err()
                .starts_with("not JSON")
        );
        assert!(parse(&"[".repeat(100_000), &limits, usize::MAX).is_err());
        let large = format!("[{}1]", "1,".repeat(10_000));
        assert!(parse(&large, &limits, 4 << 20).is_ok());
        let refusal = parse(&large, &limits, 1 << 20).unwrap_err();
        assert!(refusal.contains("2 MiB of memory, 1 are left"), "{refusal}");
    }
}
