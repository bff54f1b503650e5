//! Runs the processors of a chain one after the other.

use crate::item::Item;
use crate::mapping::{Chain, Step};
use crate::processors::meta::META;
use crate::run::{OutOfTime, Run};

/// An observer of a running chain, for traces.
pub(crate) trait Watch {
    /// Whether it needs the processors' inputs; if not, they are not kept.
    const LOOKS: bool;

    fn step(&mut self, step: &Step, input: &[Item<'_>], output: &[Item<'_>], run: &Run<'_>);
}

/// The observer that does nothing.
pub(crate) struct Unwatched;

impl Watch for Unwatched {
    const LOOKS: bool = false;

    fn step(&mut self, _: &Step, _: &[Item<'_>], _: &[Item<'_>], _: &Run<'_>) {}
}

impl Chain {
    /// Runs the chain on the page. Texts that show nothing are dropped from the result.
    pub(crate) fn run<'p, W: Watch>(
        &self,
        run: &Run<'p>,
        watch: &mut W,
    ) -> Result<Vec<Item<'p>>, OutOfTime> {
        let from_metadata = self
            .steps
            .first()
            .is_some_and(|step| step.name == META.name);
        if run.page.has_only_metadata() && !from_metadata {
            return Ok(Vec::new());
        }
        let mut items = vec![Item::Page];
        for step in &self.steps {
            run.check_time()?;
            let input = if W::LOOKS { items.clone() } else { Vec::new() };
            items = step.processor.apply(items, run)?;
            watch.step(step, &input, &items, run);
        }
        items.retain(|item| !webfill_values::is_blank(&run.text(item)));
        Ok(items)
    }
}
