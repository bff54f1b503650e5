//! A list of patterns of a crawl. Compiled, it is one automaton, which may take a hundred KiB once it is in
//! use; its text takes little. So what many crawls ask for seldom is compiled when it is asked for.

use std::sync::OnceLock;

use regex::RegexSet;
use webfill_api::scope::{ScopeError, compile_patterns};

/// See the module.
#[derive(Debug)]
pub(super) struct Patterns {
    list: &'static str,
    texts: Vec<String>,
    compiled: OnceLock<Option<RegexSet>>,
}

impl Patterns {
    /// Compiles the patterns of this list of a crawl's settings.
    pub(super) fn compile(list: &'static str, texts: &[String]) -> Result<Patterns, ScopeError> {
        Ok(Patterns {
            list,
            texts: texts.to_vec(),
            compiled: compile_patterns(list, texts)?.into(),
        })
    }

    /// Whether one of them matches; `None` if there are none.
    pub(super) fn match_any(&self, url: &str) -> Option<bool> {
        let compile = || {
            let compiled = compile_patterns(self.list, &self.texts);
            compiled.expect("what was compiled once is compiled again")
        };
        let compiled = self.compiled.get_or_init(compile).as_ref();
        compiled.map(|patterns| patterns.is_match(url))
    }

    /// Frees what was compiled, until it is asked for.
    pub(super) fn forget_compiled(&mut self) {
        self.compiled.take();
    }

    /// How many patterns are compiled.
    pub(super) fn compiled(&self) -> usize {
        let patterns = self.compiled.get().and_then(Option::as_ref);
        patterns.map_or(0, RegexSet::len)
    }
}
