//! Sites with an endless number of URLs, and healthy sites that resemble them.

/// A function that returns the content of a site at a path. `visit` is the number of the request to this site, counted
/// from 1.
pub type Shows = fn(path: &str, visit: u64) -> String;

/// The host without `.example`, the path where the crawl starts, and the content of the pages.
pub type Row = (&'static str, &'static str, Shows);

/// A generated token of hexadecimal digits, different for each number.
fn hex_token(number: u64) -> String {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    format!("{:016x}", mixed ^ (mixed >> 31))
}

/// The last number in a path.
fn last_number(path: &str) -> u64 {
    let mut numbers = path.rsplit(|c: char| !c.is_ascii_digit());
    let last = numbers.find(|digits| !digits.is_empty());
    last.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

fn links_html<const N: usize>(targets: [String; N]) -> String {
    let link = |target: String| format!("<a href='{target}'>on</a> ");
    targets.into_iter().map(link).collect()
}

/// A name of letters only, different for each number.
fn made_name(number: u64) -> String {
    const PARTS: [&str; 16] = [
        "ba", "co", "di", "fu", "ga", "ho", "ki", "lu", "ma", "no", "pe", "ru", "sa", "to", "vi",
        "za",
    ];
    let part = |at: u32| PARTS[((number >> (4 * at)) & 15) as usize];
    [3, 1, 0, 2].map(part).concat()
}

/// Reads the year and the month at the end of a path.
fn parse_month(path: &str) -> (u64, u64) {
    let before = path.trim_end_matches(|c: char| c.is_ascii_digit());
    (
        last_number(before.trim_end_matches(|c: char| !c.is_ascii_digit())),
        last_number(path),
    )
}

fn next_month((year, month): (u64, u64)) -> (u64, u64) {
    (year + month / 12, month % 12 + 1)
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

fn days_table() -> String {
    let cells: String = (1..=31).map(|day| format!("<td>{day}</td>")).collect();
    format!("<table><tr><th>Mo<th>Tu<th>We</tr><tr>{cells}</tr></table>")
}

/// A page with this content. If the chain of `length` pages continues, the page links to the next URL, with `N`
/// replaced by a number.
fn chain_page(path: &str, length: u64, next: &str, content: String) -> String {
    let at = last_number(path);
    match at < length {
        true => content + &links_html([next.replace("N", &(at + 1).to_string())]),
        false => content,
    }
}

pub const TRAPS: [Row; 28] = [
    ("session-counter", "/p?sid=0", |_, visit| {
        let next = |n| {
            format!(
                "/{}?sid={}",
                ["p", "q"][n as usize % 2],
                hex_token(2 * visit + n)
            )
        };
        format!(
            "<p>Welcome, visitor {visit}</p>{}",
            links_html([next(0), next(1)])
        )
    }),
    ("session-token", "/p?PHPSESSID=0", |_, visit| {
        let next = |n| {
            format!(
                "/{}?PHPSESSID={}",
                ["p", "q"][n as usize % 2],
                hex_token(2 * visit + n)
            )
        };
        format!(
            "<p>Your ticket: {}</p>{}",
            hex_token(visit),
            links_html([next(0), next(1)])
        )
    }),
    ("session-in-path", "/shop;jsessionid=0", |_, visit| {
        format!(
            "<p>Shop, seen {visit} times</p>{}",
            links_html([format!("/shop;jsessionid={}", hex_token(visit))])
        )
    }),
    ("session-words", "/p?sid=0", |_, visit| {
        format!(
            "<p>Hello, {}</p><p>How are you?</p>{}",
            made_name(visit),
            links_html([format!("/p?sid={}", hex_token(visit))])
        )
    }),
    ("token-parameter", "/view?c=0", |_, visit| {
        let text = format!("<p>One moment in {} of {visit}</p>", hex_token(visit + 7));
        text + &links_html([format!("/view?c={}", hex_token(visit))])
    }),
    ("token-in-path", "/t/0/view", |_, visit| {
        format!(
            "<p>Request {}</p>{}",
            hex_token(visit + 7),
            links_html([format!("/t/{}/view", hex_token(visit))])
        )
    }),
    ("cache-buster", "/home?_=1", |_, visit| {
        format!(
            "<p>Rendered {visit}</p>{}",
            links_html([format!("/home?_={}", 1_700_000_000 + visit)])
        )
    }),
    ("relative", "/next/", |path, visit| {
        format!("<p>{} bytes, {visit}</p><a href='next/'>on</a>", path.len())
    }),
    ("relative-token", "/next/", |_, visit| {
        format!(
            "<p>Not here: {}</p><a href='next/'>on</a>",
            hex_token(visit)
        )
    }),
    ("two-folders", "/a/", |path, visit| {
        let next = if path.ends_with("/a/") { "b/" } else { "a/" };
        format!("<p>Visit {visit}</p><a href='{next}'>on</a>")
    }),
    ("mixed-folders", "/shop/", |_, visit| {
        let folders = ["shop", "cart", "help", "about", "terms"];
        let next = folders[(last_number(&hex_token(visit)) % 5) as usize];
        format!("<p>Visit {visit}</p><a href='{next}/'>on</a> <a href='info/'>more</a>")
    }),
    ("growing-path", "/x/", |_, visit| {
        format!(
            "<p>Folder seen {visit}</p><a href='{}/'>on</a>",
            hex_token(visit)
        )
    }),
    ("calendar-query", "/cal?year=2026&month=1", |path, _| {
        let (year, at) = parse_month(path);
        let (to_year, to) = next_month((year, at));
        let text = format!(
            "<h2>{} {year}</h2>{}",
            MONTHS[(at as usize + 11) % 12],
            days_table()
        );
        text + &links_html([format!("/cal?year={to_year}&month={to}")])
    }),
    ("calendar-path", "/events/2026/1", |path, _| {
        let (year, at) = parse_month(path);
        let (to_year, to) = next_month((year, at));
        let text = format!(
            "<h2>{} {year}</h2><p>No events</p>{}",
            MONTHS[(at as usize + 11) % 12],
            days_table()
        );
        text + &links_html([format!("/events/{to_year}/{to}")])
    }),
    ("calendar-clock", "/cal?month=1", |path, visit| {
        let at = last_number(path);
        let text = format!(
            "<h2>Month {at}</h2><footer>Page generated in 0.0{} seconds, 12:{:02}</footer>",
            visit * 37 % 91,
            visit % 60
        );
        text + &links_html([format!("/cal?month={}", at + 1)])
    }),
    ("calendar-days", "/day/1", |path, visit| {
        let at = last_number(path);
        let text = format!("<p>Day {at}</p><p>You are visitor {}</p>", 4_000 + visit);
        text + &links_html([format!("/day/{}", at + 1), format!("/week/{}", at + 1)])
    }),
    ("numbers", "/p?n=1", |path, visit| {
        let at = last_number(path);
        let text = format!("<p>Hits: {}</p>", 100 + 3 * visit);
        text + &links_html([format!("/p?n={}", 2 * at), format!("/p?n={}", 2 * at + 1)])
    }),
    ("empty-list", "/list?page=1", |path, _| {
        let at = last_number(path);
        format!(
            "<p>Page {at}</p><p>Nothing found</p>{}",
            links_html([format!("/list?page={}", at + 1)])
        )
    }),
    ("same-items", "/list?page=1", |path, _| {
        let at = last_number(path);
        let items: String = (0..10)
            .map(|item| format!("<li>{}</li>", made_name(item)))
            .collect();
        format!(
            "<h2>Page {at}</h2>{items}{}",
            links_html([format!("/list?page={}", at + 1)])
        )
    }),
    ("shuffled-items", "/list?offset=1", |path, _| {
        let at = last_number(path);
        let item = |n: u64| {
            format!(
                "<li><a href='/item/{}'>{}</a></li>",
                (at * 7 + n) % 20,
                made_name((at * 7 + n) % 20)
            )
        };
        let items: String = (0..10).map(item).collect();
        match path.starts_with("/list") {
            true => format!(
                "{items}{}",
                links_html([format!("/list?offset={}", at + 10)])
            ),
            false => format!("<p>{}</p>", made_name(at)),
        }
    }),
    ("return-address", "/login?back=/0", |path, visit| {
        let back = path.rsplit("back=").next().unwrap_or_default();
        format!(
            "<p>Log in, attempt {visit}</p>{}",
            links_html([format!("/login?back=/x{visit}{back}")])
        )
    }),
    ("parameters-grow", "/p?a=1", |path, visit| {
        format!(
            "<p>Filtered {visit}</p>{}",
            links_html([format!("{path}&a={visit}")])
        )
    }),
    ("disallowed-beside", "/cal?month=1", |path, _| {
        let at = last_number(path);
        format!(
            "<h2>Month {at}</h2>{}",
            links_html([format!("/cal?month={}", at + 1), format!("/denied/{at}")])
        )
    }),
    ("over-hosts", "/a/", |path, _| {
        let next = format!("http://over-hosts-back.example{path}");
        format!(
            "<p>Moved</p>{}",
            links_html([next + &hex_token(last_number(path) + 1) + "/"])
        )
    }),
    ("over-hosts-back", "/b/", |path, _| {
        let next = format!("http://over-hosts.example{path}");
        format!(
            "<p>Moved back</p>{}",
            links_html([next + &hex_token(last_number(path) + 1) + "/"])
        )
    }),
    ("word-folders", "/start", |_, visit| {
        let next = format!("/{}/{}/", made_name(2 * visit), made_name(2 * visit + 1));
        format!("<p>The shop, seen {visit} times</p>{}", links_html([next]))
    }),
    ("word-folders-alike", "/start", |_, visit| {
        let next = |n| format!("/{}/{}/", made_name(3 * visit + n), made_name(visit));
        format!("<p>Welcome</p>{}", links_html([next(0), next(1)]))
    }),
    ("pixel", "/cal?week=1", |path, visit| {
        let at = last_number(path);
        format!(
            "<p>Week {at}</p><img src='/pixel.gif?{visit}'>{}",
            links_html([format!("/cal?week={}", at + 1)])
        )
    }),
];

/// The number of pages of each healthy site. The last page of a list does not link to a next page.
pub const HONEST: u64 = 130;

pub const SITES: [Row; 24] = [
    ("list-of-names", "/list?page=0", |path, _| {
        let at = last_number(path);
        let items: String = (0..10)
            .map(|n| format!("<li>{}</li>", made_name(at * 10 + n)))
            .collect();
        chain_page(path, HONEST - 1, "/list?page=N", items)
    }),
    ("list-of-numbers", "/list?page=0", |path, _| {
        let at = last_number(path);
        let items: String = (0..3)
            .map(|n| {
                format!(
                    "<li>Item {} for {}.{}0</li>",
                    at * 3 + n,
                    last_number(&hex_token(at + n)) % 90,
                    n
                )
            })
            .collect();
        chain_page(path, HONEST - 1, "/list?page=N", items)
    }),
    ("catalogue", "/item/0", |path, _| {
        let at = last_number(path);
        let text = format!(
            "<h2>{}</h2><p>No. {at}, {}.99 EUR</p><p>Free delivery</p>",
            made_name(at),
            last_number(&hex_token(at)) % 90
        );
        chain_page(path, HONEST - 1, "/item/N", text)
    }),
    ("prices", "/item?id=0", |path, _| {
        let at = last_number(path);
        let text = format!(
            "<h2>Product {at}</h2><p>Price: {}.{} EUR</p>",
            40 + last_number(&hex_token(at)) % 9_000,
            at % 10
        );
        chain_page(path, HONEST - 1, "/item?id=N", text)
    }),
    ("fields", "/person/0", |path, _| {
        let at = last_number(path);
        chain_page(
            path,
            HONEST - 1,
            "/person/N",
            format!("<p class='name'>Person {at}</p>"),
        )
    }),
    ("comic", "/strip/0", |path, _| {
        let at = last_number(path);
        chain_page(
            path,
            HONEST - 1,
            "/strip/N",
            format!("<img src='/pictures/{at}.png'>"),
        )
    }),
    ("archive-by-month", "/archive/2000/1", |path, _| {
        let (year, at) = parse_month(path);
        let (to_year, to) = next_month((year, at));
        let text = format!(
            "<h2>{} {year}</h2><p>News of {}</p>",
            MONTHS[(at as usize + 11) % 12],
            made_name(year * 12 + at)
        );
        match (year - 2000) * 12 + at < HONEST {
            true => text + &links_html([format!("/archive/{to_year}/{to}")]),
            false => text,
        }
    }),
    ("calendar-of-concerts", "/concerts?month=0", |path, _| {
        let at = last_number(path);
        // Every tenth month has an event.
        let event = if at.is_multiple_of(10) {
            format!("<p>{} plays</p>", made_name(at))
        } else {
            String::new()
        };
        chain_page(
            path,
            HONEST - 1,
            "/concerts?month=N",
            format!("<h2>Month {at}</h2>{}{event}", days_table()),
        )
    }),
    ("session-and-item", "/item?sid=abc&id=0", |path, visit| {
        let at = last_number(path);
        chain_page(
            path,
            HONEST - 1,
            &format!("/item?sid={}&id=N", hex_token(visit)),
            format!("<p>{}</p>", made_name(at)),
        )
    }),
    ("thread", "/thread/5?post=0", |path, _| {
        let at = last_number(path);
        chain_page(
            path,
            HONEST - 1,
            "/thread/5?post=N",
            format!(
                "<p>I think that {} is {}</p>",
                made_name(at),
                made_name(at + 9)
            ),
        )
    }),
    ("combinations", "/chair/0", |path, _| {
        let at = last_number(path);
        let colour = ["red", "green", "blue", "white", "black", "grey"][at as usize % 6];
        let size = ["small", "large", "wide", "tall", "low"][at as usize / 6 % 5];
        let wood = ["oak", "beech", "ash", "elm", "pine"][at as usize / 30 % 5];
        chain_page(
            path,
            HONEST - 1,
            "/chair/N",
            format!("<h2>{size} {colour} chair of {wood}</h2>"),
        )
    }),
    ("table-of-readings", "/readings?from=0", |path, _| {
        let at = last_number(path);
        let cell = |n| {
            format!(
                "<td>{}.{}</td>",
                32 + last_number(&hex_token(at * 3 + n)) % 700,
                n
            )
        };
        let cells: String = (0..3).map(cell).collect();
        chain_page(
            path,
            HONEST - 1,
            "/readings?from=N",
            format!("<table><tr><th>Gauge<tr>{cells}</table>"),
        )
    }),
    ("list-with-items", "/list?page=0", |path, _| {
        let at = last_number(path);
        match path.starts_with("/item") {
            true => format!("<p>Of {}</p>", made_name(at)),
            false => chain_page(
                path,
                HONEST / 2 - 1,
                "/list?page=N",
                links_html([format!("/item/{at}")]),
            ),
        }
    }),
    ("links-to-others", "/links?page=0", |path, _| {
        let at = last_number(path);
        let link = format!(
            "<a href='http://others.example/{}'>there</a>",
            made_name(at)
        );
        chain_page(path, HONEST - 1, "/links?page=N", link)
    }),
    ("words", "/word/bacodi", |_, visit| {
        let text = format!(
            "<p>{} means {}</p>",
            made_name(visit),
            made_name(visit + 77)
        );
        match visit < HONEST {
            true => text + &links_html([format!("/word/{}", made_name(visit))]),
            false => text,
        }
    }),
    ("tokens-of-items", "/item/0", |_, visit| {
        let text = format!(
            "<h2>{}</h2><p>Key {}</p>",
            made_name(visit),
            hex_token(visit)
        );
        match visit < HONEST {
            true => text + &links_html([format!("/item/{}", hex_token(visit))]),
            false => text,
        }
    }),
    ("tree", "/tree/", |path, visit| {
        let next = if visit < 100 {
            made_name(visit)
        } else {
            String::new()
        };
        match next.is_empty() || path.len() > 1_500 {
            true => "<p>The end of the tree</p>".into(),
            false => format!(
                "<p>Folder of {}</p><a href='{next}/'>on</a>",
                made_name(visit + 5)
            ),
        }
    }),
    ("books", "/isbn/0", |path, _| {
        let at = last_number(path);
        chain_page(
            path,
            HONEST - 1,
            "/isbn/N",
            format!(
                "<p>ISBN {}</p>",
                9_780_000_000_000 + last_number(&hex_token(at)) % 1_000_000_007
            ),
        )
    }),
    ("parts", "/part?no=0", |path, _| {
        let at = last_number(path);
        chain_page(
            path,
            HONEST - 1,
            "/part?no=N",
            format!(
                "<p>Bolt M{}x{}</p>",
                at % 30 + 3,
                last_number(&hex_token(at)) % 200
            ),
        )
    }),
    ("laws", "/law/section/0", |path, _| {
        let at = last_number(path);
        chain_page(
            path,
            HONEST - 1,
            "/law/section/N",
            format!(
                "<h2>Section {at}</h2><p>Whoever has {} shall {}.</p>",
                made_name(at),
                made_name(3 * at)
            ),
        )
    }),
    ("prices-in-folders", "/start", |_, visit| {
        let text = format!("<p>{} EUR</p>", last_number(&hex_token(visit)) % 9_000);
        match visit < HONEST {
            true => {
                text + &links_html([format!("/{}/{}/", made_name(visit), made_name(visit + 7))])
            }
            false => text,
        }
    }),
    ("things-in-folders", "/start", |_, visit| {
        let text = format!(
            "<p>{} of {}</p>",
            made_name(visit + 3),
            made_name(visit + 5)
        );
        match visit < HONEST {
            true => {
                text + &links_html([format!("/{}/{}/", made_name(visit), made_name(visit + 7))])
            }
            false => text,
        }
    }),
    ("items-elsewhere", "/links?page=0", |path, _| {
        let at = last_number(path);
        let item = |n: u64| {
            format!(
                "<a href='http://others.example/item/{n}'>{}</a>",
                made_name(n)
            )
        };
        let items: String = (10 * at..10 * at + 10).map(item).collect();
        chain_page(path, HONEST - 1, "/links?page=N", items)
    }),
    ("translations", "/text?lang=en&page=0", |path, _| {
        let at = last_number(path);
        chain_page(
            path,
            HONEST - 1,
            "/text?lang=en&page=N",
            format!(
                "<title>Page {at}: {}</title><p>The same below</p>",
                made_name(at)
            ),
        )
    }),
];
