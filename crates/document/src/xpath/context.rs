//! Finds out whether an expression depends on the node where it is evaluated.

use super::ast::{Expression, Path, Start};
use super::parser::parse;

/// Whether `expression` gives the same result wherever it is evaluated, because it searches the whole page: `//td[1]`
/// or `string(//h1)`, but not `.//td[1]` or `concat(@id, //h1)`. False if the expression is invalid.
pub fn ignores_context(expression: &str) -> bool {
    let mut parts = Parts::default();
    if let Ok(parsed) = parse(expression) {
        parts.visit(&parsed);
    }
    parts.from_root && !parts.from_context
}

#[derive(Default)]
struct Parts {
    from_root: bool,
    from_context: bool,
}

impl Parts {
    /// Visits an expression, but not its predicates, because they are evaluated at nodes that the expression itself
    /// finds.
    fn visit(&mut self, expression: &Expression) {
        match expression {
            Expression::Or(parts) | Expression::And(parts) | Expression::Union(parts) => {
                parts.iter().for_each(|part| self.visit(part));
            }
            Expression::Compare(_, one, other) | Expression::Arithmetic(_, one, other) => {
                self.visit(one);
                self.visit(other);
            }
            Expression::Negate(of) => self.visit(of),
            Expression::Path(Path { start, .. }) => match start {
                Start::Context => self.from_context = true,
                Start::Root => self.from_root = true,
                Start::Filter(of, _) => self.visit(of),
            },
            // A function without arguments refers to the context node.
            Expression::Call(_, arguments) if arguments.is_empty() => self.from_context = true,
            Expression::Call(_, arguments) => {
                arguments.iter().for_each(|argument| self.visit(argument));
            }
            Expression::Literal(_) | Expression::Number(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_from_the_root_ignore_the_context() {
        for (expression, ignores) in [
            ("//td[1]", true),
            ("/html/body//td", true),
            ("(//td)[2]/@title", true),
            ("string(//h1)", true),
            ("normalize-space(//h1[. = 'x'])", true),
            ("//a | //b", true),
            ("//td[.//b]", true),
            ("count(//td) + 1", true),
            (".//td[1]", false),
            ("td[1]", false),
            ("./td | .//th", false),
            ("@href", false),
            (".", false),
            ("..//a", false),
            ("ancestor::table//th", false),
            ("following-sibling::dd[1]", false),
            ("string(.)", false),
            ("normalize-space()", false),
            ("concat(@id, //h1)", false),
            (".//a | //b", false),
            ("td[//h1]", false),
            ("'text'", false),
            ("//td[", false),
        ] {
            assert_eq!(ignores_context(expression), ignores, "{expression}");
        }
    }
}
