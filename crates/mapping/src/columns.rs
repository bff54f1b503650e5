//! The notation of values that belong together but are read one at a time, such as one field in all rows of a listing.
//! Only together do the values show how they are written, for example which mark begins a fraction.
//!
//! Such values are read twice. The first pass reads each alone and [gathers](Columns::gather) the evidence. Values that
//! depend on the others are then [read again](Columns::with_evidence).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ptr;

use webfill_values::{DateEvidence, DateOrder, Dates, NumberEvidence, Numbers};

use crate::run::Processor;

/// The columns of a page, by the chain step that reads their values.
#[derive(Default)]
pub(crate) struct Columns {
    reading: Cell<Reading>,
    of_step: RefCell<HashMap<usize, Column>>,
    /// Whether a value that was read alone depends on other values of its column.
    depends: Cell<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Reading {
    /// The processor sees all values of the field together.
    #[default]
    All,
    /// The processor sees some of the values; the evidence of their column is still being gathered.
    Part,
    /// The processor sees some of the values; the evidence of their column is complete.
    Known,
}

#[derive(Default)]
struct Column {
    numbers: NumberEvidence,
    dates: DateEvidence,
}

impl Columns {
    /// Reads some of the values of a column. Returns whether any of them may be read differently once all values are
    /// known.
    pub(crate) fn gather_evidence<T>(&self, read: impl FnOnce() -> T) -> (T, bool) {
        self.depends.set(false);
        let done = self.with_reading(Reading::Part, read);
        (done, self.depends.take())
    }

    /// Reads some of the values with the evidence of all gathered values.
    pub(crate) fn with_evidence<T>(&self, read: impl FnOnce() -> T) -> T {
        self.with_reading(Reading::Known, read)
    }

    fn with_reading<T>(&self, reading: Reading, read: impl FnOnce() -> T) -> T {
        let usual = self.reading.replace(reading);
        let done = read();
        self.reading.set(usual);
        done
    }

    /// Whether the current value must wait for the rest of its column. If so, it is marked to be read again.
    pub(crate) fn postpone_if_partial(&self) -> bool {
        let puts_off = self.reading.get() == Reading::Part;
        self.depends.set(self.depends.get() || puts_off);
        puts_off
    }

    /// The evidence of how these numbers are written.
    pub(crate) fn number_evidence(
        &self,
        step: &dyn Processor,
        numbers: &Numbers,
    ) -> NumberEvidence {
        match self.reading.get() {
            Reading::All => numbers.evidence(),
            Reading::Part => {
                let own = numbers.evidence();
                self.add_to_column(step, numbers.depend_on_others(), |column| {
                    column.numbers.merge(&own);
                });
                own
            }
            Reading::Known => self.read_column(step, |column| column.numbers.clone()),
        }
    }

    /// Whether the day or the month comes first in these dates, if there is evidence.
    pub(crate) fn date_order(&self, step: &dyn Processor, dates: &Dates) -> Option<DateOrder> {
        match self.reading.get() {
            Reading::All => dates.evidence().order(),
            Reading::Part => {
                let own = dates.evidence();
                self.add_to_column(step, dates.depend_on_others(), |column| {
                    column.dates.merge(&own);
                });
                own.order()
            }
            Reading::Known => self.read_column(step, |column| column.dates.order()),
        }
    }

    fn add_to_column(&self, step: &dyn Processor, depends: bool, merge: impl FnOnce(&mut Column)) {
        self.depends.set(self.depends.get() || depends);
        merge(self.of_step.borrow_mut().entry(address(step)).or_default());
    }

    fn read_column<T: Default>(&self, step: &dyn Processor, take: impl FnOnce(&Column) -> T) -> T {
        let of_step = self.of_step.borrow();
        of_step.get(&address(step)).map(take).unwrap_or_default()
    }
}

/// The identity of a step: a processor does not move while its mapping exists, so its address identifies it.
fn address(step: &dyn Processor) -> usize {
    ptr::from_ref(step).addr()
}
