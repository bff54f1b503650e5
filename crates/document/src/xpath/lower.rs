//! Compiles an [`Expression`] into a [`Plan`]: decides which parts are evaluated on the tree directly, and which by
//! `sxd-xpath`.

use super::ast::{
    Axis, Comparison, Expression, Function, Kind, Path, Start, Step, Test as WrittenTest,
};
use super::error::{Fault, XPathError};
use super::idioms::{attribute_test, class_idiom, comparison_test, lone_attribute, text_test};
use super::plan::{
    self, Names, NodeTest, Nodes, Number, Plan, Predicate, Relation, Side, StepAxis, Test, Text,
};
use super::scalar::{self, Scalar};

pub(crate) struct Lowering<'n> {
    source: &'n str,
    names: &'n mut Names,
}

type Lowered<T> = Result<T, XPathError>;

impl<'n> Lowering<'n> {
    pub(crate) fn new(source: &'n str, names: &'n mut Names) -> Self {
        Lowering { source, names }
    }

    pub(crate) fn lower_expression(&mut self, expression: &Expression) -> Lowered<Plan> {
        Ok(match expression.kind() {
            Kind::Nodes => Plan::Nodes(self.lower_nodes(expression)?),
            Kind::Boolean => Plan::Boolean(self.lower_test(expression)?),
            Kind::Number => Plan::Number(self.lower_number(expression)?),
            Kind::Text => Plan::Text(self.lower_text(expression)?),
        })
    }

    pub(crate) fn fault(&self, fault: Fault) -> XPathError {
        XPathError::new(self.source, 0, fault)
    }

    pub(crate) fn lower_nodes(&mut self, expression: &Expression) -> Lowered<Nodes> {
        match expression {
            Expression::Union(operands) => {
                let sets = operands.iter().map(|operand| self.lower_nodes(operand));
                Ok(Nodes::Union(sets.collect::<Lowered<_>>()?))
            }
            Expression::Path(path) => self.lower_path(path).map(Nodes::Path),
            Expression::Call(Function::Id, arguments) if arguments[0].kind() == Kind::Nodes => {
                Ok(Nodes::Ids(Box::new(self.lower_nodes(&arguments[0])?)))
            }
            Expression::Call(Function::Id, arguments) => {
                Ok(Nodes::Id(Box::new(self.lower_text(&arguments[0])?)))
            }
            _ => Err(self.fault(Fault::NotNodes("the expression"))),
        }
    }

    /// Compiles an expression into a condition.
    pub(crate) fn lower_test(&mut self, expression: &Expression) -> Lowered<Test> {
        if expression.kind() == Kind::Nodes {
            let nodes = self.lower_nodes(expression)?;
            return Ok(match lone_attribute(&nodes) {
                Some(name) => attribute_test(name, Relation::Present, String::new()),
                None => Test::Exists(nodes),
            });
        }
        if expression.kind() == Kind::Text {
            return Ok(Test::IsText(self.lower_text(expression)?));
        }
        match expression {
            Expression::Or(operands) => Ok(Test::Or(self.lower_tests(operands)?)),
            Expression::And(operands) => Ok(Test::And(self.lower_tests(operands)?)),
            Expression::Compare(operator, left, right)
                if left.kind() == Kind::Nodes || right.kind() == Kind::Nodes =>
            {
                Ok(comparison_test(
                    *operator,
                    self.lower_side(left)?,
                    self.lower_side(right)?,
                ))
            }
            Expression::Compare(
                operator @ (Comparison::Equal | Comparison::NotEqual),
                left,
                right,
            ) if left.kind() == Kind::Text && right.kind() == Kind::Text => {
                let same = Test::SameText(self.lower_text(left)?, self.lower_text(right)?);
                Ok(match operator {
                    Comparison::Equal => same,
                    _ => Test::Not(Box::new(same)),
                })
            }
            Expression::Call(Function::Not, arguments) => {
                Ok(Test::Not(Box::new(self.lower_test(&arguments[0])?)))
            }
            Expression::Call(Function::Boolean, arguments) => self.lower_test(&arguments[0]),
            Expression::Call(Function::True, _) => Ok(Test::Always(true)),
            Expression::Call(Function::False, _) => Ok(Test::Always(false)),
            Expression::Call(Function::Lang, arguments) => {
                Ok(Test::Lang(self.lower_text(&arguments[0])?))
            }
            Expression::Call(Function::Contains, arguments) => self.lower_contains(arguments),
            Expression::Call(Function::StartsWith, arguments) => {
                let (text, part) = (
                    self.lower_text(&arguments[0])?,
                    self.lower_text(&arguments[1])?,
                );
                Ok(text_test(Relation::StartsWith, text, part))
            }
            _ => Ok(Test::Scalar(self.lower_scalar(expression, Kind::Boolean)?)),
        }
    }

    /// Compiles `contains`, including the usual test for a class: `contains(concat(' ', normalize-space(@class), ' '),
    /// ' name ')`.
    fn lower_contains(&mut self, arguments: &[Expression]) -> Lowered<Test> {
        if let Some((attribute, word)) = class_idiom(&arguments[0], &arguments[1]) {
            let name = self.names.get_or_insert(attribute);
            return Ok(attribute_test(name, Relation::HasWord, word.to_owned()));
        }
        let (text, part) = (
            self.lower_text(&arguments[0])?,
            self.lower_text(&arguments[1])?,
        );
        Ok(text_test(Relation::Contains, text, part))
    }

    fn lower_tests(&mut self, operands: &[Expression]) -> Lowered<Vec<Test>> {
        operands
            .iter()
            .map(|operand| self.lower_test(operand))
            .collect()
    }

    fn lower_side(&mut self, expression: &Expression) -> Lowered<Side> {
        Ok(match expression.kind() {
            Kind::Nodes => Side::Nodes(self.lower_nodes(expression)?),
            Kind::Boolean => Side::Boolean(Box::new(self.lower_test(expression)?)),
            Kind::Number => Side::Number(self.lower_number(expression)?),
            Kind::Text => Side::Text(self.lower_text(expression)?),
        })
    }

    /// Compiles an expression into one that yields a string.
    pub(crate) fn lower_text(&mut self, expression: &Expression) -> Lowered<Text> {
        if expression.kind() == Kind::Nodes {
            return Ok(Text::Of(self.lower_nodes(expression)?));
        }
        match expression {
            Expression::Literal(text) => Ok(Text::Literal(text.clone())),
            Expression::Call(Function::String, arguments) => self.lower_text_or_context(arguments),
            Expression::Call(Function::NormalizeSpace, arguments) => Ok(Text::Normalized(
                Box::new(self.lower_text_or_context(arguments)?),
            )),
            Expression::Call(
                function @ (Function::Name | Function::LocalName | Function::NamespaceUri),
                arguments,
            ) => self.lower_name_text(*function, arguments),
            _ => Ok(Text::Scalar(self.lower_scalar(expression, Kind::Text)?)),
        }
    }

    fn lower_text_or_context(&mut self, arguments: &[Expression]) -> Lowered<Text> {
        match arguments.first() {
            Some(argument) => self.lower_text(argument),
            None => Ok(Text::Of(context_node())),
        }
    }

    pub(crate) fn lower_name_text(
        &mut self,
        function: Function,
        arguments: &[Expression],
    ) -> Lowered<Text> {
        let nodes = match arguments.first() {
            Some(argument) => self.lower_nodes(argument)?,
            None => context_node(),
        };
        Ok(match function {
            Function::NamespaceUri => Text::Literal(String::new()),
            _ => Text::Name {
                nodes,
                local: function == Function::LocalName,
            },
        })
    }

    fn lower_number(&mut self, expression: &Expression) -> Lowered<Number> {
        match expression {
            Expression::Number(number) => Ok(Number::Literal(*number)),
            Expression::Call(function @ (Function::Count | Function::Sum), arguments) => {
                self.lower_count_or_sum(*function, &arguments[0])
            }
            _ => Ok(Number::Scalar(self.lower_scalar(expression, Kind::Number)?)),
        }
    }

    pub(crate) fn lower_count_or_sum(
        &mut self,
        function: Function,
        argument: &Expression,
    ) -> Lowered<Number> {
        let nodes = self.lower_nodes(argument)?;
        Ok(if function == Function::Count {
            Number::Count(nodes)
        } else {
            Number::Sum(nodes)
        })
    }

    fn lower_scalar(&mut self, expression: &Expression, wanted: Kind) -> Lowered<Scalar> {
        scalar::lower_to_scalar(expression, wanted, self)
    }

    fn lower_path(&mut self, path: &Path) -> Lowered<plan::Path> {
        let start = match &path.start {
            Start::Context => plan::Start::Context,
            Start::Root => plan::Start::Root,
            Start::Filter(inner, predicates) => {
                let nodes = Box::new(self.lower_nodes(inner)?);
                plan::Start::Filter(nodes, self.lower_predicates(predicates)?)
            }
        };
        let mut steps = Vec::with_capacity(path.steps.len());
        let mut written = path.steps.iter().peekable();
        while let Some(step) = written.next() {
            let next = written.peek().copied();
            if let Some(way) = next.and_then(|next| join_steps(step, next)) {
                let next = written.next().expect("peeked");
                steps.push(self.lower_step(way, next)?);
            } else if !is_self(step) {
                steps.push(self.lower_step(StepAxis::Axis(step.axis), step)?);
            }
        }
        Ok(plan::Path { start, steps })
    }

    fn lower_step(&mut self, way: StepAxis, step: &Step) -> Lowered<plan::Step> {
        let predicates = self.lower_predicates(&step.predicates)?;
        let test = match &step.test {
            WrittenTest::Name(name) => NodeTest::Name(self.names.get_or_insert(name)),
            WrittenTest::AnyName => NodeTest::AnyName,
            WrittenTest::AnyNode => NodeTest::AnyNode,
            WrittenTest::Text => NodeTest::Text,
            WrittenTest::Comment => NodeTest::Comment,
            WrittenTest::Instruction(target) => NodeTest::Instruction(target.clone()),
        };
        // If no predicate depends on positions, the children of all descendants are simply all descendants.
        let counts = predicates.iter().any(Predicate::is_positional);
        let axis = match way {
            StepAxis::EachChild if !counts => StepAxis::Axis(Axis::Descendant),
            way => way,
        };
        Ok(plan::Step {
            axis,
            test,
            predicates,
        })
    }

    fn lower_predicates(&mut self, written: &[Expression]) -> Lowered<Vec<Predicate>> {
        written
            .iter()
            .map(|predicate| self.lower_predicate(predicate))
            .collect()
    }

    fn lower_predicate(&mut self, written: &Expression) -> Lowered<Predicate> {
        match written {
            Expression::Number(number) => Ok(position_predicate(*number)),
            Expression::Call(Function::Last, _) => Ok(Predicate::Last),
            _ if written.kind() == Kind::Number => {
                Ok(Predicate::Number(self.lower_number(written)?))
            }
            _ => {
                let test = self.lower_test(written)?;
                Ok(if written.depends_on_position() {
                    Predicate::HoldsAtPlace(test)
                } else {
                    Predicate::Holds(test)
                })
            }
        }
    }
}

fn position_predicate(number: f64) -> Predicate {
    if number >= 1.0 && number.fract() == 0.0 && number <= f64::from(u32::MAX) {
        Predicate::Place(number as usize)
    } else {
        Predicate::Never
    }
}

fn is_self(step: &Step) -> bool {
    step.axis == Axis::Myself && step.test == WrittenTest::AnyNode && step.predicates.is_empty()
}

/// Joins `//` and the next step to a single step, if possible.
fn join_steps(step: &Step, next: &Step) -> Option<StepAxis> {
    let double_slash = step.axis == Axis::DescendantOrSelf
        && step.test == WrittenTest::AnyNode
        && step.predicates.is_empty();
    match next.axis {
        Axis::Child if double_slash => Some(StepAxis::EachChild),
        Axis::Attribute if double_slash && next.predicates.is_empty() => {
            Some(StepAxis::EachAttribute)
        }
        _ => None,
    }
}

pub(crate) fn context_node() -> Nodes {
    Nodes::Path(plan::Path {
        start: plan::Start::Context,
        steps: Vec::new(),
    })
}
