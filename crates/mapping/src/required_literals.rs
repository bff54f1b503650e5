//! Finds texts that every match of a pattern must contain. A URL without them need not be tested
//! against the pattern.

use fancy_regex::Expr;
use regex_syntax::hir::{Hir, HirKind};

/// Texts shorter than this, and texts that most URLs contain, are not used, because they would exclude too few URLs.
const MIN_USEFUL_BYTES: usize = 4;
const COMMON: &str = "https://www.";

/// Collects texts that every match of a sequence contains, and keeps the most selective ones.
#[derive(Debug, Default)]
pub(crate) struct RequiredLiterals {
    run: String,
    best: Option<Vec<String>>,
}

impl RequiredLiterals {
    /// Adds text that directly follows the text added before.
    pub(crate) fn extend(&mut self, text: &str) {
        self.run.push_str(text);
    }

    /// Ends the current text, because unknown text follows it in the pattern.
    pub(crate) fn end_run(&mut self) {
        if !self.run.is_empty() {
            let run = std::mem::take(&mut self.run);
            self.add_alternatives(Some(vec![run]));
        }
    }

    /// Adds alternative texts: every match contains at least one of them.
    fn add_alternatives(&mut self, literals: Option<Vec<String>>) {
        let Some(literals) = literals else { return };
        let useful =
            |text: &String| text.len() >= MIN_USEFUL_BYTES && !COMMON.contains(text.as_str());
        if !literals.iter().all(useful) {
            return;
        }
        if shortest_length(&literals) > self.best.as_deref().map_or(0, shortest_length) {
            self.best = Some(literals);
        }
    }

    pub(crate) fn finish(mut self) -> Option<Vec<String>> {
        self.end_run();
        self.best
    }
}

fn shortest_length(literals: &[String]) -> usize {
    literals.iter().map(String::len).min().unwrap_or(0)
}

/// The texts that every match of a `regex` expression contains.
pub(crate) fn literals_of_regex(pattern: &str) -> Option<Vec<String>> {
    let hir = regex_syntax::parse(pattern).ok()?;
    literals_of_hir(&hir)
}

fn literals_of_hir(hir: &Hir) -> Option<Vec<String>> {
    let mut literals = RequiredLiterals::default();
    walk_hir(hir, &mut literals);
    literals.finish()
}

fn walk_hir(hir: &Hir, literals: &mut RequiredLiterals) {
    match hir.kind() {
        HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
            Ok(text) => literals.extend(text),
            Err(_) => literals.end_run(),
        },
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Capture(capture) => walk_hir(&capture.sub, literals),
        HirKind::Concat(parts) => parts.iter().for_each(|part| walk_hir(part, literals)),
        HirKind::Repetition(repetition) => {
            literals.end_run();
            if repetition.min > 0 {
                literals.add_alternatives(literals_of_hir(&repetition.sub));
            }
        }
        HirKind::Alternation(branches) => {
            literals.end_run();
            literals.add_alternatives(merge_branches(branches.iter().map(literals_of_hir)));
        }
        HirKind::Class(_) => literals.end_run(),
    }
}

/// The texts that every match of an expression contains that only `fancy-regex` can compile.
pub(crate) fn literals_of_fancy(pattern: &str) -> Option<Vec<String>> {
    let tree = Expr::parse_tree(pattern).ok()?;
    literals_of_expr(&tree.expr)
}

fn literals_of_expr(expr: &Expr) -> Option<Vec<String>> {
    let mut literals = RequiredLiterals::default();
    walk_expr(expr, &mut literals);
    literals.finish()
}

fn walk_expr(expr: &Expr, literals: &mut RequiredLiterals) {
    match expr {
        Expr::Literal { val, .. } => literals.extend(val),
        Expr::Empty | Expr::Assertion(_) | Expr::LookAround(..) => {}
        Expr::Group(inner) => walk_expr(inner, literals),
        Expr::AtomicGroup(inner) => walk_expr(inner, literals),
        Expr::Concat(parts) => parts.iter().for_each(|part| walk_expr(part, literals)),
        Expr::Repeat { child, lo, .. } => {
            literals.end_run();
            if *lo > 0 {
                literals.add_alternatives(literals_of_expr(child));
            }
        }
        Expr::Alt(branches) => {
            literals.end_run();
            literals.add_alternatives(merge_branches(branches.iter().map(literals_of_expr)));
        }
        _ => literals.end_run(),
    }
}

/// The texts of all branches together. `None` if any branch has none, because a match of that branch may contain none
/// of them.
fn merge_branches(branches: impl Iterator<Item = Option<Vec<String>>>) -> Option<Vec<String>> {
    let sets: Option<Vec<Vec<String>>> = branches.collect();
    sets.map(|sets| sets.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_a_typical_pattern_is_found() {
        let plain = r"^https?://(?:www\.)?example\.com/(?:user|people)/\w+$";
        assert_eq!(literals_of_regex(plain), Some(vec!["example.com/".into()]));
        let fancy = r"^https?:\/\/(?:(?:www|\w{2})\.)?gravatar\.com\/(?!avatar|support)\w+\/?$";
        assert_eq!(literals_of_fancy(fancy), Some(vec!["gravatar.com/".into()]));
    }

    #[test]
    fn alternatives_need_one_literal_each() {
        let both = r"^https://(?:a\.example|b\.example)/";
        assert_eq!(
            literals_of_regex(both),
            Some(vec!["a.example".into(), "b.example".into()])
        );
        assert_eq!(literals_of_regex(r"a\.example|\d+"), None);
        assert_eq!(literals_of_fancy(r"(?!x)(?:a\.example|\d+)"), None);
    }

    #[test]
    fn optional_text_is_not_required() {
        assert_eq!(literals_of_regex(r"(?:optional)?\d"), None);
        assert_eq!(literals_of_regex(r"https?://\w+"), None);
        assert_eq!(literals_of_fancy(r"(?!refused\.example)\w"), None);
        assert_eq!(literals_of_regex(r"(?i)example"), None);
    }
}
