//! The text of a value: what a reader sees of an element that holds a number, a date or a name.

mod raised;

use std::borrow::Cow;

use webfill_document::NodeRef;

use self::raised::{Cents, Raised};
use crate::page_text::{gap_around, has_style, is_hidden, is_invisible};

/// The text of a value, with spaces where the page shows a gap, and before and after raised, lowered or struck digits.
/// Without them, `12<br>34` would be one number. The raised cents of an amount, as in `$19<sup>99</sup>`, follow a
/// decimal mark. Hidden elements count only if nothing else is in the node, and struck-out ones also if only they have
/// digits.
pub fn value_text(node: NodeRef<'_>) -> Cow<'_, str> {
    value_text_with(node, '.')
}

/// As [`value_text`]. `decimal` is the mark before raised cents if no mark between groups of digits shows another one.
pub(crate) fn value_text_with(node: NodeRef<'_>, decimal: char) -> Cow<'_, str> {
    if !node.children().any(NodeRef::is_element) {
        return Cow::Borrowed(node.text());
    }
    let text_of = |shows: Shows| {
        let mut value = ValueText {
            shows,
            ..ValueText::default()
        };
        value.write(node);
        value.finish(decimal)
    };
    let (plain, has_struck) = text_of(Shows::Plain);
    let struck = has_struck.then(|| text_of(Shows::Struck).0);
    let has_digit = |text: &str| text.contains(char::is_numeric);
    let text = match struck {
        Some(struck) if has_digit(&struck) && !has_digit(&plain) => struck,
        Some(struck) if webfill_values::is_blank(&plain) => struck,
        _ => plain,
    };
    Cow::Owned(match webfill_values::is_blank(&text) {
        true => text_of(Shows::Hidden).0,
        false => text,
    })
}

/// Whether an element is struck out by its own markup.
fn is_struck(node: NodeRef<'_>, tag: &str) -> bool {
    const CLASSES: [&str; 5] = [
        "line-through",
        "strike-through",
        "strikethrough",
        "text-decoration-line-through",
        "text-strike",
    ];
    let has_class = |classes: &str| {
        classes
            .split_ascii_whitespace()
            .any(|class| CLASSES.contains(&class))
    };
    matches!(tag, "del" | "s" | "strike")
        || has_style(node, "text-decoration", "line-through")
        || has_style(node, "text-decoration-line", "line-through")
        || node.attribute("class").is_some_and(has_class)
}

/// The elements that are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Shows {
    /// Those that are neither hidden nor struck out.
    #[default]
    Plain,
    /// Also those that are struck out.
    Struck,
    /// All.
    Hidden,
}

#[derive(Default)]
struct ValueText {
    text: String,
    /// Whether raised, lowered or struck text begins here, or has just ended.
    is_apart: bool,
    shows: Shows,
    /// Whether struck-out text was left out.
    has_struck: bool,
    /// Digits that may be the raised cents of an amount, in the order of the text.
    cents: Vec<Cents>,
}

impl ValueText {
    /// Writes the text of a node. Recursive, because the depth of documents is limited.
    fn write(&mut self, node: NodeRef<'_>) {
        for child in node.children() {
            if child.is_text() {
                self.push(child.text());
                continue;
            }
            match child.tag() {
                None => {}
                Some(tag) if is_invisible(tag) => {}
                Some(_) if self.shows < Shows::Hidden && is_hidden(child) => {}
                Some("br") => self.push_gap(),
                Some(tag) if is_struck(child, tag) => match self.shows {
                    Shows::Plain => {
                        self.has_struck = true;
                        self.is_apart = true;
                    }
                    Shows::Struck | Shows::Hidden => self.write_apart(child),
                },
                Some(tag) if gap_around(tag) > 0 || matches!(tag, "td" | "th") => {
                    self.push_gap();
                    self.write(child);
                    self.push_gap();
                }
                Some(tag) => self.write_inline(child, tag),
            }
        }
    }

    fn write_inline(&mut self, node: NodeRef<'_>, tag: &str) {
        match Raised::find(node, tag, &self.text) {
            Raised::No if matches!(tag, "sup" | "sub") => self.write_apart(node),
            Raised::No => self.write(node),
            Raised::Note => self.is_apart = true,
            Raised::Power(power) => self.text.push_str(&power),
            Raised::Cents { is_certain } => {
                let end = self.text.trim_end().len();
                self.write_apart(node);
                self.cents.push(Cents::new(end, is_certain));
            }
        }
    }

    fn write_apart(&mut self, node: NodeRef<'_>) {
        self.is_apart = true;
        self.write(node);
        self.is_apart = true;
    }

    fn push(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let is_apart = std::mem::take(&mut self.is_apart);
        let is_between_digits =
            self.text.ends_with(char::is_numeric) && text.starts_with(char::is_numeric);
        if is_apart && is_between_digits {
            self.text.push(' ');
        }
        self.text.push_str(text);
    }

    fn push_gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with(char::is_whitespace) {
            self.text.push(' ');
        }
    }

    /// The text with its cents, and whether struck-out text was left out.
    fn finish(mut self, decimal: char) -> (String, bool) {
        // From the end, because the text gets longer or shorter at each of them.
        for cents in self.cents.iter().rev() {
            cents.write(&mut self.text, decimal);
        }
        (self.text, self.has_struck)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use webfill_document::{Document, Limits};

    fn assert_texts(table: &[(&str, &str)]) {
        for (html, expected) in table {
            let document = Document::parse_html(&format!("<p>{html}</p>"), &Limits::default());
            let node = document.elements_by_tag("p").next().unwrap();
            assert_eq!(value_text(node), *expected, "{html}");
        }
    }

    #[test]
    fn values_have_neither_hidden_nor_joined_digits() {
        assert_texts(&[
            (
                "5<i style='color: red; Display: NONE !important'>7</i>",
                "5",
            ),
            ("<i hidden>7</i>5<b>0</b>", "50"),
            ("<i hidden>7</i> ", "7 "),
            ("12<br>34", "12 34"),
            ("H<sub>2</sub>O", "H2O"),
            ("12<sup>34</sup>", "12 34"),
        ]);
    }

    #[test]
    fn struck_out_text_counts_only_instead_of_other_text() {
        assert_texts(&[
            ("<s>199</s><b>149</b>", "149"),
            ("<del>$25.00</del> <ins>$19.99</ins>", " $19.99"),
            ("5<del>$7</del>", "5"),
            ("5<del>7</del>6", "5 6"),
            ("<strike>25</strike>", "25"),
            ("<s>$25</s> Sold out", "$25 Sold out"),
            ("<s>Acorn</s> Birch", " Birch"),
            (
                "<span style='TEXT-DECORATION:Line-Through'>25</span>19",
                "19",
            ),
            (
                "<span style='text-decoration: solid line-through red !important'>25</span>19",
                "19",
            ),
            ("<span class='price line-through'>25</span>19", "19"),
            ("<span style='text-decoration: none'>25</span>19", "2519"),
            ("<s hidden>25</s>", "25"),
        ]);
    }

    #[test]
    fn raised_cents_follow_a_decimal_mark() {
        assert_texts(&[
            ("$19<sup>99</sup>", "$19.99"),
            ("19<sup>99</sup> \u{20ac}", "19.99 \u{20ac}"),
            ("19<sup><b>99</b></sup> EUR", "19.99 EUR"),
            ("<sup>$</sup>19 <sup> 99 </sup>/ kg", "$19.99 / kg"),
            ("$1,299<sup>99</sup>", "$1,299.99"),
            ("1.299<sup>99</sup> K\u{10d}", "1.299,99 K\u{10d}"),
            ("$19<small>99</small>", "$19.99"),
            ("$19<span style='vertical-align: super'>99</span>", "$19.99"),
            ("19<span class='price__cents'>99</span>", "19.99"),
            ("$19<sup>99</sup> $25<sup>00</sup>", "$19.99 $25.00"),
            ("\u{20ac} 12<sup>.50</sup>", "\u{20ac} 12.50"),
            ("$19.<sup>99</sup>", "$19.99"),
        ]);
    }

    #[test]
    fn other_raised_digits_are_no_cents() {
        assert_texts(&[
            ("19<sup>99</sup>", "19 99"),
            ("$19<sup>9</sup>", "$19 9"),
            ("$19.99<sup>12</sup>", "$19.99 12"),
            ("$1,29<sup>99</sup>", "$1,29 99"),
            ("1995<sup>12</sup> USA", "1995 12 USA"),
            ("$19<sup>99</sup>5", "$19 99 5"),
            ("19<b>99</b>", "1999"),
            ("Acorn<sup>12</sup>", "Acorn12"),
        ]);
    }

    #[test]
    fn notes_behind_a_number_are_left_out_and_powers_of_ten_are_kept() {
        assert_texts(&[
            ("1,234<sup><a href='#fn2'>2</a></sup>", "1,234"),
            ("1,234<a href='#fn2'><sup>2</sup></a> km", "1,234 km"),
            ("1,234<sup class=footnote>2</sup>", "1,234"),
            ("1,234<sup>2)</sup>", "1,234"),
            ("$19<sup><a href='#n12'>12</a></sup>", "$19"),
            ("1,234<sup>2</sup>", "1,234 2"),
            ("1,234<sup>[2]</sup>", "1,234[2]"),
            ("<a href='#x'>12</a>", "12"),
            ("12 m<sup>2</sup>", "12 m2"),
            ("3\u{d7}10<sup>6</sup> m", "3\u{d7}10\u{2076} m"),
            ("3 x 10<sup>\u{2212}23</sup>", "3 x 10\u{207b}\u{b2}\u{b3}"),
            ("10<sup>6</sup>", "10 6"),
        ]);
    }
}
