//! A batch of a column's values as Parquet stores them: the values that are present, and levels (numbers that show
//! missing values and the beginnings of lists).

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{ByteArray, DataType, FixedLenByteArray, Int96};
use parquet::errors::{ParquetError, Result};

use super::leaf::{Leaf, Owned};
use crate::cell::Cell;

/// The stored values of a column, by type. Missing values are not stored.
pub(super) enum Values {
    Bool(Vec<bool>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Int96(Vec<Int96>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Bytes(Vec<ByteArray>),
    Fixed(Vec<FixedLenByteArray>),
}

/// One stored value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Single<'a> {
    Bool(bool),
    Int32(i32),
    Int64(i64),
    /// Nanoseconds since 1970.
    Nanoseconds(i64),
    Float(f32),
    Double(f64),
    Bytes(&'a [u8]),
}

pub(super) struct Batch {
    pub(super) values: Values,
    /// The definition levels, which show missing values; empty if no value can be missing.
    defined: Vec<i16>,
    /// The repetition levels, which show where a row begins; empty if there are no lists.
    repeated: Vec<i16>,
}

/// The range of a row's entries (values and levels) in a batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    start: usize,
    end: usize,
    /// The index of the row's first stored value.
    first_value: usize,
}

impl Batch {
    /// Reads a batch of this many rows, or fewer at the end.
    pub(super) fn read(reader: &mut ColumnReader, rows: usize) -> Result<Batch> {
        Ok(match reader {
            ColumnReader::BoolColumnReader(reader) => read_typed(reader, rows, Values::Bool)?,
            ColumnReader::Int32ColumnReader(reader) => read_typed(reader, rows, Values::Int32)?,
            ColumnReader::Int64ColumnReader(reader) => read_typed(reader, rows, Values::Int64)?,
            ColumnReader::Int96ColumnReader(reader) => read_typed(reader, rows, Values::Int96)?,
            ColumnReader::FloatColumnReader(reader) => read_typed(reader, rows, Values::Float)?,
            ColumnReader::DoubleColumnReader(reader) => read_typed(reader, rows, Values::Double)?,
            ColumnReader::ByteArrayColumnReader(reader) => read_typed(reader, rows, Values::Bytes)?,
            ColumnReader::FixedLenByteArrayColumnReader(reader) => {
                read_typed(reader, rows, Values::Fixed)?
            }
        })
    }

    fn entry_count(&self) -> usize {
        self.defined
            .len()
            .max(self.repeated.len())
            .max(match self.defined.is_empty() {
                true => self.values.len(),
                false => 0,
            })
    }

    fn is_present(&self, entry: usize, leaf: &Leaf) -> bool {
        self.defined
            .get(entry)
            .is_none_or(|level| *level == leaf.present)
    }

    /// The ranges of all rows in the batch.
    pub(super) fn extents(&self, leaf: &Leaf) -> Vec<Extent> {
        let mut extents: Vec<Extent> = Vec::new();
        let mut value = 0;
        for entry in 0..self.entry_count() {
            let goes_on = self.repeated.get(entry).is_some_and(|level| *level > 0);
            match extents.last_mut().filter(|_| goes_on) {
                Some(last) => last.end = entry + 1,
                None => extents.push(Extent {
                    start: entry,
                    end: entry + 1,
                    first_value: value,
                }),
            }
            value += usize::from(self.is_present(entry, leaf));
        }
        extents
    }

    /// Converts the values of a row to a cell.
    pub(super) fn cell(&self, extent: Extent, leaf: &Leaf) -> Cell {
        let mut value = extent.first_value;
        let mut next = |entry: usize| match self.is_present(entry, leaf) {
            true => {
                value += 1;
                leaf.cell(self.values.get(value - 1))
            }
            false => Cell::Missing,
        };
        let Some(entry_level) = leaf.entry else {
            return next(extent.start);
        };
        match self.defined.get(extent.start) {
            Some(level) if *level < entry_level - 1 => Cell::Missing,
            Some(level) if *level < entry_level => Cell::List(Vec::new()),
            _ => Cell::List((extent.start..extent.end).map(next).collect()),
        }
    }

    /// An empty batch for the same type of values.
    pub(super) fn empty_like(&self) -> Batch {
        Batch {
            values: self.values.empty_like(),
            defined: Vec::new(),
            repeated: Vec::new(),
        }
    }

    /// Appends a row of another batch to this one.
    pub(super) fn push_row(&mut self, of: &Batch, extent: Extent, leaf: &Leaf) {
        let mut value = extent.first_value;
        for entry in extent.start..extent.end {
            if of.is_present(entry, leaf) {
                self.values.push_from(&of.values, value);
                value += 1;
            }
            self.defined.extend(of.defined.get(entry));
            self.repeated.extend(of.repeated.get(entry));
        }
    }

    /// Appends a row with these values. There must be at least one.
    pub(super) fn push_values(&mut self, values: Vec<Owned>, leaf: &Leaf) {
        for (number, value) in values.into_iter().enumerate() {
            self.values.push(value);
            if leaf.present > 0 {
                self.defined.push(leaf.present);
            }
            if leaf.entry.is_some() {
                self.repeated.push(i16::from(number > 0));
            }
        }
    }

    pub(super) fn write(&self, to: &mut ColumnWriter<'_>) -> Result<()> {
        let defined = (!self.defined.is_empty()).then_some(self.defined.as_slice());
        let repeated = (!self.repeated.is_empty()).then_some(self.repeated.as_slice());
        match (&self.values, to) {
            (Values::Bool(values), ColumnWriter::BoolColumnWriter(to)) => {
                to.write_batch(values, defined, repeated)
            }
            (Values::Int32(values), ColumnWriter::Int32ColumnWriter(to)) => {
                to.write_batch(values, defined, repeated)
            }
            (Values::Int64(values), ColumnWriter::Int64ColumnWriter(to)) => {
                to.write_batch(values, defined, repeated)
            }
            (Values::Int96(values), ColumnWriter::Int96ColumnWriter(to)) => {
                to.write_batch(values, defined, repeated)
            }
            (Values::Float(values), ColumnWriter::FloatColumnWriter(to)) => {
                to.write_batch(values, defined, repeated)
            }
            (Values::Double(values), ColumnWriter::DoubleColumnWriter(to)) => {
                to.write_batch(values, defined, repeated)
            }
            (Values::Bytes(values), ColumnWriter::ByteArrayColumnWriter(to)) => {
                to.write_batch(values, defined, repeated)
            }
            (Values::Fixed(values), ColumnWriter::FixedLenByteArrayColumnWriter(to)) => {
                to.write_batch(values, defined, repeated)
            }
            _ => Err(ParquetError::General(String::from(
                "a column changed its type",
            ))),
        }
        .map(drop)
    }
}

fn read_typed<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    values_of: impl Fn(Vec<T::T>) -> Values,
) -> Result<Batch> {
    let (mut defined, mut repeated, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let mut read = 0;
    while read < rows {
        let (more, ..) = reader.read_records(
            rows - read,
            Some(&mut defined),
            Some(&mut repeated),
            &mut values,
        )?;
        if more == 0 {
            break;
        }
        read += more;
    }
    Ok(Batch {
        values: values_of(values),
        defined,
        repeated,
    })
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Values::Bool(values) => values.len(),
            Values::Int32(values) => values.len(),
            Values::Int64(values) => values.len(),
            Values::Int96(values) => values.len(),
            Values::Float(values) => values.len(),
            Values::Double(values) => values.len(),
            Values::Bytes(values) => values.len(),
            Values::Fixed(values) => values.len(),
        }
    }

    fn get(&self, at: usize) -> Single<'_> {
        match self {
            Values::Bool(values) => Single::Bool(values[at]),
            Values::Int32(values) => Single::Int32(values[at]),
            Values::Int64(values) => Single::Int64(values[at]),
            Values::Int96(values) => Single::Nanoseconds(values[at].to_nanos()),
            Values::Float(values) => Single::Float(values[at]),
            Values::Double(values) => Single::Double(values[at]),
            Values::Bytes(values) => Single::Bytes(values[at].data()),
            Values::Fixed(values) => Single::Bytes(values[at].data()),
        }
    }

    fn empty_like(&self) -> Values {
        match self {
            Values::Bool(_) => Values::Bool(Vec::new()),
            Values::Int32(_) => Values::Int32(Vec::new()),
            Values::Int64(_) => Values::Int64(Vec::new()),
            Values::Int96(_) => Values::Int96(Vec::new()),
            Values::Float(_) => Values::Float(Vec::new()),
            Values::Double(_) => Values::Double(Vec::new()),
            Values::Bytes(_) => Values::Bytes(Vec::new()),
            Values::Fixed(_) => Values::Fixed(Vec::new()),
        }
    }

    fn push_from(&mut self, of: &Values, at: usize) {
        match (self, of) {
            (Values::Bool(to), Values::Bool(of)) => to.push(of[at]),
            (Values::Int32(to), Values::Int32(of)) => to.push(of[at]),
            (Values::Int64(to), Values::Int64(of)) => to.push(of[at]),
            (Values::Int96(to), Values::Int96(of)) => to.push(of[at]),
            (Values::Float(to), Values::Float(of)) => to.push(of[at]),
            (Values::Double(to), Values::Double(of)) => to.push(of[at]),
            (Values::Bytes(to), Values::Bytes(of)) => to.push(of[at].clone()),
            (Values::Fixed(to), Values::Fixed(of)) => to.push(of[at].clone()),
            _ => unreachable!("batches of one column are of one kind"),
        }
    }

    fn push(&mut self, value: Owned) {
        match (self, value) {
            (Values::Bool(to), Owned::Bool(value)) => to.push(value),
            (Values::Int32(to), Owned::Int32(value)) => to.push(value),
            (Values::Int64(to), Owned::Int64(value)) => to.push(value),
            (Values::Float(to), Owned::Float(value)) => to.push(value),
            (Values::Double(to), Owned::Double(value)) => to.push(value),
            (Values::Bytes(to), Owned::Bytes(value)) => to.push(value.into()),
            (Values::Fixed(to), Owned::Bytes(value)) => to.push(value.into()),
            _ => unreachable!("a value is parsed for the type of its column"),
        }
    }
}
