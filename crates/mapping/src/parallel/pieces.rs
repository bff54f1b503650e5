//! Cuts selectors into pieces, such as `ul` and `li`. Selectors without a simple form, such as a list of selectors, are
//! not cut.

use super::way::{Language, Piece};

type Cut = Option<(Vec<Piece>, String)>;

/// The open brackets and quotes at a position of a text.
#[derive(Default)]
struct Depth {
    open: usize,
    quote: Option<char>,
}

impl Depth {
    /// Advances over a character. Returns whether the character is outside brackets and quotes.
    fn advance(&mut self, c: char) -> bool {
        match (self.quote, c) {
            (Some(quote), c) => {
                if c == quote {
                    self.quote = None;
                }
                false
            }
            (None, '"' | '\'') => {
                self.quote = Some(c);
                false
            }
            (None, '(' | '[') => {
                self.open += 1;
                false
            }
            (None, ')' | ']') => {
                self.open = self.open.saturating_sub(1);
                false
            }
            (None, _) => self.open == 0,
        }
    }
}

pub(super) fn split_css(selector: &str) -> Cut {
    let mut pieces = Vec::new();
    let mut depth = Depth::default();
    let (mut joint, mut text) = (" ", String::new());
    let mut end = "";
    for (index, c) in selector.char_indices() {
        let is_outside = depth.advance(c);
        if is_outside && selector[index..].starts_with("::") {
            end = selector[index..].trim_end();
            break;
        }
        match c {
            ',' if is_outside => return None,
            ' ' | '\t' | '\n' | '>' | '+' | '~' if is_outside => {
                if !text.is_empty() {
                    pieces.push((joint, std::mem::take(&mut text)));
                    joint = " ";
                }
                joint = match c {
                    '>' => ">",
                    '+' => "+",
                    '~' => "~",
                    _ => joint,
                };
            }
            _ => text.push(c),
        }
    }
    if !text.is_empty() {
        pieces.push((joint, text));
    }
    let pieces = pieces
        .into_iter()
        .map(|(joint, text)| Piece::new(Language::Css, joint, &text));
    Some((add_rows_of_cells(pieces.collect()), end.to_owned()))
}

/// Cuts an XPath into pieces. If `is_first`, the XPath is applied to the page, so it begins at the root even without a
/// leading slash.
pub(super) fn split_xpath(expression: &str, is_first: bool) -> Cut {
    let expression = expression.trim();
    let path = expression.strip_prefix('.').unwrap_or(expression);
    let is_absolute = path.len() == expression.len() && path.starts_with('/');
    if is_absolute && !is_first {
        return None;
    }
    let mut depth = Depth::default();
    let mut pieces: Vec<Piece> = Vec::new();
    let (mut joint, mut text) = ("", String::new());
    for c in path.chars() {
        let is_outside = depth.advance(c);
        match c {
            '/' if is_outside => {
                if !text.is_empty() {
                    pieces.push(Piece::new(
                        Language::XPath,
                        joint,
                        &std::mem::take(&mut text),
                    ));
                    joint = "";
                }
                joint = if joint.is_empty() { "/" } else { "//" };
            }
            '|' | ' ' | '=' | '+' if is_outside => return None,
            _ => text.push(c),
        }
    }
    let mut end = String::new();
    match text.as_str() {
        "" => {}
        "text()" => end = format!("{joint}text()"),
        attribute if attribute.starts_with('@') => end = format!("{joint}{attribute}"),
        _ => pieces.push(Piece::new(Language::XPath, joint, &text)),
    }
    if let Some(first) = pieces.first_mut()
        && first.joint.is_empty()
    {
        first.joint = "/";
    }
    let is_plain = |piece: &Piece| {
        let name = piece.text.split('[').next().unwrap_or_default();
        !name.contains('(') && !name.starts_with('.')
    };
    pieces
        .iter()
        .all(is_plain)
        .then(|| (add_rows_of_cells(pieces), end))
}

pub(super) fn split_jsonpath(expression: &str) -> Cut {
    let path = expression.trim().strip_prefix('$')?;
    let mut pieces: Vec<String> = Vec::new();
    let mut depth = Depth::default();
    let mut before = ' ';
    for c in path.chars() {
        let was_open = depth.open > 0 || depth.quote.is_some();
        let is_outside = depth.advance(c);
        let begins =
            (c == '.' && is_outside && before != '.') || (c == '[' && !was_open && before != '.');
        match pieces.last_mut() {
            Some(last) if !begins => last.push(c),
            _ => pieces.push(c.to_string()),
        }
        before = c;
    }
    let pieces = pieces.iter();
    let pieces = pieces.map(|text| Piece::new(Language::JsonPath, "", &to_plain_member(text)));
    Some((pieces.collect(), String::new()))
}

/// Rewrites the JSONPath member `['name']` as the equivalent `.name`.
fn to_plain_member(text: &str) -> String {
    let quoted = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    let name = quoted.map(|quoted| quoted.trim_matches(['\'', '"']));
    let is_plain = |name: &&str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    name.filter(is_plain)
        .map_or_else(|| text.to_owned(), |name| format!(".{name}"))
}

/// If a selector leads to a table cell (`td` or `th`) without naming its row, adds a piece for the row.
fn add_rows_of_cells(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut all: Vec<Piece> = Vec::with_capacity(pieces.len() + 1);
    for mut piece in pieces {
        let is_cell = matches!(piece.tag(), Some("td" | "th"));
        let descends = matches!(piece.joint, " " | "//");
        if is_cell && descends && all.last().and_then(Piece::tag) != Some("tr") {
            let (language, joint) = (piece.language, piece.joint);
            all.push(Piece::new(language, joint, "tr"));
            if language == Language::XPath {
                piece.joint = "/";
            }
        }
        all.push(piece);
    }
    all
}
