//! Finds the language of an element, for `lang()` of XPath and `:lang()` of CSS.

use html5ever::{LocalName, local_name};

use super::evaluate::{Evaluated, Evaluator};
use crate::tree::NodeId;

impl<'d> Evaluator<'d> {
    /// Evaluates `lang()`. The nearest `lang` or `xml:lang`, at the element or around it, decides.
    pub(super) fn is_in_language(&self, node: NodeId, wanted: &str) -> Evaluated<bool> {
        let Some(language) = self.declared_language(node)? else {
            return Ok(false);
        };
        let head = language.get(..wanted.len());
        let matches = head.is_some_and(|head| head.eq_ignore_ascii_case(wanted));
        Ok(matches && matches!(language.as_bytes().get(wanted.len()), None | Some(b'-')))
    }

    /// Evaluates `:lang()`. In addition to what `lang()` does, a `meta` element may declare the language of an HTML
    /// page. An element without a known language matches only the empty range.
    pub(super) fn is_in_a_range(&self, node: NodeId, ranges: &[String]) -> Evaluated<bool> {
        let language = match self.declared_language(node)? {
            Some(language) => language,
            None => self.language_of_page()?.unwrap_or_default(),
        };
        Ok(ranges.iter().any(|range| is_in_range(language, range)))
    }

    /// The value of the nearest `lang` or `xml:lang`, at the element or around it.
    fn declared_language(&self, node: NodeId) -> Evaluated<Option<&'d str>> {
        let names = [local_name!("lang"), LocalName::from("xml:lang")];
        let names = names.map(|name| self.tree.name_id(&name));
        let mut next = Some(node);
        while let Some(node) = next {
            self.budget.spend(1)?;
            let declared = names
                .iter()
                .find_map(|name| self.tree.attribute_of(node, *name));
            if declared.is_some() {
                return Ok(declared);
            }
            next = self.tree.parent(node);
        }
        Ok(None)
    }

    /// The language in `<meta http-equiv=content-language content=en>`, if it names one language.
    fn language_of_page(&self) -> Evaluated<Option<&'d str>> {
        if !self.document.is_html {
            return Ok(None);
        }
        let names = [
            local_name!("meta"),
            local_name!("http-equiv"),
            local_name!("content"),
        ];
        let [meta, http_equiv, content] = names.map(|name| self.tree.name_id(&name));
        for node in self.tree.elements_named(meta) {
            self.budget.spend(1)?;
            let kind = self.tree.attribute_of(*node, http_equiv);
            if kind.is_some_and(|kind| kind.eq_ignore_ascii_case("content-language")) {
                let language = self.tree.attribute_of(*node, content).unwrap_or_default();
                let named = language.split_ascii_whitespace().next();
                return Ok(named.filter(|_| !language.contains(',')));
            }
        }
        Ok(None)
    }
}

/// Whether a language is in a range, by the extended filtering of RFC 4647 (3.3.2). The range `de-DE` contains
/// `de-Latn-DE`, and `*-CH` contains all languages of Switzerland.
fn is_in_range(language: &str, range: &str) -> bool {
    if language.is_empty() || range.is_empty() {
        return language == range;
    }
    let mut tags = language.split('-');
    let mut wanted = range.split('-');
    let (tag, first) = (tags.next(), wanted.next());
    let is_any = first == Some("*");
    if !is_any
        && !tag
            .unwrap_or_default()
            .eq_ignore_ascii_case(first.unwrap_or_default())
    {
        return false;
    }
    wanted.filter(|part| *part != "*").all(|part| {
        // A part of a single letter begins an extension of the language tag, which is not searched.
        let found = tags.find(|tag| tag.len() == 1 || tag.eq_ignore_ascii_case(part));
        found.is_some_and(|tag| tag.eq_ignore_ascii_case(part))
    })
}
