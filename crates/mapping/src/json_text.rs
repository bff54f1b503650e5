//! Reads JSON as pages contain it. Pure JSON goes to `serde_json`. Anything else goes to a reader that tolerates the
//! faults that browsers and search engines tolerate. This reader accepts several values in a row. It never invents a
//! value: it stops at the first text that is not JSON.

use serde_json::{Map, Value};
use webfill_values::{Decimal, is_invisible, is_white_space};

use crate::entities;
use crate::json_wrapping::{guard_length, wrapping_length};

/// The deepest nesting, the same as in `serde_json`.
const MAX_DEPTH: usize = 128;

/// The JSON values in a text.
#[derive(Debug, PartialEq)]
pub(crate) struct JsonText {
    pub(crate) values: Vec<Value>,
    /// A description of what was skipped, or the reason why the rest was not read. Shown as a warning.
    pub(crate) oddity: Option<String>,
}

/// Reads the JSON values in a text, at most `most`.
pub(crate) fn read(text: &str, most: usize) -> JsonText {
    let text = text.trim_matches(|c| is_white_space(c) || is_invisible(c));
    if !may_lose_digits(text)
        && let Ok(value) = serde_json::from_str(text)
    {
        return JsonText {
            values: vec![value],
            oddity: None,
        };
    }
    match is_html_encoded(text) {
        true => {
            let decoded = entities::decode_references(text);
            let mut read = Reader::new(&decoded, most).read_all();
            read.oddity.get_or_insert_with(|| {
                "character references stand for its quotation marks".to_owned()
            });
            read
        }
        false => Reader::new(text, most).read_all(),
    }
}

/// Whether a number in the text may have more digits than a double can hold: it has 16 digits in a row, or an exponent.
fn may_lose_digits(text: &str) -> bool {
    let mut length = 0;
    for pair in text.as_bytes().windows(2) {
        length = match pair[0] {
            b'0'..=b'9' if matches!(pair[1], b'e' | b'E') => return true,
            b'0'..=b'9' | b'.' => length + 1,
            _ => 0,
        };
        if length >= 16 {
            return true;
        }
    }
    false
}

/// Whether the quotes of a JSON text are character references, because it was encoded for HTML once too often.
fn is_html_encoded(text: &str) -> bool {
    let first = text.trim_start_matches(['{', '[', ' ', '\n', '\r', '\t']);
    first.len() < text.len()
        && (first.starts_with("&quot;")
            || first.starts_with("&#34;")
            || first.starts_with("&#x22;"))
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    values: usize,
    most: usize,
    /// Whether the text is a script: the JSON is the argument of a call or is assigned to a name.
    is_wrapped: bool,
    oddity: Option<String>,
}

/// The reason why the rest of a text is not read.
type Fault = String;

impl<'t> Reader<'t> {
    fn new(text: &'t str, most: usize) -> Reader<'t> {
        Reader {
            text,
            at: 0,
            values: 0,
            most,
            is_wrapped: false,
            oddity: None,
        }
    }

    fn read_all(mut self) -> JsonText {
        let mut values = Vec::new();
        self.skip_prefix();
        let fault = loop {
            self.skip_between();
            if self.at >= self.text.len() {
                break None;
            }
            if !values.is_empty() {
                self.note_oddity("it holds several values");
            }
            match self.read_value(0) {
                Ok(value) => values.push(value),
                Err(fault) => break Some(format!("{fault} at byte {}", self.at)),
            }
        };
        if fault.is_some() {
            // A single number or word is not kept, because it may be the beginning of other text. Nothing of a script is
            // kept that does more than pass its JSON on.
            let is_wrapped = self.is_wrapped;
            values.retain(|value: &Value| !is_wrapped && (value.is_object() || value.is_array()));
        }
        let fault = fault.or_else(|| values.is_empty().then(|| "it is empty".to_owned()));
        JsonText {
            values,
            oddity: fault.or(self.oddity),
        }
    }

    fn note_oddity(&mut self, oddity: &str) {
        self.oddity.get_or_insert_with(|| oddity.to_owned());
    }

    fn unread_text(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.unread_text().chars().next()
    }

    fn take(&mut self, token: &str) -> bool {
        let is_next = self.unread_text().starts_with(token);
        if is_next {
            self.at += token.len();
        }
        is_next
    }

    /// Skips what comes before the JSON: a guard against scripts of other sites, and the beginning of a script.
    fn skip_prefix(&mut self) {
        self.skip_blanks();
        let guard = guard_length(self.unread_text());
        if guard > 0 {
            self.at += guard;
            self.note_oddity("it begins with a guard against scripts of other sites");
            self.skip_blanks();
        }
        if let Some(length) = wrapping_length(self.unread_text()) {
            self.at += length;
            self.is_wrapped = true;
            self.note_oddity("it is in a script");
        }
    }

    /// Skips blanks, and comments in all forms that pages use.
    fn skip_blanks(&mut self) {
        const MARKS: &[&str] = &["<!--", "-->", "<![CDATA[", "]]>"];
        loop {
            let blank = self
                .unread_text()
                .find(|c| !(is_white_space(c) || is_invisible(c)));
            self.at += blank.unwrap_or(self.unread_text().len());
            if MARKS.iter().any(|mark| self.take(mark)) {
                self.note_oddity("it is in a comment or CDATA section");
            } else if self.unread_text().starts_with("/*") {
                self.skip_to("*/");
            } else if self.unread_text().starts_with("//") {
                self.skip_line();
            } else {
                return;
            }
        }
    }

    fn skip_to(&mut self, end: &str) {
        self.note_oddity("it holds comments");
        let length = self.unread_text().find(end).map(|at| at + end.len());
        self.at += length.unwrap_or(self.unread_text().len());
    }

    /// Skips the rest of the line. If a mark of a comment or CDATA section comes first in it, stops before the mark,
    /// because JSON may follow there.
    fn skip_line(&mut self) {
        self.note_oddity("it holds comments");
        let line = self
            .unread_text()
            .split(['\n', '\r'])
            .next()
            .unwrap_or_default();
        let mark = ["<![CDATA[", "]]>", "<!--", "-->"].iter().find_map(|mark| {
            let before = line[2..].find(mark)?;
            line[2..2 + before].trim().is_empty().then_some(2 + before)
        });
        self.at += mark.unwrap_or(line.len());
    }

    /// Skips blanks, comments, semicolons and commas, which may stand between values.
    fn skip_between(&mut self) {
        self.skip_blanks();
        while self.take(";") || self.take(",") || (self.is_wrapped && self.take(")")) {
            self.note_oddity("a mark follows it");
            self.skip_blanks();
        }
    }

    fn read_value(&mut self, depth: usize) -> Result<Value, Fault> {
        self.values += 1;
        if self.values > self.most {
            return Err(format!("over {} values", self.most));
        }
        if depth >= MAX_DEPTH {
            return Err(format!("over {MAX_DEPTH} levels"));
        }
        match self.peek() {
            Some('{') => self.read_object(depth),
            Some('[') => self.read_array(depth),
            Some('"') => self.read_string().map(Value::String),
            Some(_) => self.read_word(),
            None => Err("it ends too early".to_owned()),
        }
    }

    fn read_object(&mut self, depth: usize) -> Result<Value, Fault> {
        self.at += 1;
        let mut members = Map::new();
        loop {
            if self.take_commas_and_bracket('}')? {
                return Ok(Value::Object(members));
            }
            if self.peek() != Some('"') {
                return Err("expected a name in quotation marks".to_owned());
            }
            let name = self.read_string()?;
            self.skip_blanks();
            if !self.take(":") {
                return Err("expected `:`".to_owned());
            }
            self.skip_blanks();
            let value = self.read_value(depth + 1)?;
            members.insert(name, value);
            self.expect_separator('}')?;
        }
    }

    fn read_array(&mut self, depth: usize) -> Result<Value, Fault> {
        self.at += 1;
        let mut entries = Vec::new();
        loop {
            if self.take_commas_and_bracket(']')? {
                return Ok(Value::Array(entries));
            }
            entries.push(self.read_value(depth + 1)?);
            self.expect_separator(']')?;
        }
    }

    /// Skips superfluous commas, and the closing bracket if it follows. Returns whether the bracket was there.
    fn take_commas_and_bracket(&mut self, bracket: char) -> Result<bool, Fault> {
        self.skip_blanks();
        while self.take(",") {
            self.note_oddity("it has extra commas");
            self.skip_blanks();
        }
        match self.peek() {
            None => Err("it ends too early".to_owned()),
            Some(next) if next == bracket => {
                self.at += 1;
                Ok(true)
            }
            Some(_) => Ok(false),
        }
    }

    fn expect_separator(&mut self, bracket: char) -> Result<(), Fault> {
        self.skip_blanks();
        if self.take(",") {
            self.skip_blanks();
            if self.peek() == Some(bracket) {
                self.note_oddity("it has extra commas");
            }
            return Ok(());
        }
        match self.peek() {
            Some(next) if next == bracket => Ok(()),
            Some(_) => Err(format!("expected `,` or `{bracket}`")),
            None => Err("it ends too early".to_owned()),
        }
    }

    /// Reads a string. Control characters become blanks, and an unpaired surrogate becomes U+FFFD, as in browsers.
    fn read_string(&mut self) -> Result<String, Fault> {
        self.at += 1;
        let mut string = String::new();
        loop {
            let rest = self.unread_text();
            let plain = rest.find(|c: char| c == '"' || c == '\\' || c < ' ');
            let Some(length) = plain else {
                self.at = self.text.len();
                return Err("it ends within a string".to_owned());
            };
            string.push_str(&rest[..length]);
            self.at += length + 1;
            match rest.as_bytes()[length] {
                b'"' => return Ok(string),
                b'\\' => self.read_escape(&mut string)?,
                _ => {
                    self.note_oddity("its strings contain control characters");
                    string.push(' ');
                }
            }
        }
    }

    fn read_escape(&mut self, string: &mut String) -> Result<(), Fault> {
        let Some(letter) = self.peek() else {
            return Err("it ends within a string".to_owned());
        };
        self.at += letter.len_utf8();
        string.push(match letter {
            '"' | '\\' | '/' => letter,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => self.read_unicode_escape()?,
            // JavaScript allows this escape in texts in single quotes; JSON does not.
            '\'' => {
                self.note_oddity("it has needlessly escaped quotes");
                '\''
            }
            other => return Err(format!("unknown escape `\\{other}`")),
        });
        Ok(())
    }

    fn read_unicode_escape(&mut self) -> Result<char, Fault> {
        let first = self.read_four_digits()?;
        if (0xd800..0xdc00).contains(&first) && self.unread_text().starts_with("\\u") {
            let before = self.at;
            self.at += 2;
            let second = self.read_four_digits()?;
            if (0xdc00..0xe000).contains(&second) {
                let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or('\u{fffd}'));
            }
            self.at = before;
        }
        Ok(char::from_u32(first).unwrap_or_else(|| {
            self.note_oddity("it has an incomplete escaped character");
            '\u{fffd}'
        }))
    }

    fn read_four_digits(&mut self) -> Result<u32, Fault> {
        let digits = self.unread_text().get(..4).unwrap_or_default();
        let code = u32::from_str_radix(digits, 16).ok();
        let code = code.filter(|_| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        self.at += digits.len();
        code.ok_or_else(|| "expected four digits after `\\u`".to_owned())
    }

    /// Reads a number, `true`, `false` or `null`. JavaScript's `NaN`, `Infinity` and `undefined` become null.
    fn read_word(&mut self) -> Result<Value, Fault> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '_');
        let rest = self.unread_text();
        let word = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
        let value = match word {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "null" => Value::Null,
            "NaN" | "undefined" | "Infinity" | "-Infinity" => {
                self.note_oddity("it has invalid values");
                Value::Null
            }
            _ => parse_number(word).ok_or_else(|| "expected a value".to_owned())?,
        };
        self.at += word.len();
        Ok(value)
    }
}

/// Parses a number with all its digits. It becomes a text if no JSON number can hold them.
fn parse_number(word: &str) -> Option<Value> {
    let begins = word.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    if !begins {
        return None;
    }
    let exact = Decimal::from_text(word)?;
    let leads_with_zero = word.trim_start_matches('-').starts_with('0')
        && word
            .trim_start_matches("-")
            .as_bytes()
            .get(1)
            .is_some_and(u8::is_ascii_digit);
    if leads_with_zero {
        return Some(Value::String(word.to_owned()));
    }
    Some(match serde_json::from_str(word) {
        Ok(Value::Number(number)) if Decimal::from_number(&number).as_ref() == Some(&exact) => {
            Value::Number(number)
        }
        _ => exact.to_json(false),
    })
}
