//! Runs the processors of a chain one after the other.

use crate::item::Item;
use crate::mapping::{Chain, Step};
use crate::processors::meta::META;
use crate::run::{OutOfTime, Run};

/// An observer of a running chain, for traces.
pub(crate) trait ChainObserver {
    /// Whether the observer reads the inputs of processors. If not, they are not kept.
    const NEEDS_INPUTS: bool;

    fn observe_step<'p>(
        &mut self,
        step: &Step,
        input: &[Item<'p>],
        output: &[Item<'p>],
        run: &Run<'p>,
    );
}

/// An observer that does nothing, for chains that are not traced.
pub(crate) struct NoObserver;

impl ChainObserver for NoObserver {
    const NEEDS_INPUTS: bool = false;

    fn observe_step<'p>(&mut self, _: &Step, _: &[Item<'p>], _: &[Item<'p>], _: &Run<'p>) {}
}

impl Chain {
    /// Runs the chain on the page, or on a part of it. Values without visible characters are dropped.
    pub(crate) fn run<'p, W: ChainObserver>(
        &self,
        start: Item<'p>,
        run: &Run<'p>,
        watch: &mut W,
    ) -> Result<Vec<Item<'p>>, OutOfTime> {
        let mut items = self.run_from(start, run, watch)?;
        items.retain(|item| !webfill_values::is_blank(&run.text(item)));
        Ok(items)
    }

    /// Runs the chain on the page to select rows, for example the elements of a list. Elements without text are kept: a
    /// row may consist of an image only, with its data in attributes.
    pub(crate) fn run_for_rows<'p, W: ChainObserver>(
        &self,
        run: &Run<'p>,
        watch: &mut W,
    ) -> Result<Vec<Item<'p>>, OutOfTime> {
        let mut items = self.run_from(Item::Page, run, watch)?;
        items.retain(|item| {
            matches!(item, Item::Node(_)) || !webfill_values::is_blank(&run.text(item))
        });
        Ok(items)
    }

    fn run_from<'p, W: ChainObserver>(
        &self,
        start: Item<'p>,
        run: &Run<'p>,
        watch: &mut W,
    ) -> Result<Vec<Item<'p>>, OutOfTime> {
        let from_metadata = self
            .steps
            .first()
            .is_some_and(|step| step.name == META.name);
        match run.page.has_only_metadata() && !from_metadata {
            true => Ok(Vec::new()),
            false => run_steps(&self.steps, vec![start], run, watch),
        }
    }

    /// Runs the chain so that each value found by its first step keeps its position in the result. The position is
    /// `None` if a later step drops the value.
    pub(crate) fn run_with_positions<'p, W: ChainObserver>(
        &self,
        start: Item<'p>,
        run: &Run<'p>,
        watch: &mut W,
    ) -> Result<Vec<Option<Item<'p>>>, OutOfTime> {
        let Some((first, others)) = self.steps.split_first() else {
            return Ok(Vec::new());
        };
        let found = run_steps(std::slice::from_ref(first), vec![start], run, watch)?;
        for item in &found {
            let read = || run_to_first(others, item.clone(), run, &mut NoObserver);
            run.columns.gather_evidence(read).0?;
        }
        let left = found.into_iter().map(|item| {
            let read = || run_to_first(others, item, run, watch);
            run.columns.with_evidence(read)
        });
        left.collect()
    }
}

/// Runs the steps on one value. Returns the first result that has visible characters.
fn run_to_first<'p, W: ChainObserver>(
    steps: &[Step],
    item: Item<'p>,
    run: &Run<'p>,
    watch: &mut W,
) -> Result<Option<Item<'p>>, OutOfTime> {
    let left = run_steps(steps, vec![item], run, watch)?;
    let mut shown = left
        .into_iter()
        .filter(|item| !webfill_values::is_blank(&run.text(item)));
    Ok(shown.next())
}

fn run_steps<'p, W: ChainObserver>(
    steps: &[Step],
    mut items: Vec<Item<'p>>,
    run: &Run<'p>,
    watch: &mut W,
) -> Result<Vec<Item<'p>>, OutOfTime> {
    for step in steps {
        run.check_time()?;
        let input = if W::NEEDS_INPUTS {
            items.clone()
        } else {
            Vec::new()
        };
        items = step.processor.apply(items, run)?;
        watch.observe_step(step, &input, &items, run);
    }
    Ok(items)
}
