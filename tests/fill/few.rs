//! Few known values: a rule that one or two rows show is used where another kind of anchor confirms it on all pages.

use webfill_tests::site::Web;
use webfill_tests::workplace::Workplace;

use super::made_web::{BOOKS, Oddities, books, fill, rows, serve, truth, url};

/// The first `known` books of each site know everything, the others nothing.
fn table(known: usize) -> String {
    let mut text = String::from("id,link,title,author,year,publisher,note\n");
    for book in 0..books() {
        let cells = match book % BOOKS < known {
            true => truth(book).join(","),
            false => String::from(",,,"),
        };
        text += &format!("b{book},{},{cells},mine\n", url(book));
    }
    text
}

#[test]
fn one_row_that_knows_its_values_is_enough_where_anchors_agree() {
    let (work, web) = (Workplace::new(), Web::start());
    serve(&web, &Oddities::default());
    work.write("books.csv", table(1));
    fill(&work, &web).finish().expect(0);
    let (mut filled, mut gaps) = (0, 0);
    for (book, row) in rows(&work, "books.filled.csv").iter().enumerate() {
        for (field, value) in truth(book).iter().enumerate() {
            let written = &row[2 + field];
            gaps += usize::from(book % BOOKS > 0);
            filled += usize::from(book % BOOKS > 0 && !written.is_empty());
            assert!(
                written.is_empty() || written == value,
                "book {book}: {written} instead of {value}"
            );
        }
    }
    assert!(filled * 10 >= gaps * 6, "{filled} of {gaps}");
}
