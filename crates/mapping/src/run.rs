//! The run of a mapping on one page: the resources that processors share, and their limits.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Instant;

use webfill_document::NodeRef;

use crate::columns::Columns;
use crate::item::Item;
use crate::limits::Limits;
use crate::page::Page;
use crate::reading::Reading;
use crate::selectors::CompiledSelectors;
use crate::tables::{Table, Tables};
use crate::value_text::{value_text, value_text_with};

/// A step of a chain: it turns a list of values into another list.
pub(crate) trait Processor: Send + Sync {
    fn apply<'p>(&self, items: Vec<Item<'p>>, run: &Run<'p>) -> Result<Vec<Item<'p>>, OutOfTime>;

    /// Whether the processor needs elements, or passes them on unread. If not, it gets only their text.
    fn sees_markup(&self) -> bool {
        false
    }

    /// What the processor reads of its input, for traces.
    fn reading<'p>(&self, _input: &[Item<'p>], _run: &Run<'p>) -> Reading {
        Reading::default()
    }
}

/// The deadline has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutOfTime;

/// What processors share while a mapping runs on a page.
pub(crate) struct Run<'p> {
    pub(crate) page: &'p Page<'p>,
    pub(crate) selectors: &'p CompiledSelectors,
    pub(crate) limits: &'p Limits,
    deadline: Option<Instant>,
    warnings: RefCell<Vec<String>>,
    warnings_left_out: Cell<usize>,
    /// The field that is being read, for warnings.
    subject: RefCell<String>,
    /// Whether a value was left out because it can be read in two ways, or has no valid reading.
    undecided: Cell<bool>,
    tables: RefCell<Tables<'p>>,
    pub(crate) columns: Columns,
    /// How many values one processor may yield at present.
    most_values: Cell<usize>,
    pub(crate) list: ListSigns,
}

/// What a page shows about the list of rows that it belongs to.
#[derive(Default)]
pub(crate) struct ListSigns {
    /// Whether the page's URL shows that it is not the first page of the list.
    pub(crate) is_further: Cell<bool>,
    /// Whether the page gives the number of pages of the list.
    pub(crate) is_counted: Cell<bool>,
    /// Whether values, rows or links were left out because there are too many.
    pub(crate) is_cut: Cell<bool>,
}

impl<'p> Run<'p> {
    pub(crate) fn new(
        page: &'p Page<'p>,
        selectors: &'p CompiledSelectors,
        limits: &'p Limits,
        deadline: Option<Instant>,
    ) -> Run<'p> {
        Run {
            page,
            selectors,
            limits,
            deadline,
            warnings: RefCell::default(),
            warnings_left_out: Cell::new(0),
            subject: RefCell::default(),
            undecided: Cell::new(false),
            tables: RefCell::default(),
            columns: Columns::default(),
            most_values: Cell::new(limits.values),
            list: ListSigns::default(),
        }
    }

    /// Runs `work` with another limit on the values that one processor may yield.
    pub(crate) fn with_most_values<T>(&self, most: usize, work: impl FnOnce() -> T) -> T {
        let usual = self.most_values.replace(most);
        let done = work();
        self.most_values.set(usual);
        done
    }

    /// The table that contains a row (`tr`).
    pub(crate) fn table_of(&self, row: NodeRef<'p>) -> Option<Rc<Table<'p>>> {
        self.tables.borrow_mut().table_of_row(row)
    }

    pub(crate) fn set_subject(&self, subject: String) {
        self.subject.replace(subject);
    }

    pub(crate) fn subject(&self) -> String {
        self.subject.borrow().clone()
    }

    /// Adds a warning, without duplicates and up to a limit.
    pub(crate) fn warn(&self, message: impl std::fmt::Display) {
        let subject = self.subject.borrow();
        let text = match subject.is_empty() {
            true => message.to_string(),
            false => format!("{subject}: {message}"),
        };
        let mut warnings = self.warnings.borrow_mut();
        if warnings.contains(&text) {
            return;
        }
        if warnings.len() < self.limits.warnings {
            warnings.push(text);
        } else {
            self.warnings_left_out.set(self.warnings_left_out.get() + 1);
        }
    }

    /// Warns of values of the current field that were left out because they can be read in two ways. If other rows are
    /// still to be read, does nothing, because they may decide.
    pub(crate) fn warn_undecided(&self, message: impl std::fmt::Display) {
        if !self.columns.postpone_if_partial() {
            self.undecided.set(true);
            self.warn(message);
        }
    }

    /// Whether a value was left out as undecided since this function was called last.
    pub(crate) fn take_undecided(&self) -> bool {
        self.undecided.take()
    }

    pub(crate) fn into_warnings(self) -> Vec<String> {
        let mut warnings = self.warnings.into_inner();
        let left_out = self.warnings_left_out.get();
        if left_out > 0 {
            warnings.push(format!("{left_out} more warnings"));
        }
        warnings
    }

    pub(crate) fn check_time(&self) -> Result<(), OutOfTime> {
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(OutOfTime),
            _ => Ok(()),
        }
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    pub(crate) fn text<'i>(&'i self, item: &'i Item<'_>) -> Cow<'i, str> {
        item.text(self.page.text())
    }

    /// The text of an item, in the form that is searched for numbers and dates.
    pub(crate) fn value_text<'i>(&'i self, item: &'i Item<'_>) -> Cow<'i, str> {
        match item {
            Item::Node(node) => value_text(*node),
            other => self.text(other),
        }
    }

    /// As [`Run::value_text`], with the mark that precedes raised cents.
    pub(crate) fn number_text<'i>(&'i self, item: &'i Item<'_>, decimal: char) -> Cow<'i, str> {
        match item {
            Item::Node(node) => value_text_with(*node, decimal),
            other => self.text(other),
        }
    }

    /// An empty list of values, which enforces the limits.
    pub(crate) fn new_output<'r>(&'r self) -> Output<'r, 'p> {
        Output {
            run: self,
            items: Vec::new(),
            bytes: 0,
            full: false,
            late: false,
        }
    }

    /// Replaces the text of each item by the result of `change`. The item is dropped if that is `None`.
    pub(crate) fn map_texts(
        &self,
        items: Vec<Item<'p>>,
        mut change: impl FnMut(&str) -> Option<String>,
    ) -> Result<Vec<Item<'p>>, OutOfTime> {
        let mut output = self.new_output();
        for item in items {
            let changed = change(&self.text(&item));
            if !changed.is_none_or(|text| output.push_text(text)) {
                break;
            }
        }
        output.finish()
    }

    /// Keeps the items whose text satisfies `keeps`, unchanged.
    pub(crate) fn filter(
        &self,
        items: Vec<Item<'p>>,
        mut keeps: impl FnMut(&str) -> bool,
    ) -> Result<Vec<Item<'p>>, OutOfTime> {
        let mut kept = Vec::new();
        for item in items {
            self.check_time()?;
            if keeps(&self.text(&item)) {
                kept.push(item);
            }
        }
        Ok(kept)
    }
}

/// Collects the values of one processor, within the limits.
pub(crate) struct Output<'r, 'p> {
    run: &'r Run<'p>,
    items: Vec<Item<'p>>,
    bytes: usize,
    full: bool,
    late: bool,
}

impl<'p> Output<'_, 'p> {
    /// Adds a text. Returns false if the output is full.
    pub(crate) fn push_text(&mut self, mut text: String) -> bool {
        let length = self.allowed_length(&text);
        text.truncate(length);
        self.push(text.into())
    }

    /// Adds a text that is a part of the page. Returns false if the output is full.
    pub(crate) fn push_str(&mut self, text: &'p str) -> bool {
        let length = self.allowed_length(text);
        self.push(Item::Text(Cow::Borrowed(&text[..length])))
    }

    fn allowed_length(&mut self, text: &str) -> usize {
        let most = self.run.limits.value_bytes;
        let length = text.floor_char_boundary(most);
        if length < text.len() {
            self.run
                .warn(format_args!("a value was cut to {most} bytes"));
        }
        self.bytes += length;
        length
    }

    /// Adds a value. Returns false if the output is full.
    pub(crate) fn push(&mut self, item: Item<'p>) -> bool {
        let limits = self.run.limits;
        let most = self.run.most_values.get();
        if self.items.len() >= most {
            self.note_limit(format_args!("more than {most} values"));
        } else if self.bytes > limits.step_bytes {
            self.note_limit(format_args!(
                "more than {} bytes of values",
                limits.step_bytes
            ));
        } else {
            self.items.push(item);
        }
        self.late = self.late || self.run.check_time().is_err();
        !self.full && !self.late
    }

    fn note_limit(&mut self, what: std::fmt::Arguments<'_>) {
        self.full = true;
        self.run.list.is_cut.set(true);
        self.run.warn(format_args!("{what}, the rest was dropped"));
    }

    pub(crate) fn finish(self) -> Result<Vec<Item<'p>>, OutOfTime> {
        match self.late {
            true => Err(OutOfTime),
            false => Ok(self.items),
        }
    }
}

/// A processor that changes each text on its own, or drops it.
pub(crate) struct EachText<F>(pub(crate) F);

impl<F: Fn(&str) -> Option<String> + Send + Sync> Processor for EachText<F> {
    fn apply<'p>(&self, items: Vec<Item<'p>>, run: &Run<'p>) -> Result<Vec<Item<'p>>, OutOfTime> {
        run.map_texts(items, &self.0)
    }
}
