//! Finds the line of each value in a JSON text, for error messages. Also finds keys that an object has twice, which
//! `serde_json` silently merges.

use std::collections::HashMap;

/// The lines of JSON values by their paths, and the paths of keys that an object has twice.
#[derive(Debug, Default)]
pub(crate) struct Positions {
    lines: HashMap<String, usize>,
    pub(crate) duplicates: Vec<String>,
}

impl Positions {
    /// Finds the positions in a JSON text. `serde_json` must have parsed it before, which limits its depth.
    pub(crate) fn from_text(text: &str) -> Positions {
        let mut walk = Walk {
            bytes: text.as_bytes(),
            at: 0,
            line: 1,
            found: Positions::default(),
        };
        walk.walk_value("");
        walk.found
    }

    /// The line of the value at `path`, or of the innermost value that contains it.
    pub(crate) fn line(&self, path: &str) -> Option<usize> {
        let mut path = path;
        loop {
            if let Some(line) = self.lines.get(path) {
                return Some(*line);
            }
            let end = path.rfind(['.', '['])?;
            path = &path[..end];
        }
    }
}

/// Extends `path` by an object key: `.key`, or `["key"]` if the key is not a plain word.
pub(crate) fn key_path(path: &str, key: &str) -> String {
    let plain = !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '-'));
    match (plain, path.is_empty()) {
        (true, true) => key.to_owned(),
        (true, false) => format!("{path}.{key}"),
        (false, _) => format!("{path}[{}]", crate::fault::quote(key)),
    }
}

struct Walk<'t> {
    bytes: &'t [u8],
    at: usize,
    line: usize,
    found: Positions,
}

impl Walk<'_> {
    fn peek(&mut self) -> Option<u8> {
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b'\n' => self.line += 1,
                b' ' | b'\t' | b'\r' => {}
                other => return Some(other),
            }
            self.at += 1;
        }
        None
    }

    fn walk_value(&mut self, path: &str) {
        let first = self.peek();
        self.found.lines.insert(path.to_owned(), self.line);
        match first {
            Some(b'{') => self.walk_object(path),
            Some(b'[') => self.walk_array(path),
            Some(b'"') => {
                self.read_string();
            }
            _ => self.skip_while(|byte| !matches!(byte, b',' | b']' | b'}')),
        }
    }

    fn walk_object(&mut self, path: &str) {
        self.at += 1;
        let mut keys: Vec<String> = Vec::new();
        loop {
            match self.peek() {
                Some(b'"') => {}
                Some(b',') => {
                    self.at += 1;
                    continue;
                }
                _ => break,
            }
            let key = self.read_string();
            let value_path = key_path(path, &key);
            self.skip_while(|byte| byte != b':');
            self.at += 1;
            self.walk_value(&value_path);
            if keys.contains(&key) {
                self.found.duplicates.push(value_path);
            }
            keys.push(key);
        }
        self.at += 1;
    }

    fn walk_array(&mut self, path: &str) {
        self.at += 1;
        let mut index = 0;
        loop {
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') | None => break,
                Some(_) => {
                    self.walk_value(&format!("{path}[{index}]"));
                    index += 1;
                }
            }
        }
        self.at += 1;
    }

    /// Reads the string that begins at the current position, and resolves its escapes.
    fn read_string(&mut self) -> String {
        let start = self.at;
        self.at += 1;
        while let Some(&byte) = self.bytes.get(self.at) {
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'"' => break,
                _ => {}
            }
        }
        let end = self.at.min(self.bytes.len());
        serde_json::from_slice(&self.bytes[start..end]).unwrap_or_default()
    }

    fn skip_while(&mut self, goes_on: impl Fn(u8) -> bool) {
        while let Some(&byte) = self.bytes.get(self.at) {
            if !goes_on(byte) {
                return;
            }
            if byte == b'\n' {
                self.line += 1;
            }
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{
  "name": "a\"b", "on": true,
  "fields": [
    {"name": "x"},

    { "name": "y", "odd key": {"in": 1},
      "name": "z" }
  ]
}"#;

    #[test]
    fn every_value_has_its_line() {
        let positions = Positions::from_text(TEXT);
        assert_eq!(positions.line(""), Some(1));
        assert_eq!(positions.line("on"), Some(2));
        assert_eq!(positions.line("fields[0].name"), Some(4));
        assert_eq!(positions.line(r#"fields[1]["odd key"].in"#), Some(6));
        assert_eq!(positions.line("fields[1].missing.deeper"), Some(6));
    }

    #[test]
    fn a_key_given_twice_is_found() {
        assert_eq!(Positions::from_text(TEXT).duplicates, ["fields[1].name"]);
    }
}
