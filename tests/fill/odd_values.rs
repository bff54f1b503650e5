//! Tests columns where some pages have another text in place of the value, columns whose pages have other words than the
//! table, and rows that lack cells.

use webfill_tests::run::Run;
use webfill_tests::site::{Page, Reply, Web, page, status};
use webfill_tests::workplace::Workplace;

use super::made_web::{read_evidence, read_rows};

const LAMPS: usize = 48;

/// Every sixth page has a range of weights, and every tenth one no price.
fn weight_text(lamp: usize) -> String {
    match lamp % 6 {
        5 => format!("{} - {} g", weight(lamp) - 10, weight(lamp) + 10),
        _ => format!("{} g", weight(lamp)),
    }
}

fn weight(lamp: usize) -> usize {
    100 + lamp * 37 % 811
}

fn maker(lamp: usize) -> &'static str {
    ["Acorn", "Birch", "Cedar", "Dogwood", "Elm"][lamp * 7 % 11 % 5]
}

fn maker_text(lamp: usize) -> &'static str {
    match lamp % 10 {
        7 => "unknown",
        _ => maker(lamp),
    }
}

fn is_in_stock(lamp: usize) -> bool {
    (lamp * lamp * 5 % 23).is_multiple_of(2)
}

fn language(lamp: usize) -> (&'static str, &'static str) {
    [("en", "English"), ("de", "German"), ("fr", "French")][lamp * 5 % 13 % 3]
}

/// The true values of a lamp: weight, maker, stock, language of its manual.
fn true_values(lamp: usize) -> [String; 4] {
    [
        weight(lamp).to_string(),
        maker(lamp).to_owned(),
        u8::from(is_in_stock(lamp)).to_string(),
        language(lamp).0.to_owned(),
    ]
}

fn serve_lamps(web: &Web) {
    web.site("lamps.example").serve_otherwise(|request| -> Reply {
        let lamp: Option<usize> = request
            .path
            .strip_prefix("/lamp/")
            .and_then(|number| number.parse().ok());
        let Some(lamp) = lamp else {
            return page("Nothing here").status(404).into();
        };
        let stock = if is_in_stock(lamp) { "On the shelf" } else { "Sold out" };
        let text = format!(
            "<html><head><title>Lamps</title></head><body><h1>Lamp {lamp} of the series</h1><table>\
             <tr><th>Weight</th><td>{}</td></tr><tr><th>Maker</th><td>{}</td></tr>\
             <tr><th>Availability</th><td class=stock>{stock}</td></tr><tr><th>Manual</th><td>{}</td></tr>\
             <tr><th>Rating</th><td>{}</td></tr></table></body></html>",
            weight_text(lamp),
            maker_text(lamp),
            language(lamp).1,
            lamp * 3 % 7 % 5 + 1,
        );
        let page: Page = status(200)
            .header("content-type", "text/html; charset=utf-8")
            .body(text);
        page.into()
    });
}

fn fill(work: &Workplace, web: &Web) -> Run {
    Run::new(["fill", "lamps.csv", "--delay", "0", "--progress", "none"])
        .arg("--allow-private-networks")
        .args(web.resolve_args())
        .in_folder(work.path("."))
}

/// The row of a lamp. Two of five values are gaps.
fn row(lamp: usize) -> String {
    let values = true_values(lamp);
    let cells = values
        .iter()
        .enumerate()
        .map(|(field, value)| match (lamp * 3 + field * 7) % 5 {
            0 | 3 => "",
            _ => value.as_str(),
        });
    let cells: Vec<&str> = cells.collect();
    format!(
        "l{lamp},http://lamps.example/lamp/{lamp},{}\n",
        cells.join(",")
    )
}

const HEAD: &str = "id,link,weight,maker,in_stock,language\n";

#[test]
fn odd_texts_and_other_words_cost_no_column_and_give_no_wrong_value() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_lamps(&web);
    let rows: String = (0..LAMPS).map(row).collect();
    work.write("lamps.csv", format!("{HEAD}{rows}"));
    fill(&work, &web).finish().expect_code(0);
    let mut lost = Vec::new();
    for (lamp, row) in read_rows(&work, "lamps.filled.csv").iter().enumerate() {
        for (field, value) in true_values(lamp).iter().enumerate() {
            let is_odd = match field {
                0 => lamp % 6 == 5,
                1 => lamp % 10 == 7,
                _ => false,
            };
            let written = &row[2 + field];
            let is_gap = written.is_empty();
            assert!(
                is_gap || written == value,
                "lamp {lamp}: {written}, not {value}"
            );
            if is_gap && !is_odd {
                lost.push(format!("lamp {lamp}: {value}"));
            }
        }
    }
    assert!(
        lost.is_empty(),
        "{}\n{:#?}",
        lost.join("\n"),
        read_evidence(&work).first()
    );
}

#[test]
fn a_row_that_lacks_its_last_cells_is_completed_and_reported() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_lamps(&web);
    let mut rows: Vec<String> = (0..LAMPS).map(row).collect();
    // Without its last two cells, without its link, with cells too many, and a note.
    rows[3] = format!("l3,http://lamps.example/lamp/3,{},\n", weight(3));
    rows[4] = String::from("l4,\"http://lamps.example/lamp/4\"\r\n");
    rows[9] = String::from("l9,120\n");
    rows[10] = format!("l10,http://lamps.example/lamp/10,{},x,y,z,zz\n", weight(10));
    rows[12] = rows[12].replace('\n', ",,\n");
    rows.push(String::from("48 lamps\n"));
    work.write("lamps.csv", format!("{HEAD}{}", rows.concat()));
    let run = fill(&work, &web).finish().expect_code(0);
    let filled = std::fs::read_to_string(work.path("lamps.filled.csv")).unwrap();
    let lines: Vec<&str> = filled.split_inclusive('\n').collect();
    let [weight, maker, stock, language] = true_values(3);
    assert_eq!(
        lines[4],
        format!("l3,http://lamps.example/lamp/3,{weight},{maker},{stock},{language}\n")
    );
    let values = true_values(4).join(",");
    assert_eq!(
        lines[5],
        format!("l4,\"http://lamps.example/lamp/4\",{values}\r\n")
    );
    assert_eq!(
        (lines[10], lines[11], lines[49]),
        (&*rows[9], &*rows[10], &*rows[48])
    );
    let values = true_values(12).join(",");
    assert_eq!(
        lines[13],
        format!("l12,http://lamps.example/lamp/12,{values},,\n")
    );
    for reported in [
        "line 5: the row has 4 cells, but the table 6 columns: the others count as empty",
        "line 6: the row has 2 cells",
        "line 11: the row has 2 cells, but the table 6 columns, and it lacks its id or a link",
        "line 12: the row has 7 cells, but the table 6 columns",
        "line 50: the row has 1 cell",
    ] {
        assert!(
            run.stderr.contains(reported),
            "{reported} in {}",
            run.stderr
        );
    }
}
