//! Tests that known values which the pages contradict are listed, and are replaced only if a person accepts this.

use std::collections::BTreeMap;

use webfill_tests::run::Run;
use webfill_tests::site::Web;
use webfill_tests::workplace::Workplace;

use super::made_web::{
    Oddities, book_count, book_url, fill_command, is_gap, read_rows, serve_books, table_with_gaps,
    true_values,
};

/// The wrong values of the table, by book and field. One known value in ten is replaced by the value of another book.
fn wrong_values() -> BTreeMap<(usize, usize), String> {
    let known = (0..book_count()).flat_map(|book| (0..4).map(move |field| (book, field)));
    let known = known.filter(|&(book, field)| !is_gap(book, field));
    let wrong = known.enumerate().filter(|(number, _)| number % 10 == 3);
    wrong
        .map(|(_, (book, field))| {
            let mut others =
                (1..).map(|step| true_values((book + step * 7) % book_count())[field].clone());
            (
                (book, field),
                others
                    .find(|other| *other != true_values(book)[field])
                    .unwrap(),
            )
        })
        .collect()
}

#[test]
fn wrong_known_values_are_doubted_and_not_overwritten() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_books(&web, &Oddities::default());
    let wrong = wrong_values();
    work.write("books.csv", table_with_gaps(&wrong));
    fill_command(&work, &web)
        .args(["--check", "all"])
        .finish()
        .expect_code(0);
    for (book, row) in read_rows(&work, "books.filled.csv").iter().enumerate() {
        for field in 0..4 {
            let expected = wrong.get(&(book, field)).cloned();
            assert_eq!(
                row[2 + field],
                expected.unwrap_or_else(|| true_values(book)[field].clone()),
                "book {book}"
            );
        }
    }
    let doubts = std::fs::read_to_string(work.path("books.doubts.csv")).unwrap();
    let listed: Vec<&str> = doubts.lines().skip(1).collect();
    assert_eq!(listed.len(), wrong.len(), "{doubts}");
    for line in &listed {
        let cells: Vec<&str> = line.split(',').collect();
        let book: usize = cells[1][1..].parse().unwrap();
        let field = ["title", "author", "year", "publisher"]
            .iter()
            .position(|title| title == &cells[2])
            .unwrap();
        assert_eq!(cells[3], wrong[&(book, field)]);
        assert_eq!(cells[4], true_values(book)[field]);
    }
    // Half of the doubts are accepted, one is rejected, and the others stay open.
    let mut answered = vec![doubts.lines().next().unwrap().to_owned()];
    let accepted = listed.len() / 2;
    answered.extend(listed.iter().enumerate().map(|(at, line)| match at {
        at if at < accepted => format!("{line}accept"),
        at if at == accepted => format!("{line}reject"),
        _ => (*line).to_owned(),
    }));
    work.write("edited.csv", answered.join("\n") + "\n");
    let before = web.visits().len();
    let run = fill_command(&work, &web)
        .args(["--check", "all", "--doubts", "edited.csv"])
        .finish()
        .expect_code(0);
    let counted = format!("; {accepted} accepted values written");
    assert!(run.stdout.contains(&counted), "{}", run.stdout);
    assert_eq!(web.visits().len(), before);
    let still_wrong = |work: &Workplace| {
        let rows = read_rows(work, "books.filled.csv");
        wrong
            .iter()
            .filter(|((book, field), value)| rows[*book][2 + field] == **value)
            .count()
    };
    assert_eq!(still_wrong(&work), wrong.len() - accepted);
    // A later run does not ask the same questions again, because it knows the answers.
    fill_command(&work, &web)
        .args(["--check", "all"])
        .finish()
        .expect_code(0);
    assert_eq!(still_wrong(&work), wrong.len() - accepted);
    let left = std::fs::read_to_string(work.path("books.doubts.csv")).unwrap();
    assert_eq!(
        left.lines().count() - 1,
        wrong.len() - accepted - 1,
        "{left}"
    );
}

#[test]
fn an_invalid_answer_is_refused_with_a_reason() {
    let work = Workplace::new();
    let web = Web::start();
    work.write("books.csv", table_with_gaps(&BTreeMap::new()));
    for end in ["\n", "\r\n"] {
        let lines = [
            "row,id,column,known,page,confidence,url,excerpt,answer",
            "2,b0,title,a,b,.9,u,e,perhaps",
        ];
        work.write(
            "edited.csv",
            lines.map(|line| line.to_owned() + end).concat(),
        );
        let run = fill_command(&work, &web)
            .args(["--doubts", "edited.csv"])
            .finish()
            .expect_code(2);
        assert!(
            run.stderr.contains("line 2: `perhaps` is no answer"),
            "{}",
            run.stderr
        );
    }
    assert!(web.visits().is_empty());
}

/// Spreadsheets write `b7` as it is, but `007` as `7`. The URL and the column show which doubt a line is about.
#[test]
fn answers_of_a_file_whose_ids_a_spreadsheet_has_changed_are_read() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_books(&web, &Oddities::default());
    let wrong = wrong_values();
    work.write("books.csv", table_with_gaps(&wrong));
    let all = || fill_command(&work, &web).args(["--check", "all"]);
    all().finish().expect_code(0);
    let doubts = std::fs::read_to_string(work.path("books.doubts.csv")).unwrap();
    let mut lines = doubts.lines();
    let mut edited = format!("{}\r\n", lines.next().unwrap());
    for line in lines {
        edited += &format!("{}accept\r\n", line.replacen(",b", ",", 1));
    }
    work.write("edited.csv", edited);
    let run = all()
        .args(["--doubts", "edited.csv"])
        .finish()
        .expect_code(0);
    let counted = format!("; {} accepted values written", wrong.len());
    assert!(run.stdout.contains(&counted), "{}", run.stdout);
    assert!(
        run.stderr.contains("line 2: its values were changed"),
        "{}",
        run.stderr
    );
}

/// Accepts the first two doubts in the file, but changes the page's value in the second one. Returns both doubts as
/// they were listed.
fn accept_two(work: &Workplace) -> Vec<Vec<String>> {
    let doubts = std::fs::read_to_string(work.path("books.doubts.csv")).unwrap();
    let mut lines: Vec<String> = doubts.lines().map(str::to_owned).collect();
    let cells = |line: &String| line.split(',').map(str::to_owned).collect();
    let answered: Vec<Vec<String>> = lines[1..3].iter().map(cells).collect();
    lines[1] += "accept";
    lines[2] = lines[2].replacen(&format!(",{},", answered[1][4]), ",Mangled,", 1) + "accept";
    work.write("books.doubts.csv", lines.join("\n") + "\n");
    answered
}

#[test]
fn answers_follow_their_rows_and_are_not_lost() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_books(&web, &Oddities::default());
    let before = table_with_gaps(&wrong_values());
    work.write("books.csv", &before);
    let all = |run: Run| run.args(["--check", "all"]);
    all(fill_command(&work, &web)).finish().expect_code(0);
    let answered = accept_two(&work);
    // The file contains answers that no run has read. Without `--doubts`, the command would overwrite them, so it must
    // refuse.
    let text = std::fs::read_to_string(work.path("books.doubts.csv")).unwrap();
    let run = all(fill_command(&work, &web)).finish().expect_code(2);
    assert!(
        run.stderr.contains("were not read, 2 of them"),
        "{}",
        run.stderr
    );
    assert_eq!(
        std::fs::read_to_string(work.path("books.doubts.csv")).unwrap(),
        text
    );
    // Two rows are inserted at the top of the table, so the numbers of all rows change.
    let (head, rest) = before.split_once('\n').unwrap();
    let new = "new1,,A,B,1900,C,mine\nnew2,,D,E,1901,F,mine\n";
    work.write("books.csv", format!("{head}\n{new}{rest}"));
    let run = all(fill_command(&work, &web))
        .args(["--doubts", "books.doubts.csv"])
        .finish()
        .expect_code(0);
    assert!(
        run.stderr.contains("its values were changed"),
        "{}",
        run.stderr
    );
    let columns: Vec<&str> = head.split(',').collect();
    let assert_accepted = || {
        let rows = read_rows(&work, "books.filled.csv");
        for cells in &answered {
            let row = rows.iter().find(|row| row[0] == cells[1]).unwrap();
            let column = columns.iter().position(|name| *name == cells[2]).unwrap();
            assert_eq!(row[column], cells[4], "{cells:?}");
        }
        let still_wrong = wrong_values()
            .iter()
            .filter(|((book, field), value)| rows[book + 2][2 + field] == **value)
            .count();
        assert_eq!(still_wrong, wrong_values().len() - 2);
    };
    assert_accepted();
    all(fill_command(&work, &web)).finish().expect_code(0);
    assert_accepted();
    // The doubtful values are correct in this table, so its answers are no longer needed. They are kept and counted.
    work.write("books.csv", table_with_gaps(&BTreeMap::new()));
    let run = all(fill_command(&work, &web)).finish().expect_code(0);
    assert!(run.stdout.contains("2 of your answers"), "{}", run.stdout);
    work.write("books.webfill/answers.json", "[{");
    let run = all(fill_command(&work, &web)).finish().expect_code(1);
    assert!(run.stderr.contains("answers.json"), "{}", run.stderr);
}

#[test]
fn columns_without_gaps_are_compared() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_books(&web, &Oddities::default());
    let is_wrong = |book: usize| book % 12 == 5;
    let mut text = String::from("id,link,title,author,year,publisher\n");
    for book in 0..book_count() {
        let [title, author, year, mut publisher] = true_values(book);
        let year = if is_gap(book, 2) { String::new() } else { year };
        if is_wrong(book) {
            publisher = true_values(book + 1)[3].clone();
        }
        text += &format!(
            "b{book},{},{title},{author},{year},{publisher}\n",
            book_url(book)
        );
    }
    work.write("books.csv", &text);
    let run = || {
        Run::new(["fill", "books.csv", "--delay", "0", "--progress", "none"])
            .arg("--allow-private-networks")
            .args(web.resolve_args())
            .in_folder(work.path("."))
    };
    run().args(["--check", "all"]).finish().expect_code(0);
    let listed = || std::fs::read_to_string(work.path("books.doubts.csv")).unwrap();
    let wrong = (0..book_count()).filter(|&book| is_wrong(book)).count();
    assert_eq!(
        listed().matches(",publisher,").count(),
        wrong,
        "{}",
        listed()
    );
    assert_eq!(listed().lines().count() - 1, wrong, "{}", listed());
    run().args(["--check", "none"]).finish().expect_code(0);
    assert!(!listed().contains(",publisher,"), "{}", listed());
}
