//! Tests that a written table equals the original, except for the cells that got a value.

use std::collections::HashMap;
use std::path::Path;

use crate::common::{lines, table};
use webfill_table::{Cell, WrittenTable};

/// A new value: the row number, the name of the column, and the text.
type Value = (u64, &'static str, &'static str);

/// Fills the gaps of a table, and returns the written text.
fn fill(
    name: &str,
    text: impl AsRef<[u8]>,
    values: &[(u64, &str, &str)],
) -> (Vec<u8>, WrittenTable) {
    let input = table(name, text);
    let understanding = input.understand();
    let mut fill = |row: u64, column: usize| {
        let name = &understanding.columns[column].name;
        let found = values
            .iter()
            .find(|(of_row, of, _)| *of_row == row && of == name);
        found.map(|(_, _, value)| (*value).to_owned())
    };
    let written =
        webfill_table::write_filled_table(&input.path, &input.output(), &understanding, &mut fill)
            .unwrap();
    assert_eq!(std::fs::read_dir(input.folder.path()).unwrap().count(), 2);
    (std::fs::read(input.output()).unwrap(), written)
}

#[test]
fn values_are_written_in_the_form_of_their_column() {
    let table: [(&str, &str, &[Value], &str); 18] = [
        (
            "a.csv",
            "id,name\n1,\n2,x\n",
            &[(2, "name", "y")],
            "id,name\n1,y\n2,x\n",
        ),
        (
            "a.csv",
            "id,name\r\n1,\r\n2,x",
            &[(2, "name", "y, \"z\"")],
            "id,name\r\n1,\"y, \"\"z\"\"\"\r\n2,x",
        ),
        (
            "a.csv",
            "id,name,z\n1,,q\n2,x,r\n",
            &[(2, "name", "l1\nl2")],
            "id,name,z\n1,\"l1\nl2\",q\n2,x,r\n",
        ),
        (
            "a.csv",
            "id,name\n\"1\",\"\"\n\"2\",\"x\"\n",
            &[(2, "name", "y")],
            "id,name\n\"1\",\"y\"\n\"2\",\"x\"\n",
        ),
        (
            "a.csv",
            "id,name\n'1',''\n'2','x'\n'3','y'\n",
            &[(2, "name", "it's")],
            "id,name\n'1','it''s'\n'2','x'\n'3','y'\n",
        ),
        (
            "a.csv",
            "\"id\",\"name\"\n\"1\",\n\"2\",\"x\"\n\"3\",\n",
            &[(2, "name", "y"), (4, "name", "z")],
            "\"id\",\"name\"\n\"1\",\"y\"\n\"2\",\"x\"\n\"3\",\"z\"\n",
        ),
        (
            "a.csv",
            "id,name\n1,\n2,\"x, y\"\n",
            &[(2, "name", "z")],
            "id,name\n1,z\n2,\"x, y\"\n",
        ),
        (
            "a.csv",
            "id,name\n1,\n2,\"x\"\n3,y\n",
            &[(2, "name", "z")],
            "id,name\n1,z\n2,\"x\"\n3,y\n",
        ),
        (
            "a.csv",
            "id,n\n1,\"a\\\"b, c\"\n2,\n",
            &[(3, "n", "x\"y\\")],
            "id,n\n1,\"a\\\"b, c\"\n2,\"x\\\"y\\\\\"\n",
        ),
        (
            "a.csv",
            "id;n\n1;NA\n2;5\n3;6\n",
            &[(2, "n", "7"), (3, "n", "never")],
            "id;n\n1;7\n2;5\n3;6\n",
        ),
        (
            "a.csv",
            "id;t\n1;a|b\n2;b|c\n3;a|c\n4;\n",
            &[(5, "t", "[\"a\",\"c\"]")],
            "id;t\n1;a|b\n2;b|c\n3;a|c\n4;a|c\n",
        ),
        (
            "a.csv",
            "id,n\n1\n2,\n\n3,\"x\n",
            &[(3, "n", "y"), (2, "n", "no")],
            "id,n\n1\n2,y\n\n3,\"x\n",
        ),
        (
            "a.jsonl",
            "{\"id\": 1, \"n\": null}\n{\"id\": 2}\n{\"n\":5,\"id\":3}\n",
            &[(1, "n", "7"), (2, "n", "8")],
            "{\"id\": 1, \"n\": 7}\n{\"id\": 2, \"n\": 8}\n{\"n\":5,\"id\":3}\n",
        ),
        (
            "a.jsonl",
            "{\"id\":1,\"n\":\"\"}\n{\"id\":2,\"n\":\"x\"}\n",
            &[(1, "n", "\"7\"")],
            "{\"id\":1,\"n\":\"\\\"7\\\"\"}\n{\"id\":2,\"n\":\"x\"}\n",
        ),
        (
            "a.jsonl",
            "{\"id\": 1, \"n\": NaN}\n{\"id\": 2, \"n\": -Infinity}\n{\"n\":5,\"id\":3}\n",
            &[(1, "n", "7"), (2, "n", "8")],
            "{\"id\": 1, \"n\": 7}\n{\"id\": 2, \"n\": 8}\n{\"n\":5,\"id\":3}\n",
        ),
        (
            "a.jsonl",
            "{\"id\":1,\"t\":[]}\n{\"id\":2,\"t\":[\"x\"]}\n",
            &[(1, "t", "[\"a\",\"b\"]")],
            "{\"id\":1,\"t\":[\"a\",\"b\"]}\n{\"id\":2,\"t\":[\"x\"]}\n",
        ),
        (
            "a.json",
            "[\n  {\n    \"id\": 1,\n    \"b\": true\n  },\n  {\n    \"id\": 2\n  }\n]\n",
            &[(2, "b", "false")],
            "[\n  {\n    \"id\": 1,\n    \"b\": true\n  },\n  {\n    \"id\": 2,\n    \"b\": false\n  }\n]\n",
        ),
        (
            "a.json",
            "[{\"id\":1,\"b\":1.5},{}]",
            &[(2, "b", "2"), (2, "id", "7")],
            "[{\"id\":1,\"b\":1.5},{\"id\": 7, \"b\": 2}]",
        ),
    ];
    for (name, text, values, expected) in table {
        let (output, written) = fill(name, text, values);
        assert_eq!(String::from_utf8(output).unwrap(), expected, "{written:?}");
        assert_eq!(written.refused_count, 0, "{written:?}");
    }
}

#[test]
fn a_value_that_does_not_fit_is_refused_and_reported() {
    let table: [(&str, &[u8], &str, &str); 7] = [
        (
            "a.jsonl",
            b"{\"id\":1,\"n\":null}\n{\"id\":2,\"n\":5}\n",
            "five",
            "no number",
        ),
        (
            "a.jsonl",
            b"{\"id\":1,\"n\":null}\n{\"id\":2,\"n\":5}\n",
            "5.5",
            "no whole number",
        ),
        (
            "a.jsonl",
            b"{\"id\":1,\"n\":null}\n{\"id\":2,\"n\":true}\n",
            "yes",
            "true or false",
        ),
        (
            "a.csv",
            b"id,n\n1,\n2,\xeb\n",
            "\u{4e2d}",
            "windows-1252 has no",
        ),
        ("a.csv", b"id,n\n1,\n2,x\n", "a\0b", "NUL"),
        ("a.csv", b"id,n\n1,\n2,x\n", " ", "empty"),
        (
            "a.tsv",
            b"id\tn\n1\t\n2\t\"x\"y\n3\t\"z\"z\n",
            "a\tb",
            "delimiter",
        ),
    ];
    for (name, text, value, reason) in table {
        let (output, written) = fill(name, text, &[(1, "n", value), (2, "n", value)]);
        assert!(output == text, "{written:?}");
        assert_eq!(
            (written.refused_count, written.filled_count),
            (1, 0),
            "{value}"
        );
        assert!(written.refusals[0].reason.contains(reason), "{written:?}");
    }
}

#[test]
fn known_values_are_changed_only_on_request() {
    let input = table("a.csv", "id,n\n1,x\n2,\n");
    let understanding = input.understand();
    let mut change = |row: u64, column: usize, cell: &Cell, is_gap: bool| {
        assert_eq!(is_gap, (row, column) == (3, 1), "{cell:?}");
        (column == 1).then(|| format!("new {row}"))
    };
    webfill_table::write_changed_table(&input.path, &input.path, &understanding, &mut change)
        .unwrap();
    assert_eq!(
        std::fs::read_to_string(&input.path).unwrap(),
        "id,n\n1,new 2\n2,new 3\n"
    );
}

#[test]
fn a_table_that_changed_meanwhile_is_not_written() {
    let input = table("a.csv", "id,n\n1,x\n");
    let understanding = input.understand();
    std::fs::write(&input.path, "id,m\n1,x\n").unwrap();
    let error = webfill_table::write_filled_table(
        &input.path,
        &input.output(),
        &understanding,
        &mut |_, _| None,
    );
    assert!(error.unwrap_err().to_string().contains("its columns"));
    assert!(!input.output().exists());
}

/// A generated table: its cells, and its text in a random dialect.
struct Made {
    name: &'static str,
    text: Vec<u8>,
}

fn make_table(random: &mut fastrand::Rng) -> Made {
    let columns = random.usize(2..6);
    let rows = random.usize(0..40);
    let pieces = [
        "a", "b c", "ü€", ",", ";", "|", "\t", "\"", "'", "\n", "\r\n", "\\", "5", "x y z", "NA",
        "-",
    ];
    let cell = |random: &mut fastrand::Rng| -> String {
        match random.u8(0..5) {
            0 => String::new(),
            1 => random.u32(..1000).to_string(),
            _ => (0..random.usize(0..5))
                .map(|_| pieces[random.usize(..pieces.len())])
                .collect(),
        }
    };
    let mut cells: Vec<Vec<String>> =
        vec![(0..columns).map(|column| format!("name{column}")).collect()];
    for row in 0..rows {
        let mut row: Vec<String> = std::iter::once(format!("k{row}"))
            .chain((1..columns).map(|_| cell(random)))
            .collect();
        row.truncate(columns);
        cells.push(row);
    }
    let json = random.u8(0..4) == 0;
    let text = match json {
        true => json_text(&cells, random),
        false => delimited_text(&cells, random),
    };
    let broken = ["k9,x", "\"", "k8\"\n", "{\"a\":", "\"x\"y,\"z\"", "{}"];
    let text = match random.u8(0..5) {
        0 => format!("{text}\n{}\n", broken[random.usize(..broken.len())]),
        _ => text,
    };
    let bytes = match random.u8(0..6) {
        0 => [
            &[0xff, 0xfe][..],
            &text
                .encode_utf16()
                .flat_map(u16::to_le_bytes)
                .collect::<Vec<u8>>(),
        ]
        .concat(),
        1 => [&[0xef, 0xbb, 0xbf][..], text.as_bytes()].concat(),
        2 if !json => encoding_rs::WINDOWS_1252.encode(&text).0.into_owned(),
        _ => text.into_bytes(),
    };
    Made {
        name: if json { "a.jsonl" } else { "a.csv" },
        text: bytes,
    }
}

fn delimited_text(cells: &[Vec<String>], random: &mut fastrand::Rng) -> String {
    let delimiter = [",", ";", "\t", "|"][random.usize(..4)];
    let quote = ["\"", "'"][usize::from(random.u8(0..4) == 0)];
    let escape = [quote, "\\"][usize::from(random.u8(0..4) == 0)];
    let quotes_all = random.bool();
    let end = ["\n", "\r\n"][random.usize(..2)];
    let written = |cell: &String| {
        let needs = quotes_all || cell.contains([',', ';', '\t', '|', '"', '\'', '\n', '\r', '\\']);
        let escaped = match escape {
            "\\" => cell.replace('\\', "\\\\"),
            _ => cell.clone(),
        };
        let escaped = escaped.replace(quote, &format!("{escape}{quote}"));
        if needs {
            format!("{quote}{escaped}{quote}")
        } else {
            cell.clone()
        }
    };
    let row = |row: &Vec<String>| row.iter().map(written).collect::<Vec<_>>().join(delimiter);
    let rows: Vec<String> = cells.iter().map(row).collect();
    let last = ["", end][random.usize(..2)];
    format!("{}{last}", rows.join(end))
}

fn json_text(cells: &[Vec<String>], random: &mut fastrand::Rng) -> String {
    let mut text = String::from("{\"name0\":\"first\",\"name1\":\"x\"}\n");
    for row in &cells[1..] {
        let members = row.iter().zip(&cells[0]).filter(|_| random.u8(0..5) > 0);
        let members: Vec<String> = members
            .map(|(cell, name)| {
                let value = match cell.is_empty() {
                    true => String::from("null"),
                    false => serde_json::Value::from(cell.as_str()).to_string(),
                };
                format!("\"{name}\": {value}")
            })
            .collect();
        text.push_str(&format!("{{{}}}\n", members.join(", ")));
    }
    text
}

/// The cells of a table by row number and column, and the number of its faults.
fn cells_of(path: &Path) -> (HashMap<(u64, usize), Cell>, usize) {
    let (rows, faults) = crate::common::read(path).unwrap();
    let mut cells = HashMap::new();
    for row in rows {
        for (column, cell) in row.cells.into_iter().enumerate() {
            cells.insert((row.number, column), cell);
        }
    }
    (cells, faults.len())
}

#[test]
fn only_filled_cells_of_generated_tables_change() {
    let rounds =
        std::env::var("WEBFILL_TABLE_ROUNDS").map_or(600, |rounds| rounds.parse().unwrap());
    let (mut all_filled, mut all_refused, mut all_compared) = (0, 0, 0);
    for seed in 0..rounds {
        let mut random = fastrand::Rng::with_seed(seed);
        let made = make_table(&mut random);
        let input = table(made.name, &made.text);
        let understanding = input.understand();
        let output = input.output();
        webfill_table::write_filled_table(&input.path, &output, &understanding, &mut |_, _| None)
            .unwrap();
        let same = std::fs::read(&output).unwrap();
        assert!(
            same == made.text,
            "seed {seed}: {}",
            String::from_utf8_lossy(&made.text)
        );

        let values = [
            "plain",
            "with, comma; and | pipe",
            "q\"u'o",
            "two\nlines",
            " blank ",
            "tab\there",
            "back\\slash\\",
            "ü",
        ];
        let mut filled = HashMap::new();
        let mut fill = |row: u64, column: usize| {
            let value = random
                .bool()
                .then(|| values[random.usize(..values.len())].to_owned());
            if let Some(value) = &value {
                filled.insert((row, column), value.clone());
            }
            value
        };
        let written =
            webfill_table::write_filled_table(&input.path, &output, &understanding, &mut fill)
                .unwrap();
        for refusal in &written.refusals {
            filled.remove(&(refusal.row, refusal.column));
        }
        all_filled += filled.len();
        all_refused += written.refusals.len();
        assert_eq!(written.filled_count, filled.len() as u64, "seed {seed}");
        let again =
            webfill_table::Sample::from_reader(webfill_table::open(&output).unwrap()).unwrap();
        if again.format != understanding.format {
            // In a table of few rows, a new value may change the detected dialect. Then the cells cannot be compared,
            // so it is skipped.
            continue;
        }
        all_compared += 1;
        let (before, faults) = cells_of(&input.path);
        let (after, faults_after) = cells_of(&output);
        assert_eq!(faults, faults_after, "seed {seed}");
        let lines_before: Vec<u64> = sorted_row_numbers(&before);
        let lines_after: Vec<u64> = sorted_row_numbers(&after);
        assert_eq!(lines_before.len(), lines_after.len(), "seed {seed}");
        // A new value of several lines shifts the line numbers after it.
        for (from, to) in lines_before.iter().zip(&lines_after) {
            for (column, of) in understanding.columns.iter().enumerate() {
                // A new member of an object may make its column appear earlier.
                let is_json = made.name == "a.jsonl";
                let to_column = match is_json {
                    true => again.columns.iter().position(|other| other == of).unwrap(),
                    false => column,
                };
                let expected = filled
                    .get(&(*from, column))
                    .map(|value| Cell::Text(value.clone()));
                let expected = expected.unwrap_or_else(|| before[&(*from, column)].clone());
                assert_eq!(
                    after[&(*to, to_column)],
                    expected,
                    "seed {seed}, line {from}, column {column}: {}",
                    String::from_utf8_lossy(&made.text)
                );
            }
        }
    }
    assert!(all_compared * 10 > rounds * 9, "{all_compared} of {rounds}");
    assert!(
        all_filled > 1_000 && all_refused < all_filled,
        "{all_filled} {all_refused}"
    );
}

fn sorted_row_numbers(cells: &HashMap<(u64, usize), Cell>) -> Vec<u64> {
    let mut rows: Vec<u64> = cells
        .keys()
        .filter(|(_, column)| *column == 0)
        .map(|(row, _)| *row)
        .collect();
    rows.sort_unstable();
    rows
}

#[test]
fn row_numbers_stay_the_same_when_a_table_is_read_again() {
    let (output, _) = fill("a.csv", "id,n\n1,\n2,\n", &[(2, "n", "x"), (3, "n", "y")]);
    let written = table("a.csv", output);
    assert_eq!(lines(&written.read().unwrap().0), ["2: 1 · x", "3: 2 · y"]);
}
