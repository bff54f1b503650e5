use super::*;

/// The position of the first page that counts as a repetition of earlier pages.
fn first_repetition(pages: impl Iterator<Item = (String, String)>) -> Option<usize> {
    let mut repeats = Repeats::default();
    let mut pages = pages.map(|(path, text)| {
        let url = Url::parse(&format!("https://site.example{path}")).unwrap();
        let page = Page {
            scope: 1,
            url: &url,
            address: Address::from_url(&url),
            shown: &blocks::visible_content(&text),
            fields: None,
            links: &[],
        };
        repeats.find_repetition(&page).is_some()
    });
    pages.position(|is_repetition| is_repetition)
}

#[test]
fn only_pages_with_the_content_of_many_others_are_repetitions() {
    let same = |n: usize| (format!("/{n}"), "<p>Welcome <a href=x>on</a>".to_owned());
    assert_eq!(first_repetition((0..20).map(same)), Some(SAME - 1));
    let session = |n: usize| {
        let id = format!("ab{n}");
        (format!("/p?PHPSESSID={id}"), format!("<p>Session {id}"))
    };
    assert_eq!(first_repetition((0..20).map(session)), Some(SAME - 1));
    let echo = |n: usize| {
        let address = format!("/p?r=x{n}y");
        (address.clone(), format!("<p>You are at {address}"))
    };
    assert_eq!(first_repetition((0..20).map(echo)), Some(SAME - 1));
    let circle_that_says_so = |n: usize| {
        let path = "/a/b".repeat(n + 1);
        (path.clone(), format!("<p>Not found: {path}"))
    };
    assert_eq!(
        first_repetition((0..20).map(circle_that_says_so)),
        Some(SAME - 1)
    );
    let circle = |n: usize| ("/a".repeat(n + 1), format!("<p>Visit {n}"));
    assert_eq!(first_repetition((0..20).map(circle)), Some(2 + SAME - 1));
    for honest in [
        (|n| (format!("/item/{n}"), format!("<p>Item {n}"))) as fn(usize) -> (String, String),
        |n| {
            (
                format!("/list?page={}", 100 + n),
                format!("<p>Page {}", 100 + n),
            )
        },
        |n| (format!("/strip/{n}"), format!("<p>next<img src=/{n}.png>")),
        |n| {
            (
                format!("/list?page={n}"),
                format!("<title>Page {n}</title><p>List"),
            )
        },
        |n| (format!("/calendar?month={n}"), format!("<p>Month {n}")),
        |n| (format!("/item?sid=7&id={n}"), format!("<p>Item {n}")),
        |_| ("/".to_owned(), "<p>The same URL again".to_owned()),
    ] {
        assert_eq!(first_repetition((0..50).map(honest)), None);
    }
}

#[test]
fn long_rows_of_pages_without_anything_new_are_repetitions() {
    let month = |n: usize| (format!("/calendar?month={n}"), format!("<p>Month {n}"));
    let found = first_repetition((0..100).map(month));
    assert_eq!(found, Some(LONG_ROW as usize + 1));
    let priced = |n: usize| {
        let price = 50 + n * 7_919 % 1_000;
        (format!("/item/{n}"), format!("<p>Item {n}<p>{price} EUR"))
    };
    assert_eq!(first_repetition((0..500).map(priced)), None);
}
