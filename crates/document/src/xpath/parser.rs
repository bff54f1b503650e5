//! Parses tokens into an [`Expression`]. Checks what later steps rely on: known names, numbers of arguments, and
//! limited nesting.

use super::ast::{Axis, Comparison, Expression, Function, Kind, Operator, Path, Start, Step, Test};
use super::error::{Fault, XPathError};
use super::lexer::{Token, Word, tokenize};

pub(crate) const EXPRESSION_BYTES: usize = 4 * 1024;
/// How many levels of brackets, function calls, predicates and chained operators an expression may have.
pub(crate) const NESTING: usize = 64;
/// The limit on the operands of one chain of `or`, `and` or `|`, the steps of one path, the arguments of one call, and
/// the predicates of one step.
const CHAIN: usize = 256;

pub(crate) fn parse(text: &str) -> Result<Expression, XPathError> {
    if text.len() > EXPRESSION_BYTES {
        let fault = Fault::TooLong {
            bytes: text.len(),
            most: EXPRESSION_BYTES,
        };
        return Err(XPathError::new(text, EXPRESSION_BYTES, fault));
    }
    let mut parser = Parser {
        text,
        tokens: tokenize(text)?,
        place: 0,
        depth: 0,
    };
    if parser.tokens.is_empty() {
        return Err(XPathError::new(text, 0, Fault::Empty));
    }
    let expression = parser.parse_expression()?;
    match parser.peek() {
        None => Ok(expression),
        Some(_) => Err(parser.unexpected_token_error()),
    }
}

pub(super) struct Parser<'e> {
    text: &'e str,
    tokens: Vec<Token>,
    pub(super) place: usize,
    depth: usize,
}

pub(super) type Parsed<T> = Result<T, XPathError>;

impl Parser<'_> {
    pub(super) fn parse_expression(&mut self) -> Parsed<Expression> {
        self.enter_level()?;
        let mut operands = vec![self.parse_conjunction()?];
        while self.take("or") {
            operands.push(self.parse_conjunction()?);
            self.check_chain(operands.len())?;
        }
        self.depth -= 1;
        Ok(combine_operands(operands, Expression::Or))
    }

    fn parse_conjunction(&mut self) -> Parsed<Expression> {
        let mut operands = vec![self.parse_equality()?];
        while self.take("and") {
            operands.push(self.parse_equality()?);
            self.check_chain(operands.len())?;
        }
        Ok(combine_operands(operands, Expression::And))
    }

    fn parse_equality(&mut self) -> Parsed<Expression> {
        const OPERATORS: [(&str, Comparison); 2] =
            [("=", Comparison::Equal), ("!=", Comparison::NotEqual)];
        self.parse_chain(OPERATORS, Self::parse_relation, Expression::Compare)
    }

    fn parse_relation(&mut self) -> Parsed<Expression> {
        const OPERATORS: [(&str, Comparison); 4] = [
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        self.parse_chain(OPERATORS, Self::parse_sum, Expression::Compare)
    }

    fn parse_sum(&mut self) -> Parsed<Expression> {
        const OPERATORS: [(&str, Operator); 2] = [("+", Operator::Add), ("-", Operator::Subtract)];
        self.parse_chain(OPERATORS, Self::parse_product, Expression::Arithmetic)
    }

    fn parse_product(&mut self) -> Parsed<Expression> {
        const OPERATORS: [(&str, Operator); 3] = [
            ("*", Operator::Multiply),
            ("div", Operator::Divide),
            ("mod", Operator::Remainder),
        ];
        self.parse_chain(OPERATORS, Self::parse_negation, Expression::Arithmetic)
    }

    /// Parses a chain of operators of the same precedence, such as `1 + 2 - 3`. Each operator is a level of nesting.
    fn parse_chain<O: Copy, const N: usize>(
        &mut self,
        operators: [(&str, O); N],
        operand: fn(&mut Self) -> Parsed<Expression>,
        combine: fn(O, Box<Expression>, Box<Expression>) -> Expression,
    ) -> Parsed<Expression> {
        let depth = self.depth;
        let mut left = operand(self)?;
        while let Some((_, operator)) = operators.iter().find(|(symbol, _)| self.is_next(symbol)) {
            self.enter_level()?;
            self.place += 1;
            let right = operand(self)?;
            left = combine(*operator, Box::new(left), Box::new(right));
        }
        self.depth = depth;
        Ok(left)
    }

    fn parse_negation(&mut self) -> Parsed<Expression> {
        if !self.is_next("-") {
            return self.parse_union();
        }
        self.enter_level()?;
        self.place += 1;
        let negated = Expression::Negate(Box::new(self.parse_negation()?));
        self.depth -= 1;
        Ok(negated)
    }

    fn parse_union(&mut self) -> Parsed<Expression> {
        let start = self.place;
        let mut operands = vec![self.parse_path()?];
        while self.take("|") {
            operands.push(self.parse_path()?);
            self.check_chain(operands.len())?;
        }
        if operands.len() > 1 && operands.iter().any(|operand| operand.kind() != Kind::Nodes) {
            return Err(self.fault_at(start, Fault::NotNodes("each side of `|`")));
        }
        Ok(combine_operands(operands, Expression::Union))
    }

    fn parse_path(&mut self) -> Parsed<Expression> {
        if self.begins_primary() {
            return self.parse_filter_path();
        }
        let mut steps = Vec::new();
        let start = if self.take("//") {
            steps.push(Step::new(Axis::DescendantOrSelf, Test::AnyNode));
            self.parse_steps(&mut steps)?;
            Start::Root
        } else if self.take("/") {
            if self.begins_step() {
                self.parse_steps(&mut steps)?;
            }
            Start::Root
        } else {
            self.parse_steps(&mut steps)?;
            Start::Context
        };
        Ok(Expression::Path(Path { start, steps }))
    }

    /// Parses a bracketed expression, a call, a literal or a number, with the predicates and steps after it.
    fn parse_filter_path(&mut self) -> Parsed<Expression> {
        let place = self.place;
        let primary = self.parse_primary()?;
        let predicates = self.parse_predicates()?;
        let mut steps = Vec::new();
        if self.take("//") {
            steps.push(Step::new(Axis::DescendantOrSelf, Test::AnyNode));
            self.parse_steps(&mut steps)?;
        } else if self.take("/") {
            self.parse_steps(&mut steps)?;
        }
        if predicates.is_empty() && steps.is_empty() {
            return Ok(primary);
        }
        if primary.kind() != Kind::Nodes {
            return Err(self.fault_at(place, Fault::NotNodes("the part before `[` or `/`")));
        }
        Ok(Expression::Path(Path {
            start: Start::Filter(Box::new(primary), predicates),
            steps,
        }))
    }

    fn parse_primary(&mut self) -> Parsed<Expression> {
        let place = self.place;
        match self.next()? {
            Word::Literal(text) => Ok(Expression::Literal(text)),
            Word::Number(number) => Ok(Expression::Number(number)),
            Word::Function(name) => self.parse_call(place, &name),
            Word::Variable(name) => Err(self.fault_at(place, Fault::UnknownVariable(name))),
            _ => {
                let inner = self.parse_expression()?;
                self.expect(")")?;
                Ok(inner)
            }
        }
    }

    fn parse_call(&mut self, place: usize, name: &str) -> Parsed<Expression> {
        let known = Function::ALL
            .iter()
            .find(|function| function.name() == name);
        let function =
            *known.ok_or_else(|| self.fault_at(place, Fault::UnknownFunction(name.to_owned())))?;
        self.expect("(")?;
        let mut arguments = Vec::new();
        if !self.is_next(")") {
            arguments.push(self.parse_expression()?);
            while self.take(",") {
                arguments.push(self.parse_expression()?);
                self.check_chain(arguments.len())?;
            }
        }
        self.expect(")")?;
        if !function.arguments().contains(&arguments.len()) {
            return Err(self.fault_at(place, Fault::Arguments(function, arguments.len())));
        }
        let wants_nodes = matches!(
            function,
            Function::Count
                | Function::Sum
                | Function::Name
                | Function::LocalName
                | Function::NamespaceUri
        );
        if wants_nodes
            && arguments
                .iter()
                .any(|argument| argument.kind() != Kind::Nodes)
        {
            return Err(self.fault_at(place, Fault::NotNodes("the argument")));
        }
        Ok(Expression::Call(function, arguments))
    }

    fn begins_primary(&self) -> bool {
        match self.peek() {
            Some(Word::Symbol(symbol)) => *symbol == "(",
            Some(word) => matches!(
                word,
                Word::Literal(_) | Word::Number(_) | Word::Function(_) | Word::Variable(_)
            ),
            None => false,
        }
    }

    fn enter_level(&mut self) -> Parsed<()> {
        self.depth += 1;
        if self.depth > NESTING {
            return Err(self.fault_at(self.place, Fault::TooDeep { most: NESTING }));
        }
        Ok(())
    }

    pub(super) fn check_chain(&self, length: usize) -> Parsed<()> {
        if length > CHAIN {
            return Err(self.fault_at(self.place, Fault::TooMany { most: CHAIN }));
        }
        Ok(())
    }

    pub(super) fn peek(&self) -> Option<&Word> {
        self.tokens.get(self.place).map(|token| &token.word)
    }

    pub(super) fn next(&mut self) -> Parsed<Word> {
        match self.tokens.get(self.place) {
            Some(token) => {
                self.place += 1;
                Ok(token.word.clone())
            }
            None => Err(self.unexpected_token_error()),
        }
    }

    pub(super) fn is_next(&self, symbol: &str) -> bool {
        matches!(self.peek(), Some(Word::Symbol(next)) if *next == symbol)
    }

    pub(super) fn take(&mut self, symbol: &str) -> bool {
        let taken = self.is_next(symbol);
        self.place += usize::from(taken);
        taken
    }

    pub(super) fn expect(&mut self, symbol: &str) -> Parsed<()> {
        if self.take(symbol) {
            Ok(())
        } else {
            Err(self.unexpected_token_error())
        }
    }

    /// The error for an unexpected token.
    pub(super) fn unexpected_token_error(&self) -> XPathError {
        match self.tokens.get(self.place) {
            None => XPathError::new(self.text, self.text.len(), Fault::UnexpectedEnd),
            Some(token) => {
                let end = self
                    .tokens
                    .get(self.place + 1)
                    .map_or(self.text.len(), |t| t.offset);
                let found = self.text[token.offset..end].trim_end().to_owned();
                XPathError::new(self.text, token.offset, Fault::Unexpected(found))
            }
        }
    }

    pub(super) fn fault_at(&self, place: usize, fault: Fault) -> XPathError {
        let offset = self
            .tokens
            .get(place)
            .map_or(self.text.len(), |token| token.offset);
        XPathError::new(self.text, offset, fault)
    }
}

fn combine_operands(
    mut operands: Vec<Expression>,
    combine: fn(Vec<Expression>) -> Expression,
) -> Expression {
    if operands.len() == 1 {
        operands.swap_remove(0)
    } else {
        combine(operands)
    }
}
