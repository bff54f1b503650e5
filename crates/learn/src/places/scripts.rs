//! The values in the scripts of a page: after keys, and in JSON that a script parses.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;
use webfill_document::NodeRef;

use super::{MOST_BYTES, PlaceKind, Places};

/// How a script writes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScriptNotation {
    InDoubleQuotes,
    InSingleQuotes,
    AsNumber,
    /// A JSON string with escapes, such as `B\u00f6ll`.
    WithEscapes,
}

/// The kind of quotes around the JSON text that a script parses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParsedQuote {
    Double,
    Single,
}

impl ParsedQuote {
    const ALL: [ParsedQuote; 2] = [ParsedQuote::Double, ParsedQuote::Single];

    /// A regular expression whose only group is the JSON. If the JSON is in double quotes, the group includes the
    /// quotes, because the JSON then has escapes.
    pub(crate) fn pattern(self) -> &'static str {
        match self {
            ParsedQuote::Double => r#"JSON\.parse\(\s*("(?:[^"\\\n]|\\.)*")\s*\)"#,
            ParsedQuote::Single => r"JSON\.parse\(\s*'([^'\\\n]*)'\s*\)",
        }
    }

    fn parse_json(self, text: &str) -> Option<Value> {
        match self {
            ParsedQuote::Single => serde_json::from_str(text).ok(),
            ParsedQuote::Double => {
                let text: String = serde_json::from_str(text).ok()?;
                serde_json::from_str(&text).ok()
            }
        }
    }
}

impl ScriptNotation {
    const ALL: [ScriptNotation; 4] = [
        ScriptNotation::InDoubleQuotes,
        ScriptNotation::InSingleQuotes,
        ScriptNotation::AsNumber,
        ScriptNotation::WithEscapes,
    ];

    /// A regular expression whose only group is the value. For a value with escapes, the group includes the quotes.
    pub(crate) fn pattern(self) -> &'static str {
        match self {
            ScriptNotation::InDoubleQuotes => r#""([^"\\\n]{1,500})""#,
            ScriptNotation::InSingleQuotes => r"'([^'\\\n]{1,500})'",
            ScriptNotation::AsNumber => r"(-?[0-9]{1,15}(?:\.[0-9]{1,10})?)\s*[,;}\]\n]",
            ScriptNotation::WithEscapes => r#"("(?:[^"\\\n]|\\.){1,500}")"#,
        }
    }
}

impl<'d> Places<'d> {
    pub(super) fn read_script(&mut self, node: NodeRef<'d>) {
        let declared = node.attribute("type").unwrap_or("").to_ascii_lowercase();
        let text = node.text();
        if text.len() > MOST_BYTES {
            return;
        }
        if declared.starts_with("application/ld+json") {
            if let Ok(value) = serde_json::from_str::<Value>(text.trim()) {
                self.read_linked_data(&value, 0);
            }
        } else if declared.starts_with("application/json") {
            self.read_json(text);
        } else if !declared.contains("template") {
            self.read_parsed_json(text);
            self.read_script_keys(text);
        }
    }

    /// Reads the JSON that a script parses with `JSON.parse`.
    fn read_parsed_json(&mut self, script: &str) {
        if !script.contains("JSON.parse") {
            return;
        }
        for (quote, pattern) in ParsedQuote::ALL.iter().zip(PARSED.iter()) {
            for found in pattern.captures_iter(script).take(100) {
                if let Some(value) = quote.parse_json(&found[1]) {
                    self.read_members(&value, "$", 0, &|path| PlaceKind::ParsedJson(path, *quote));
                }
            }
        }
    }

    fn read_script_keys(&mut self, script: &str) {
        let mut objects = OpenObjects::new(script);
        for found in KEY_AND_TEXT.captures_iter(script).take(5_000) {
            let owner = objects.name_at(found.get(0).map_or(0, |found| found.start()));
            let ways = ScriptNotation::ALL.iter().zip(2..);
            let value = ways.filter_map(|(written, group)| Some((*written, found.get(group)?)));
            for (written, value) in value {
                let text = match written {
                    ScriptNotation::WithEscapes => serde_json::from_str(value.as_str()).ok(),
                    _ => Some(value.as_str().to_owned()),
                };
                if let Some(text) = text {
                    let (key, owner) = (found[1].to_owned(), owner.map(str::to_owned));
                    self.add(PlaceKind::ScriptKey(key, written, owner), &text);
                }
            }
        }
    }
}

/// Tracks which objects of a script are open (inside their braces) at a position, while the script is read from its
/// beginning.
struct OpenObjects<'s> {
    script: &'s str,
    at: usize,
    quote: Option<u8>,
    /// The name of each open object, from the outermost to the innermost, if it has one.
    names: Vec<Option<&'s str>>,
}

impl<'s> OpenObjects<'s> {
    fn new(script: &'s str) -> OpenObjects<'s> {
        OpenObjects {
            script,
            at: 0,
            quote: None,
            names: Vec::new(),
        }
    }

    /// Reads the script up to a later position, and returns the name of the innermost object that is open there.
    fn name_at(&mut self, place: usize) -> Option<&'s str> {
        let bytes = self.script.as_bytes();
        while self.at < place {
            match (bytes[self.at], self.quote) {
                (b'\\', Some(_)) => self.at += 1,
                (byte, Some(quote)) if byte == quote => self.quote = None,
                (_, Some(_)) => {}
                (quote @ (b'"' | b'\''), None) => self.quote = Some(quote),
                (b'{', None) => {
                    let before = &self.script[..self.at];
                    let name = NAME_OF_OBJECT.captures(last_bytes(before, LONGEST_NAME_OF_OBJECT));
                    self.names
                        .push(name.and_then(|name| name.get(1)).map(|name| name.as_str()));
                }
                (b'}', None) => drop(self.names.pop()),
                _ => {}
            }
            self.at += 1;
        }
        self.names.last().copied().flatten()
    }
}

/// The last `most` bytes of a text, or a few less if a character would be cut.
fn last_bytes(text: &str, most: usize) -> &str {
    let mut from = text.len().saturating_sub(most);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}

const LONGEST_NAME_OF_OBJECT: usize = 60;

static NAME_OF_OBJECT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"\b([A-Za-z_][A-Za-z0-9_-]{0,40})["']?\s*[:=]\s*$"#).expect("a constant pattern")
});

static PARSED: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let patterns = ParsedQuote::ALL.iter().map(|quote| quote.pattern());
    let compiled = patterns.map(|pattern| Regex::new(pattern).expect("constant patterns"));
    compiled.collect()
});

static KEY_AND_TEXT: LazyLock<Regex> = LazyLock::new(|| {
    let values = ScriptNotation::ALL.map(ScriptNotation::pattern).join("|");
    let key = r#"["']?([A-Za-z_][A-Za-z0-9_-]{0,40})["']?\s*[:=]\s*"#;
    Regex::new(&format!("{key}(?:{values})")).expect("constant patterns")
});
