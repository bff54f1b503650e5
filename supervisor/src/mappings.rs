//! The mappings that a supervisor has for its workers, and the set it still needs.
//!
//! The dispatcher names the set to be used by its version. The supervisor requests a missing set once, and again only
//! if no answer arrives within the duration of a lease. Meanwhile its workers get no tasks, so no page is read with
//! outdated mappings.

use webfill_wire::{MappingSource, MappingsVersion};

/// The present set of mappings, and the version still missing.
#[derive(Debug, Default)]
pub(crate) struct Mappings {
    /// The texts of the mappings; `None` until the first set has arrived.
    sources: Option<Vec<MappingSource>>,
    version: Option<MappingsVersion>,
    lacking: Option<MissingMappings>,
}

#[derive(Debug)]
struct MissingMappings {
    version: MappingsVersion,
    ask_again_ms: u64,
}

impl Mappings {
    pub(crate) fn sources(&self) -> Option<&Vec<MappingSource>> {
        self.sources.as_ref()
    }

    /// Whether the workers may get tasks: they have the set that the dispatcher has named last, or it has not named one
    /// yet.
    pub(crate) fn are_complete(&self) -> bool {
        self.lacking.is_none()
    }

    /// Notes which set the dispatcher wants to be used.
    pub(crate) fn note_version(&mut self, version: MappingsVersion) {
        let has_it = self.version.as_ref() == Some(&version);
        self.lacking = (!has_it).then_some(MissingMappings {
            version,
            ask_again_ms: 0,
        });
    }

    /// Returns the version of the missing set if it must be requested now. A request is repeated after `patience_ms`.
    pub(crate) fn next_request(
        &mut self,
        now_ms: u64,
        patience_ms: u64,
    ) -> Option<MappingsVersion> {
        let lacking = self.lacking.as_mut()?;
        let is_due = now_ms >= lacking.ask_again_ms;
        is_due.then(|| {
            lacking.ask_again_ms = now_ms.saturating_add(patience_ms);
            lacking.version.clone()
        })
    }

    /// Takes a set that has arrived. Returns whether it must be sent to the workers.
    pub(crate) fn replace(
        &mut self,
        version: MappingsVersion,
        sources: Vec<MappingSource>,
    ) -> bool {
        self.version = Some(version);
        self.lacking = None;
        self.sources.replace(sources) != self.sources
    }

    /// Whether this set is the missing one.
    pub(crate) fn lacks(&self, version: &MappingsVersion) -> bool {
        let lacking = self.lacking.as_ref();
        lacking.is_some_and(|lacking| lacking.version == *version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_asked_for_once_and_used_once() {
        let mut mappings = Mappings::default();
        mappings.note_version("a".into());
        assert_eq!(mappings.next_request(100, 1_000).as_deref(), Some("a"));
        assert_eq!(mappings.next_request(1_099, 1_000), None);
        assert_eq!(mappings.next_request(1_100, 1_000).as_deref(), Some("a"));
        assert!(!mappings.are_complete() && !mappings.lacks(&"b".into()));
        assert!(mappings.replace("a".into(), Vec::new()));
        assert!(mappings.are_complete());
        mappings.note_version("a".into());
        assert_eq!(mappings.next_request(9_000, 1_000), None, "it is known");
        assert!(
            !mappings.replace("b".into(), Vec::new()),
            "the workers have it, by another name"
        );
    }
}
