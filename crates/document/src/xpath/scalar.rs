//! Compiles the parts of an expression that `sxd-xpath` ("sxd") evaluates: functions, arithmetic, conversions, and
//! comparisons of single values.
//!
//! sxd does not get the whole expression, for three reasons. It has no time limit, and a path can take hours. It sorts
//! the whole document whenever it needs the first of several nodes. And it does not follow the XPath standard
//! everywhere (`!=` and `<` on node-sets, `number('+5')`).
//!
//! So sxd gets only paths that are evaluated quickly: a single step to the node itself, its parent, an attribute or its
//! children. Any other node-set is found in the tree first, and passed in a variable as the string, number or boolean
//! that the expression needs.

use sxd_xpath::{Factory, XPath as SxdXPath};

use super::ast::{
    Axis, Comparison, Expression, Function, Kind, Operator, Path, Start, Step, Test as NodeTest,
};
use super::error::{Fault, XPathError};
use super::lower::Lowering;
use super::plan::{Number, Test, Text};

/// An expression that `sxd-xpath` evaluates, with the values of its variables.
pub(crate) struct Scalar {
    pub(crate) expression: SxdXPath,
    pub(crate) variables: Vec<Variable>,
    /// Whether the expression uses the context node. If so, the page must be copied into an sxd document.
    pub(crate) needs_node: bool,
}

pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) value: Operand,
}

pub(crate) enum Operand {
    Position,
    Last,
    Text(Text),
    Number(Number),
    Test(Test),
}

/// Compiles an expression into a [`Scalar`] that yields a value of the type `wanted`.
pub(crate) fn lower_to_scalar(
    expression: &Expression,
    wanted: Kind,
    lowering: &mut Lowering<'_>,
) -> Result<Scalar, XPathError> {
    let mut writer = Writer {
        lowering,
        text: String::new(),
        variables: Vec::new(),
        needs_node: false,
    };
    writer.write(expression, wanted)?;
    let refused = |message: String| writer.lowering.fault(Fault::Engine(message));
    let expression = match Factory::new().build(&writer.text) {
        Ok(Some(expression)) => expression,
        Ok(None) => return Err(refused("nothing to evaluate".to_owned())),
        Err(error) => return Err(refused(error.to_string())),
    };
    let Writer {
        variables,
        needs_node,
        ..
    } = writer;
    Ok(Scalar {
        expression,
        variables,
        needs_node,
    })
}

/// Writes the text of an expression for sxd.
struct Writer<'l, 'n> {
    lowering: &'l mut Lowering<'n>,
    text: String,
    variables: Vec<Variable>,
    needs_node: bool,
}

type WriteResult = Result<(), XPathError>;

impl Writer<'_, '_> {
    /// Writes `expression` in such a way that sxd gets a value of the kind `wanted`. Where sxd's implicit conversions
    /// differ from the XPath standard, explicit ones are written.
    fn write(&mut self, expression: &Expression, wanted: Kind) -> WriteResult {
        match (expression.kind(), wanted) {
            (Kind::Nodes, _) => return self.write_nodes(expression, wanted),
            (Kind::Number | Kind::Boolean, Kind::Text) => self.text.push_str("string("),
            (Kind::Text, Kind::Number) => self.text.push_str("number("),
            (Kind::Text | Kind::Number, Kind::Boolean) => self.text.push_str("boolean("),
            _ => self.text.push('('),
        }
        self.write_value(expression)?;
        self.text.push(')');
        Ok(())
    }

    fn write_value(&mut self, expression: &Expression) -> WriteResult {
        match expression {
            Expression::Or(operands) => self.write_joined(operands, " or "),
            Expression::And(operands) => self.write_joined(operands, " and "),
            Expression::Compare(comparison, left, right) => {
                self.write_comparison(expression, *comparison, left, right)
            }
            Expression::Arithmetic(operator, left, right) => {
                self.write(left, Kind::Number)?;
                self.text.push_str(match operator {
                    Operator::Add => " + ",
                    Operator::Subtract => " - ",
                    Operator::Multiply => " * ",
                    Operator::Divide => " div ",
                    Operator::Remainder => " mod ",
                });
                self.write(right, Kind::Number)
            }
            Expression::Negate(inner) => {
                self.text.push('-');
                self.write(inner, Kind::Number)
            }
            Expression::Literal(text) => {
                let quote = if text.contains('"') { '\'' } else { '"' };
                self.text.extend([quote]);
                self.text.push_str(text);
                self.text.extend([quote]);
                Ok(())
            }
            Expression::Number(number) if number.is_finite() => {
                self.text.push_str(&number.to_string());
                Ok(())
            }
            Expression::Number(_) => {
                self.text.push_str("(1 div 0)");
                Ok(())
            }
            Expression::Call(function, arguments) => self.write_call(*function, arguments),
            Expression::Union(_) | Expression::Path(_) => {
                unreachable!("sets of nodes are written by write_nodes")
            }
        }
    }

    fn write_joined(&mut self, operands: &[Expression], operator: &str) -> WriteResult {
        for (place, operand) in operands.iter().enumerate() {
            if place > 0 {
                self.text.push_str(operator);
            }
            self.write(operand, Kind::Boolean)?;
        }
        Ok(())
    }

    /// Writes a comparison. If an operand is a node-set, the comparison is evaluated on the tree. Otherwise both
    /// operands are converted to the type that decides (section 3.4).
    fn write_comparison(
        &mut self,
        whole: &Expression,
        comparison: Comparison,
        left: &Expression,
        right: &Expression,
    ) -> WriteResult {
        let kinds = [left.kind(), right.kind()];
        if kinds.contains(&Kind::Nodes) {
            let test = self.lowering.lower_test(whole)?;
            return self.write_variable(Operand::Test(test));
        }
        let equality = matches!(comparison, Comparison::Equal | Comparison::NotEqual);
        let decisive = if !equality || kinds.contains(&Kind::Number) {
            Kind::Number
        } else {
            Kind::Text
        };
        let decisive = if equality && kinds.contains(&Kind::Boolean) {
            Kind::Boolean
        } else {
            decisive
        };
        self.write(left, decisive)?;
        self.text.push_str(match comparison {
            Comparison::Equal => " = ",
            Comparison::NotEqual => " != ",
            Comparison::Less => " < ",
            Comparison::LessOrEqual => " <= ",
            Comparison::Greater => " > ",
            Comparison::GreaterOrEqual => " >= ",
        });
        self.write(right, decisive)
    }

    fn write_call(&mut self, function: Function, arguments: &[Expression]) -> WriteResult {
        let wanted = match function {
            Function::Position => return self.write_variable(Operand::Position),
            Function::Last => return self.write_variable(Operand::Last),
            Function::Name | Function::LocalName | Function::NamespaceUri => {
                let text = self.lowering.lower_name_text(function, arguments)?;
                return self.write_variable(Operand::Text(text));
            }
            Function::Count | Function::Sum => {
                let number = self.lowering.lower_count_or_sum(function, &arguments[0])?;
                return self.write_variable(Operand::Number(number));
            }
            Function::Lang => {
                let text = self.lowering.lower_text(&arguments[0])?;
                return self.write_variable(Operand::Test(Test::Lang(text)));
            }
            Function::Boolean | Function::Not => [Kind::Boolean; 3],
            Function::Number | Function::Floor | Function::Ceiling | Function::Round => {
                [Kind::Number; 3]
            }
            Function::Substring => [Kind::Text, Kind::Number, Kind::Number],
            _ => [Kind::Text; 3],
        };
        self.text.push_str(function.name());
        self.text.push('(');
        for (place, argument) in arguments.iter().enumerate() {
            if place > 0 {
                self.text.push_str(", ");
            }
            self.write(argument, wanted[place.min(2)])?;
        }
        if arguments.is_empty() && !matches!(function, Function::True | Function::False) {
            self.needs_node = true;
            self.text.push_str("string(self::node())");
        }
        self.text.push(')');
        Ok(())
    }

    fn write_nodes(&mut self, expression: &Expression, wanted: Kind) -> WriteResult {
        if let Some(step) = single_step(expression) {
            self.needs_node = true;
            let first_only = if step.axis == Axis::Child { "[1]" } else { "" };
            let path = format!("{}{first_only}", step_text(step));
            self.text.push_str(&match wanted {
                Kind::Number => format!("number({path})"),
                Kind::Text => format!("string({path})"),
                Kind::Boolean | Kind::Nodes => format!("boolean({path})"),
            });
            return Ok(());
        }
        let nodes = self.lowering.lower_nodes(expression)?;
        match wanted {
            Kind::Boolean | Kind::Nodes => self.write_variable(Operand::Test(Test::Exists(nodes))),
            Kind::Text => self.write_variable(Operand::Text(Text::Of(nodes))),
            Kind::Number => {
                self.text.push_str("number(");
                self.write_variable(Operand::Text(Text::Of(nodes)))?;
                self.text.push(')');
                Ok(())
            }
        }
    }

    fn write_variable(&mut self, value: Operand) -> WriteResult {
        let name = format!("v{}", self.variables.len());
        self.text.push('$');
        self.text.push_str(&name);
        self.variables.push(Variable { name, value });
        Ok(())
    }
}

/// Returns the only step of a path if sxd evaluates it quickly on every page: a step to the node itself, its parent,
/// one attribute, or its children.
fn single_step(expression: &Expression) -> Option<&Step> {
    let Expression::Path(Path {
        start: Start::Context,
        steps,
    }) = expression
    else {
        return None;
    };
    let [step] = steps.as_slice() else {
        return None;
    };
    let plain_name = match &step.test {
        NodeTest::Name(name) => !name.contains(':'),
        NodeTest::Instruction(_) => false,
        NodeTest::AnyName => step.axis == Axis::Child,
        _ => true,
    };
    let near = matches!(
        step.axis,
        Axis::Myself | Axis::Parent | Axis::Attribute | Axis::Child
    );
    (near && plain_name && step.predicates.is_empty()).then_some(step)
}

fn step_text(step: &Step) -> String {
    let axis = match step.axis {
        Axis::Parent => "parent",
        Axis::Attribute => "attribute",
        Axis::Child => "child",
        _ => "self",
    };
    let test = match &step.test {
        NodeTest::Name(name) => name,
        NodeTest::AnyName => "*",
        NodeTest::Text => "text()",
        NodeTest::Comment => "comment()",
        _ => "node()",
    };
    format!("{axis}::{test}")
}
