//! Tests Parquet files: reading and writing each type.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use crate::common::{lines, read, table};
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArrayType, FloatType,
    Int32Type, Int64Type,
};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use webfill_table::{ColumnChoices, Sample, WrittenTable};

const SCHEMA: &str = "message m {
    required int64 id;
    optional binary title (UTF8);
    optional int32 pages (INTEGER(16,true));
    optional int32 price (DECIMAL(9,2));
    optional fixed_len_byte_array(5) large (DECIMAL(11,3));
    optional int32 born (DATE);
    optional int64 seen (TIMESTAMP(MICROS,true));
    optional int64 local (TIMESTAMP(NANOS,false));
    optional int32 clock (TIME(MILLIS,false));
    optional boolean sold;
    optional double score;
    optional float weight;
    optional int64 count (INTEGER(64,false));
    optional fixed_len_byte_array(16) key (UUID);
    optional group tags (LIST) { repeated group list { optional binary element (UTF8); } }
    optional group o { optional int32 p; }
}";

fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &[T::T],
    defined: &[i16],
    repeated: Option<&[i16]>,
) {
    let mut column = group.next_column().unwrap().unwrap();
    let required = defined.is_empty();
    let defined = (!required).then_some(defined);
    column
        .typed::<T>()
        .write_batch(values, defined, repeated)
        .unwrap();
    column.close().unwrap();
}

/// Makes a file with two row groups of two rows. In each group, the first row has all values, and the second has only
/// its id. In addition, one second row has the score NaN, and the other one an empty title.
fn write_test_file(path: &Path, compression: Compression) {
    write_test_file_with(
        path,
        WriterProperties::builder().set_compression(compression),
    );
}

fn write_test_file_with(path: &Path, properties: WriterPropertiesBuilder) {
    let properties = properties
        .set_key_value_metadata(Some(vec![KeyValue::new("pandas".into(), "{}".to_string())]))
        .build();
    let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
    let file = File::create(path).unwrap();
    let mut file = SerializedFileWriter::new(file, schema, Arc::new(properties)).unwrap();
    let text = |text: &str| ByteArray::from(text);
    for number in 0..2_i64 {
        let mut group = file.next_row_group().unwrap();
        let group_mut = &mut group;
        let both = &[1, 0];
        write_column::<Int64Type>(group_mut, &[number * 2, number * 2 + 1], &[], None);
        match number {
            0 => write_column::<ByteArrayType>(group_mut, &[text("Zoë")], both, None),
            _ => write_column::<ByteArrayType>(group_mut, &[text("b"), text("")], &[1, 1], None),
        }
        write_column::<Int32Type>(group_mut, &[300], both, None);
        write_column::<Int32Type>(group_mut, &[-1250], both, None);
        let large = vec![0xff, 0xff, 0xff, 0xfb, 0x2e].into();
        write_column::<FixedLenByteArrayType>(group_mut, &[large], both, None);
        write_column::<Int32Type>(group_mut, &[-56_270], both, None);
        write_column::<Int64Type>(group_mut, &[1_700_000_000_123_456], both, None);
        write_column::<Int64Type>(group_mut, &[1_700_000_000_000_000_000], both, None);
        write_column::<Int32Type>(group_mut, &[37_800_000], both, None);
        write_column::<BoolType>(group_mut, &[true], both, None);
        match number {
            0 => write_column::<DoubleType>(group_mut, &[0.1, f64::NAN], &[1, 1], None),
            _ => write_column::<DoubleType>(group_mut, &[2.5], both, None),
        }
        write_column::<FloatType>(group_mut, &[0.1], both, None);
        write_column::<Int64Type>(group_mut, &[-1], both, None);
        let uuid = (0..16).collect::<Vec<u8>>().into();
        write_column::<FixedLenByteArrayType>(group_mut, &[uuid], both, None);
        write_column::<ByteArrayType>(
            group_mut,
            &[text("x"), text("y")],
            &[3, 2, 3, number as i16],
            Some(&[0, 1, 1, 0]),
        );
        write_column::<Int32Type>(group_mut, &[7], &[2, 0], None);
        group.close().unwrap();
    }
    file.close().unwrap();
}

const FULL: &str = "300 · #-12.50 · #-1.234 · @1815-12-10 · @2023-11-14T22:13:20.123456Z · @2023-11-14T22:13:20 \
    · @10:30:00 · #true";
const UUID: &str = "00010203-0405-0607-0809-0a0b0c0d0e0f";
const NOTHING: &str = "∅ · ∅ · ∅ · ∅ · ∅ · ∅ · ∅ · ∅";

fn expected_lines() -> Vec<String> {
    vec![
        format!(
            "1: #0 · Zoë · #{FULL} · #0.1 · #0.1 · #18446744073709551615 · {UUID} · [x ∅ y] · null"
        ),
        format!("2: #1 · ∅ · {NOTHING} · #NaN · ∅ · ∅ · ∅ · ∅ · null"),
        format!(
            "3: #2 · b · #{FULL} · #2.5 · #0.1 · #18446744073709551615 · {UUID} · [x ∅ y] · null"
        ),
        format!("4: #3 ·  · {NOTHING} · ∅ · ∅ · ∅ · ∅ · [] · null"),
    ]
}

#[test]
fn every_type_is_read_in_every_compression() {
    let compressions = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::LZ4_RAW,
        Compression::GZIP(Default::default()),
        Compression::ZSTD(ZstdLevel::default()),
    ];
    for compression in compressions {
        let made = table("a.parquet", "");
        write_test_file(&made.path, compression);
        let (rows, faults) = made.read().unwrap();
        assert_eq!(lines(&rows), expected_lines(), "{compression}");
        assert_eq!(faults, []);
    }
}

#[test]
fn a_parquet_file_is_understood() {
    let made = table("a.parquet", "");
    write_test_file(&made.path, Compression::SNAPPY);
    let text = made.understand().to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "a.parquet: Parquet, 4 rows");
    assert_eq!(lines[1], "id:     id (no value twice in 4 rows)");
    assert!(
        lines[3]
            .starts_with("fields: title (text, 2 gaps), pages (integer, 2 gaps), price (number")
    );
    assert!(
        text.contains("score (number, 2 gaps, counting `NaN`)"),
        "{text}"
    );
    assert_eq!(lines[4], "kept:   o (holds objects)");
}

fn fill(path: &Path, output: &Path, values: &[(u64, &str, &str)]) -> WrittenTable {
    let sample = Sample::read(path).unwrap();
    let understanding = webfill_table::infer_structure(&sample, &ColumnChoices::default()).unwrap();
    let mut last = (0, 0);
    let mut fill = |row: u64, column: usize| {
        assert!((row, column) > last, "row by row");
        last = (row, column);
        let name = &understanding.columns[column].name;
        let found = values
            .iter()
            .find(|(of_row, of, _)| *of_row == row && of == name);
        found.map(|(_, _, value)| (*value).to_owned())
    };
    webfill_table::write_filled_table(path, output, &understanding, &mut fill).unwrap()
}

#[test]
fn gaps_are_filled_in_the_types_of_the_columns_and_nothing_else_changes() {
    let made = table("a.parquet", "");
    write_test_file(&made.path, Compression::SNAPPY);
    let values: &[(u64, &str, &str)] = &[
        (2, "title", "Emma"),
        (4, "title", "Dune"),
        (2, "pages", "32767"),
        (2, "price", "-7.5"),
        (2, "large", "12345678.901"),
        (2, "born", "2024-02-29"),
        (2, "seen", "2024-01-01T12:00:00+02:00"),
        (2, "local", "2024-01-01"),
        (2, "clock", "23:59:59.5"),
        (2, "sold", "false"),
        (2, "score", "1.5"),
        (2, "weight", "2"),
        (2, "count", "18446744073709551614"),
        (2, "key", "ffffffff-0000-0000-0000-000000000001"),
        (2, "tags", "[\"p\",\"q\"]"),
        (4, "tags", "r"),
    ];
    let written = fill(&made.path, &made.output(), values);
    assert_eq!(
        (written.filled_count, written.refused_count),
        (16, 0),
        "{written:?}"
    );
    let mut after = expected_lines();
    after[1] = String::from(
        "2: #1 · Emma · #32767 · #-7.50 · #12345678.901 · @2024-02-29 · @2024-01-01T10:00:00Z · @2024-01-01T00:00:00 \
         · @23:59:59.5 · #false · #1.5 · #2 · #18446744073709551614 · ffffffff-0000-0000-0000-000000000001 · [p q] · null",
    );
    after[3] = format!("4: #3 · Dune · {NOTHING} · ∅ · ∅ · ∅ · ∅ · [r] · null");
    assert_eq!(lines(&read(&made.output()).unwrap().0), after);
    let open = |path: &Path| SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let (before, after) = (open(&made.path), open(&made.output()));
    let (old, new) = (before.metadata(), after.metadata());
    assert_eq!(old.file_metadata().schema(), new.file_metadata().schema());
    let metadata = new.file_metadata().key_value_metadata();
    assert_eq!(old.file_metadata().key_value_metadata(), metadata);
    assert_eq!(new.num_row_groups(), 2);
    for group in 0..2 {
        for (old, new) in old
            .row_group(group)
            .columns()
            .iter()
            .zip(new.row_group(group).columns())
        {
            assert_eq!(old.compression(), new.compression());
        }
        // Values of types that the reader does not support, such as objects, are copied.
        let objects = |file: &SerializedFileReader<File>| {
            let rows = file.get_row_iter(None).unwrap();
            let shown = rows.map(|row| row.unwrap().to_string());
            shown
                .map(|row| row.split("o: ").last().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(objects(&before), objects(&after));
    }
}

#[test]
fn a_file_without_a_page_index_is_filled_and_gets_none() {
    let made = table("a.parquet", "");
    let properties = WriterProperties::builder()
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true);
    write_test_file_with(&made.path, properties);
    fill(&made.path, &made.output(), &[(2, "title", "Emma")]);
    let filled = &lines(&read(&made.output()).unwrap().0)[1];
    assert!(filled.starts_with("2: #1 · Emma · "), "{filled}");
    let file = SerializedFileReader::new(File::open(made.output()).unwrap()).unwrap();
    let columns = file
        .metadata()
        .row_groups()
        .iter()
        .flat_map(|group| group.columns());
    assert!(
        columns
            .map(|column| column.offset_index_offset())
            .all(|offset| offset.is_none())
    );
}

#[test]
fn a_value_that_does_not_fit_the_type_is_refused() {
    let made = table("a.parquet", "");
    write_test_file(&made.path, Compression::SNAPPY);
    let values: &[(u64, &str, &str)] = &[
        (2, "pages", "many"),
        (2, "price", "7.555"),
        (2, "large", "1000000000"),
        (2, "born", "2024-02-30"),
        (2, "seen", "2024-01-01T12:00:00"),
        (2, "local", "2024-01-01T12:00:00Z"),
        (2, "clock", "25:00"),
        (2, "sold", "yes"),
        (2, "score", "1,5"),
        (2, "count", "-1"),
        (2, "key", "nonsense"),
        (4, "pages", "32768"),
    ];
    let written = fill(&made.path, &made.output(), values);
    assert_eq!(written.filled_count, 0);
    let refused: Vec<&str> = written
        .refusals
        .iter()
        .map(|one| one.value.as_str())
        .collect();
    assert_eq!(
        refused,
        values
            .iter()
            .map(|(_, _, value)| *value)
            .collect::<Vec<_>>()
    );
    assert_eq!(lines(&read(&made.output()).unwrap().0), expected_lines());
}

#[test]
fn broken_files_are_errors() {
    let made = table("a.parquet", "");
    write_test_file(&made.path, Compression::SNAPPY);
    let whole = std::fs::read(&made.path).unwrap();
    for end in [4, 8, whole.len() / 2, whole.len() - 1] {
        let cut = table("b.parquet", &whole[..end]);
        let error = webfill_table::open(&cut.path).err().unwrap().to_string();
        assert!(error.contains("broken Parquet"), "{error}");
    }
    // Damages each byte in turn. Reading must end without a panic: with an error, or with at most the four rows.
    for at in (8..whole.len()).step_by(1) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x5a;
        let broken = table("c.parquet", bytes);
        if let Ok((rows, _)) = broken.read() {
            assert!(rows.len() <= 4);
        }
    }
}
