//! Parses the steps of paths: axes, node tests, predicates.

use super::ast::{Axis, Expression, Step, Test};
use super::error::Fault;
use super::lexer::Word;
use super::parser::{Parsed, Parser};

/// Prefixes that name elements and attributes of common feeds, of catalogues and of SVG. The prefix is part of the
/// name, whatever namespaces a page declares.
const KNOWN_PREFIXES: &[&str] = &[
    "xlink",
    "xml",
    "xmlns",
    "xsi",
    "dc",
    "dcterms",
    "content",
    "media",
    "atom",
    "itunes",
    "geo",
    "georss",
    "image",
    "video",
    "news",
    "og",
    "slash",
    "wfw",
    "sy",
    "thr",
    "g",
    "podcast",
    "googleplay",
    "feedburner",
    "rdf",
    "rdfs",
    "skos",
    "foaf",
    "cc",
    "gml",
    "app",
    "gd",
    "yt",
    "opensearch",
    "cap",
    "oai_dc",
    "marc",
    "mods",
    "mets",
    "prism",
    "ev",
    "xcal",
    "soap",
];

impl Parser<'_> {
    pub(super) fn parse_steps(&mut self, steps: &mut Vec<Step>) -> Parsed<()> {
        loop {
            steps.push(self.parse_step()?);
            self.check_chain(steps.len())?;
            if self.take("//") {
                steps.push(Step::new(Axis::DescendantOrSelf, Test::AnyNode));
            } else if !self.take("/") {
                return Ok(());
            }
        }
    }

    fn parse_step(&mut self) -> Parsed<Step> {
        if self.take(".") {
            return Ok(Step::new(Axis::Myself, Test::AnyNode));
        }
        if self.take("..") {
            return Ok(Step::new(Axis::Parent, Test::AnyNode));
        }
        let axis = self.parse_axis()?;
        let test = self.parse_node_test()?;
        let predicates = self.parse_predicates()?;
        Ok(Step {
            axis,
            test,
            predicates,
        })
    }

    fn parse_axis(&mut self) -> Parsed<Axis> {
        if self.take("@") {
            return Ok(Axis::Attribute);
        }
        let Some(Word::Axis(name)) = self.peek() else {
            return Ok(Axis::Child);
        };
        let known = Axis::NAMES.iter().find(|(known, _)| known == name);
        let Some((_, axis)) = known else {
            let fault = Fault::UnknownAxis(name.clone());
            return Err(self.fault_at(self.place, fault));
        };
        self.place += 1;
        self.expect("::")?;
        Ok(*axis)
    }

    fn parse_node_test(&mut self) -> Parsed<Test> {
        let place = self.place;
        match self.next()? {
            Word::Name(name) if name == "*" => Ok(Test::AnyName),
            Word::Name(name) => self.parse_name_test(place, name),
            Word::NodeType(node_type) => self.parse_type_test(&node_type),
            _ => {
                self.place = place;
                Err(self.unexpected_token_error())
            }
        }
    }

    fn parse_name_test(&mut self, place: usize, name: String) -> Parsed<Test> {
        match name.split_once(':') {
            Some((prefix, local)) if local == "*" || !KNOWN_PREFIXES.contains(&prefix) => {
                Err(self.fault_at(place, Fault::UnknownPrefix(prefix.to_owned())))
            }
            _ => Ok(Test::Name(name)),
        }
    }

    fn parse_type_test(&mut self, node_type: &str) -> Parsed<Test> {
        self.expect("(")?;
        let mut target = None;
        if node_type == "processing-instruction"
            && let Some(Word::Literal(literal)) = self.peek()
        {
            target = Some(literal.clone());
            self.place += 1;
        }
        self.expect(")")?;
        Ok(match node_type {
            "text" => Test::Text,
            "comment" => Test::Comment,
            "node" => Test::AnyNode,
            _ => Test::Instruction(target),
        })
    }

    pub(super) fn parse_predicates(&mut self) -> Parsed<Vec<Expression>> {
        let mut predicates = Vec::new();
        while self.take("[") {
            predicates.push(self.parse_expression()?);
            self.expect("]")?;
            self.check_chain(predicates.len())?;
        }
        Ok(predicates)
    }

    pub(super) fn begins_step(&self) -> bool {
        match self.peek() {
            Some(Word::Symbol(symbol)) => matches!(*symbol, "." | ".." | "@"),
            Some(word) => matches!(word, Word::Name(_) | Word::NodeType(_) | Word::Axis(_)),
            None => false,
        }
    }
}
