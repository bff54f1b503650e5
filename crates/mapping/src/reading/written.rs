//! XPath location paths and CSS selectors as written, cut into pieces that can be dropped from the end:
//! `//table/tr[1]` becomes `//table`, `/tr`, `[1]`.

/// A piece, and what separates it from the previous one: `//` and `table`, `/` and `tr`, or nothing and `[1]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) joint: String,
    pub(super) text: String,
}

impl Piece {
    pub(super) fn new(joint: impl Into<String>, text: impl Into<String>) -> Piece {
        Piece {
            joint: joint.into(),
            text: text.into(),
        }
    }
}

/// A path or a selector, cut into pieces, with the text around it, such as `count(` and `)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WrittenPath {
    before: String,
    pub(super) pieces: Vec<Piece>,
    after: String,
}

impl WrittenPath {
    /// All beginnings of the path as text, including the whole path. If one of them is invalid, the path was cut in the
    /// wrong places.
    pub(super) fn prefixes(&self) -> impl Iterator<Item = String> {
        (1..=self.pieces.len()).map(|end| text_of(&self.pieces[..end]))
    }

    /// The whole expression, with other pieces in place of the path's own.
    pub(super) fn with_pieces(&self, pieces: &[Piece]) -> String {
        format!("{}{}{}", self.before, text_of(pieces), self.after)
    }
}

/// Joins the pieces to a text.
pub(super) fn text_of(pieces: &[Piece]) -> String {
    pieces
        .iter()
        .map(|piece| format!("{}{}", piece.joint, piece.text))
        .collect()
}

/// The location paths of an XPath expression: a path itself, the branches of a union, or the path in the first
/// argument of a function. Other expressions have none.
pub(super) fn parse_paths(expression: &str) -> Vec<WrittenPath> {
    let expression = expression.trim();
    if let Some((before, inner, after)) = split_first_argument(expression) {
        let mut inner = parse_paths(inner);
        if inner.len() > 1 {
            return Vec::new();
        }
        for path in &mut inner {
            path.before.insert_str(0, before);
            path.after.push_str(after);
        }
        return inner;
    }
    split_outside(expression, '|')
        .into_iter()
        .filter_map(|path| path_from_pieces(path_pieces(path)?))
        .collect()
}

/// The selectors of a comma-separated selector list, each cut into pieces.
pub(super) fn parse_selectors(list: &str) -> Vec<WrittenPath> {
    split_outside(list, ',')
        .into_iter()
        .filter_map(|selector| path_from_pieces(selector_pieces(selector)))
        .collect()
}

fn path_from_pieces(pieces: Vec<Piece>) -> Option<WrittenPath> {
    (!pieces.is_empty()).then(|| WrittenPath {
        before: String::new(),
        pieces,
        after: String::new(),
    })
}

/// The characters outside quotes and brackets, including opening brackets, with their positions.
fn unquoted_chars(text: &str) -> Vec<(usize, char)> {
    let mut found = Vec::new();
    let (mut depth, mut quote, mut escaped) = (0_usize, None, false);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            _ if std::mem::take(&mut escaped) => {}
            (_, '\\') => escaped = true,
            (Some(open), _) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, ')' | ']') => depth = depth.saturating_sub(1),
            (None, _) => {
                if depth == 0 {
                    found.push((at, c));
                }
                depth += usize::from(matches!(c, '(' | '['));
            }
        }
    }
    found
}

fn split_outside(text: &str, separator: char) -> Vec<&str> {
    let separators = unquoted_chars(text)
        .into_iter()
        .filter(|(_, c)| *c == separator);
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, _) in separators {
        parts.push(text[start..at].trim());
        start = at + separator.len_utf8();
    }
    parts.push(text[start..].trim());
    parts
}

/// Splits a single function call into `name(`, its first argument, and the rest. `None` for other expressions.
fn split_first_argument(expression: &str) -> Option<(&str, &str, &str)> {
    let open = expression.find('(')?;
    let name = &expression[..open];
    let is_function = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c == '-')
        && !matches!(name, "text" | "comment" | "node" | "processing-instruction");
    // The bracket of the call must close at the end of the expression.
    let ends = unquoted_chars(expression).len() == open + 1 && expression.ends_with(')');
    if !is_function || !ends {
        return None;
    }
    let arguments = &expression[open + 1..expression.len() - 1];
    let first = split_outside(arguments, ',')[0];
    let start = expression.len() - 1 - arguments.trim_start().len();
    let end = start + first.len();
    Some((&expression[..start], first, &expression[end..]))
}

/// Cuts a location path into pieces. `None` if the text is not a path but an operation or a value.
fn path_pieces(path: &str) -> Option<Vec<Piece>> {
    if path.starts_with(|c: char| matches!(c, '"' | '\'' | '-') || c.is_ascii_digit()) {
        return None;
    }
    let mut cuts = Vec::new();
    for (at, c) in unquoted_chars(path) {
        match c {
            '/' if at > 0 && cuts.last() == Some(&(at - 1)) && path.as_bytes()[at - 1] == b'/' => {}
            '/' | '[' => cuts.push(at),
            '=' | '<' | '>' | '!' | '+' | ',' => return None,
            _ => {}
        }
    }
    let pieces = cut_at(path, &cuts, |piece| {
        piece.len() - piece.trim_start_matches('/').len()
    });
    let has_operator = |piece: &Piece| unquoted_chars(&piece.text).iter().any(|(_, c)| *c == ' ');
    (!pieces.iter().any(has_operator)).then_some(pieces)
}

fn selector_pieces(selector: &str) -> Vec<Piece> {
    const COMBINATORS: [char; 4] = [' ', '>', '+', '~'];
    let mut cuts = Vec::new();
    let mut before = None;
    for (at, c) in unquoted_chars(selector) {
        let follows_combinator = before.is_some_and(|before| COMBINATORS.contains(&before));
        let begins = match c {
            '.' | '#' | '[' => !follows_combinator,
            ':' => !follows_combinator && before != Some(':'),
            _ => COMBINATORS.contains(&c) && !follows_combinator,
        };
        if begins {
            cuts.push(at);
        }
        before = Some(c);
    }
    cut_at(selector, &cuts, |piece| {
        piece.len() - piece.trim_start_matches(COMBINATORS).len()
    })
}

/// Cuts a text at these positions. `joint` returns the length of the separator at the beginning of a piece, in bytes.
fn cut_at(text: &str, cuts: &[usize], joint: impl Fn(&str) -> usize) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let ends = cuts.iter().copied().chain([text.len()]);
    let mut start = 0;
    for end in ends {
        let piece = &text[start..end];
        let (joint, name) = piece.split_at(joint(piece));
        if !name.trim().is_empty() {
            pieces.push(Piece::new(joint, name.trim()));
        }
        start = end;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece_texts(written: &[WrittenPath]) -> Vec<Vec<String>> {
        let texts = |pieces: &[Piece]| {
            let texts = pieces
                .iter()
                .map(|piece| text_of(std::slice::from_ref(piece)));
            texts.collect()
        };
        written
            .iter()
            .map(|written| texts(&written.pieces))
            .collect()
    }

    #[test]
    fn paths_are_cut_at_steps_and_predicates() {
        for (expression, pieces) in [
            ("//table/tr[1]/td", &["//table", "/tr", "[1]", "/td"][..]),
            (
                "/html//a[@href='/x/y']/@rel",
                &["/html", "//a", "[@href='/x/y']", "/@rel"],
            ),
            (
                ".//a[b/c][2]/text()",
                &[".", "//a", "[b/c]", "[2]", "/text()"],
            ),
            ("(//p)[1]/a", &["(//p)", "[1]", "/a"]),
            ("string( //td/a )", &["//td", "/a"]),
            ("substring-after(//td, ':')", &["//td"]),
            (
                "//li/following-sibling::li",
                &["//li", "/following-sibling::li"],
            ),
        ] {
            assert_eq!(
                piece_texts(&parse_paths(expression)),
                [pieces],
                "{expression}"
            );
        }
        assert_eq!(piece_texts(&parse_paths("//a | //b[x|y]")).len(), 2);
        for other in [
            "//a = 'x'",
            "count(//a) + 1",
            "//a and //b",
            "'//a'=1",
            "-1",
        ] {
            assert_eq!(parse_paths(other), [], "{other}");
        }
    }

    #[test]
    fn text_around_a_path_stays() {
        let written = &parse_paths("substring-after( //td/a , ':')")[0];
        let other = [Piece::new("//", "th")];
        assert_eq!(written.with_pieces(&other), "substring-after( //th , ':')");
    }

    #[test]
    fn selectors_are_cut_at_compounds_and_their_parts() {
        for (selector, pieces) in [
            (
                "ul.a > li:first-child a",
                &["ul", ".a", " > li", ":first-child", " a"][..],
            ),
            (
                "div[data-x='a b'] .c::attr(href)",
                &["div", "[data-x='a b']", " .c", "::attr(href)"],
            ),
            ("p:not(.x, .y)~q", &["p", ":not(.x, .y)", "~q"]),
        ] {
            assert_eq!(
                piece_texts(&parse_selectors(selector)),
                [pieces],
                "{selector}"
            );
        }
        assert_eq!(parse_selectors("a, b").len(), 2);
    }
}
