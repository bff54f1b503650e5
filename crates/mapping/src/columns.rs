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

/// The columns of a page. A column is all values that the same chain step reads, such as one field in all rows.
#[derive(Default)]
pub(crate) struct Columns {
    reading: Cell<Reading>,
    of_step: RefCell<HashMap<usize, Column>>,
    /// Whether a single value, without the others of its column, could be read in more than one way, as "1,234" can.
    depends: Cell<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Reading {
    /// The processor gets all values of the column at once.
    #[default]
    All,
    /// The processor gets some of the values, while evidence about the notation of the column is still gathered.
    Part,
    /// The processor gets some of the values, and the evidence about the notation of their column is complete.
    Known,
}

#[derive(Default)]
struct Column {
    numbers: NumberEvidence,
    dates: DateEvidence,
}

impl Columns {
    /// Reads some values of a column, and keeps what they show about its notation. Also returns whether any of them may
    /// be read differently once all values are known.
    pub(crate) fn gather_evidence<T>(&self, read: impl FnOnce() -> T) -> (T, bool) {
        self.depends.set(false);
        let done = self.with_reading(Reading::Part, read);
        (done, self.depends.take())
    }

    /// Reads some values of a column, with the evidence of all values that were gathered before.
    pub(crate) fn with_evidence<T>(&self, read: impl FnOnce() -> T) -> T {
        self.with_reading(Reading::Known, read)
    }

    fn with_reading<T>(&self, reading: Reading, read: impl FnOnce() -> T) -> T {
        let usual = self.reading.replace(reading);
        let done = read();
        self.reading.set(usual);
        done
    }

    /// Whether the present value can only be read once the rest of its column is known. If so, it is marked to be read
    /// again.
    pub(crate) fn postpone_if_partial(&self) -> bool {
        let puts_off = self.reading.get() == Reading::Part;
        self.depends.set(self.depends.get() || puts_off);
        puts_off
    }

    /// What is known about the notation of these numbers, such as which mark begins a fraction.
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
        merge(
            self.of_step
                .borrow_mut()
                .entry(step_address(step))
                .or_default(),
        );
    }

    fn read_column<T: Default>(&self, step: &dyn Processor, take: impl FnOnce(&Column) -> T) -> T {
        let of_step = self.of_step.borrow();
        of_step
            .get(&step_address(step))
            .map(take)
            .unwrap_or_default()
    }
}

/// The number that identifies a step. It is the step's address, because a processor does not move while its mapping
/// exists.
fn step_address(step: &dyn Processor) -> usize {
    ptr::from_ref(step).addr()
}
