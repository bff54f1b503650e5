//! A list of patterns of a crawl. Compiled, it is one automaton, which may take megabytes; its text takes little
//! memory. So the patterns of many crawls that are rarely used are compiled only on use.

use std::sync::{Arc, OnceLock};

use webfill_api::scope::{PatternSet, ScopeError, compile_patterns};

/// A list of patterns, compiled or not.
#[derive(Debug)]
pub(super) struct Patterns {
    list: &'static str,
    texts: Vec<String>,
    compiled: OnceLock<Option<Arc<PatternSet>>>,
}

impl Patterns {
    /// Compiles the patterns of this list of a crawl's settings.
    pub(super) fn compile(list: &'static str, texts: &[String]) -> Result<Patterns, ScopeError> {
        let patterns = Patterns::from_checked(list, texts);
        let compiled = compile_patterns(list, texts)?;
        Ok(Patterns {
            compiled: compiled.into(),
            ..patterns
        })
    }

    /// Creates the list from patterns that were compiled before. They are compiled again on use.
    pub(super) fn from_checked(list: &'static str, texts: &[String]) -> Patterns {
        Patterns {
            list,
            texts: texts.to_vec(),
            compiled: OnceLock::new(),
        }
    }

    /// Whether one of the patterns matches; `None` for an empty list.
    pub(super) fn matches_any(&self, url: &str) -> Option<bool> {
        let compile = || {
            let compiled = compile_patterns(self.list, &self.texts);
            compiled.expect("what was compiled once is compiled again")
        };
        let compiled = self.compiled.get_or_init(compile).as_ref();
        compiled.map(|patterns| patterns.is_match(url))
    }

    /// Frees the compiled patterns until they are used again.
    pub(super) fn forget_compiled(&mut self) {
        self.compiled.take();
    }

    /// The memory of the compiled patterns; `None` if they are not compiled.
    pub(super) fn memory_bytes(&self) -> Option<usize> {
        let compiled = self.compiled.get()?.as_ref()?;
        Some(compiled.memory_bytes())
    }
}
