//! Writes formulas on one line: `1/2`, `x^2`, `(a+b)`.

use crate::formats::Trouble;
use crate::formats::xml::Attributes;
use crate::text::TextWriter;

/// The position within a formula while it is read.
#[derive(Default)]
pub(super) struct Formula {
    /// How many formulas are around this position. Elements outside formulas are ignored.
    depth: usize,
    /// The brackets around this position. Each element with operands has an entry.
    brackets: Vec<Option<Brackets>>,
    /// The sign to write before the next text, such as `/` or `^`.
    sign: Option<&'static str>,
    /// The sign of the current sum or integral.
    operator: Option<String>,
}

struct Brackets {
    begin: String,
    between: String,
    end: String,
    has_begun: bool,
}

/// Elements with operands that are not brackets themselves.
const WITH_OPERANDS: [&str; 17] = [
    "acc",
    "bar",
    "borderBox",
    "box",
    "eqArr",
    "func",
    "groupChr",
    "limLow",
    "limUpp",
    "m",
    "nary",
    "phant",
    "rad",
    "sPre",
    "sSub",
    "sSubSup",
    "sSup",
];

impl Formula {
    pub(super) fn begin_element(
        &mut self,
        name: &str,
        attributes: &Attributes<'_>,
        writer: &mut TextWriter,
    ) -> Result<(), Trouble> {
        let value = || attributes.get("val").unwrap_or_default();
        match name {
            "oMath" => self.depth += 1,
            _ if self.depth == 0 => {}
            "f" => writer.push_space(),
            "den" => self.sign = Some("/"),
            "sup" => self.sign = Some("^"),
            "sub" => self.sign = Some("_"),
            "rad" => {
                self.brackets.push(None);
                self.write_sign(writer)?;
                writer.push("\u{221a}")?;
            }
            "naryPr" => self.operator = Some("\u{222b}".to_owned()),
            "chr" if self.operator.is_some() => self.operator = Some(value()),
            "d" => {
                self.write_sign(writer)?;
                self.brackets.push(Some(Brackets {
                    begin: "(".to_owned(),
                    between: "|".to_owned(),
                    end: ")".to_owned(),
                    has_begun: false,
                }));
            }
            "begChr" | "sepChr" | "endChr" => {
                if let Some(Some(brackets)) = self.brackets.last_mut() {
                    match name {
                        "begChr" => brackets.begin = value(),
                        "sepChr" => brackets.between = value(),
                        _ => brackets.end = value(),
                    }
                }
            }
            "e" => {
                if let Some(Some(brackets)) = self.brackets.last_mut() {
                    let is_first = !std::mem::replace(&mut brackets.has_begun, true);
                    writer.push(if is_first {
                        &brackets.begin
                    } else {
                        &brackets.between
                    })?;
                }
            }
            _ if WITH_OPERANDS.contains(&name) => self.brackets.push(None),
            _ => {}
        }
        Ok(())
    }

    pub(super) fn end_element(
        &mut self,
        name: &str,
        writer: &mut TextWriter,
    ) -> Result<(), Trouble> {
        match name {
            _ if self.depth == 0 => {}
            "oMath" => {
                self.depth -= 1;
                if self.depth == 0 {
                    *self = Formula::default();
                }
            }
            "f" => writer.push_space(),
            // An operand that is empty gets no sign.
            "den" | "sup" | "sub" => self.sign = None,
            "naryPr" => {
                if let Some(operator) = self.operator.take() {
                    writer.push(&operator)?;
                }
            }
            "d" => {
                if let Some(Some(brackets)) = self.brackets.pop() {
                    writer.push(&brackets.end)?;
                }
            }
            _ if WITH_OPERANDS.contains(&name) => {
                self.brackets.pop();
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn write_sign(&mut self, writer: &mut TextWriter) -> Result<(), Trouble> {
        match self.sign.take() {
            Some(sign) => writer.push(sign),
            None => Ok(()),
        }
    }
}
