//! The XPath expressions and CSS selectors of a mapping set.
//!
//! The set stores their texts, checked and without duplicates. Compiled forms are tied to a thread, so
//! every engine compiles its own at first use.

use std::cell::OnceCell;
use std::collections::HashMap;

use webfill_document::{Selector, XPath, check_selector, check_xpath};

/// The number of an XPath expression within a mapping set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct XPathId(usize);

/// The number of a CSS selector within a mapping set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SelectorId(usize);

/// The texts of all XPath expressions and CSS selectors of a mapping set, checked.
#[derive(Debug, Default)]
pub(crate) struct Selectors {
    xpaths: Texts,
    selectors: Texts,
    /// Warnings, each with the name of the parameter that it is about.
    warnings: Vec<(&'static str, String)>,
}

/// Texts without duplicates, numbered in the order they are added.
#[derive(Debug, Default)]
struct Texts {
    numbers: HashMap<String, usize>,
}

impl Texts {
    fn get_or_add(&mut self, text: &str) -> usize {
        let next = self.numbers.len();
        *self.numbers.entry(text.to_owned()).or_insert(next)
    }

    fn texts_in_order(&self) -> Vec<&str> {
        let mut texts = vec![""; self.numbers.len()];
        for (text, number) in &self.numbers {
            texts[*number] = text;
        }
        texts
    }
}

impl Selectors {
    /// Checks and adds an XPath expression.
    pub(crate) fn add_xpath(&mut self, expression: &str) -> Result<XPathId, String> {
        check_xpath(expression)
            .map_err(|error| format!("{}, at offset {}", error.reason(), error.offset()))?;
        Ok(XPathId(self.xpaths.get_or_add(expression)))
    }

    /// Keeps a warning about a parameter of the processor that is being built, for the author of the mapping.
    pub(crate) fn warn(&mut self, parameter: &'static str, message: String) {
        self.warnings.push((parameter, message));
    }

    pub(crate) fn take_warnings(&mut self) -> Vec<(&'static str, String)> {
        std::mem::take(&mut self.warnings)
    }

    /// Checks and adds a CSS selector.
    pub(crate) fn add_selector(&mut self, selector: &str) -> Result<SelectorId, String> {
        check_selector(selector)
            .map_err(|error| format!("{}, at offset {}", error.reason(), error.offset()))?;
        Ok(SelectorId(self.selectors.get_or_add(selector)))
    }
}

/// The XPath expressions and CSS selectors of a mapping set, as one thread has compiled them.
pub(crate) struct CompiledSelectors {
    xpaths: Vec<(String, OnceCell<XPath>)>,
    selectors: Vec<(String, OnceCell<Selector>)>,
}

impl CompiledSelectors {
    pub(crate) fn new(texts: &Selectors) -> CompiledSelectors {
        CompiledSelectors {
            xpaths: uncompiled_entries(&texts.xpaths),
            selectors: uncompiled_entries(&texts.selectors),
        }
    }

    pub(crate) fn xpath(&self, id: XPathId) -> &XPath {
        let (text, compiled) = &self.xpaths[id.0];
        compiled.get_or_init(|| XPath::compile(text).expect("expressions are checked at load"))
    }

    pub(crate) fn selector(&self, id: SelectorId) -> &Selector {
        let (text, compiled) = &self.selectors[id.0];
        compiled.get_or_init(|| Selector::compile(text).expect("selectors are checked at load"))
    }
}

fn uncompiled_entries<T>(texts: &Texts) -> Vec<(String, OnceCell<T>)> {
    let entry = |text: &str| (text.to_owned(), OnceCell::new());
    texts.texts_in_order().into_iter().map(entry).collect()
}
