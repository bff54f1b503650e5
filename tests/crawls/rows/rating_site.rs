//! A made site of ratings, whose truth is known: each user's list has several pages, some rows have no stars, and
//! some no item.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use webfill_tests::site::{Page, Request, Site, Web, page};

pub(super) const HOST: &str = "ratings.example";
/// Rows of a page.
pub(super) const SIZE: usize = 5;

/// A row as the site has it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rating {
    pub(super) item: Option<String>,
    pub(super) stars: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Ratings {
    pub(super) users: usize,
}

impl Ratings {
    /// Every user has 1 to 4 pages, of which the last is not full.
    pub(super) fn pages_of(user: usize) -> usize {
        1 + user * 7 % 4
    }

    pub(super) fn of(user: usize) -> Vec<Rating> {
        let rows = Ratings::pages_of(user) * SIZE - user % SIZE;
        let rating = |index: usize| Rating {
            item: (index % 7 != 3).then(|| format!("item{index}")),
            stars: (index % 3 != 1 || index % 7 == 3).then_some(((user + index) % 5 + 1) as u64),
        };
        (0..rows).map(rating).collect()
    }

    /// What a page of a user's list shows.
    pub(super) fn page(user: usize, number: usize) -> Page {
        let all = Ratings::of(user);
        let mut html = format!(
            "<p class=\"name\">Name {user}</p><p class=\"count\">{}</p><table>",
            all.len()
        );
        let on_page = all.iter().enumerate().skip((number - 1) * SIZE).take(SIZE);
        for (index, rating) in on_page {
            let item = rating.item.iter();
            let item = item.map(|item| format!("<a href=\"/items/{item}\">{item}</a>"));
            let stars = rating.stars.map(|stars| format!("<b>{stars}</b>"));
            html += &format!(
                "<tr class=\"rating\"><td>{index}.</td><td>{}</td><td>{}</td></tr>",
                item.collect::<String>(),
                stars.unwrap_or_default()
            );
        }
        page("Ratings").html(html + "</table>")
    }

    /// The user and the number of the page that are asked for.
    pub(super) fn asked(request: &Request) -> Option<(usize, usize)> {
        let rest = request.path.strip_prefix("/users/")?;
        let (user, number) = rest.split_once("?page=").unwrap_or((rest, "1"));
        Some((user.parse().ok()?, number.parse().ok()?))
    }

    pub(super) fn serve(web: &Web) -> Site {
        let site = web.site(HOST);
        site.robots("");
        site.otherwise(|request| match Ratings::asked(request) {
            Some((user, number)) => Ratings::page(user, number).into(),
            None => webfill_tests::site::status(404).into(),
        });
        site
    }

    /// What is to be found, by the ids of records: the stars, and where the row stands.
    pub(super) fn truth(self) -> BTreeMap<String, Value> {
        let mut truth = BTreeMap::new();
        for user in 0..self.users {
            for (index, rating) in Ratings::of(user).into_iter().enumerate() {
                let Some(item) = rating.item else { continue };
                let row = json!({
                    "stars": rating.stars,
                    "url": url(user, index / SIZE + 1),
                    "position": index % SIZE,
                    "parent": format!("users/u{user}"),
                });
                truth.insert(format!("u{user}/{item}"), row);
            }
        }
        truth
    }

    pub(super) fn pages(self) -> usize {
        (0..self.users).map(Ratings::pages_of).sum()
    }

    /// The users, whose names the site knows.
    pub(super) fn seeds(self) -> Vec<Value> {
        let seed = |user: usize| json!({"id": format!("u{user}"), "urls": [url(user, 1)], "fields": {"name": null, "city": format!("City {}", user % 3)}});
        (0..self.users).map(seed).collect()
    }
}

pub(super) fn url(user: usize, number: usize) -> String {
    match number {
        1 => format!("http://{HOST}/users/{user}"),
        _ => format!("http://{HOST}/users/{user}?page={number}"),
    }
}

pub(super) fn mapping() -> Value {
    let css = |selector: &str| json!({"type": "css", "parameters": {"selector": selector}});
    let pages = json!({"type": "pagination", "parameters": {"parameter": "page", "size": SIZE}});
    json!({
        "name": "ratings",
        "url_patterns": [{"type": "regex", "pattern": format!("^http://{HOST}/users/")}],
        "url_parsers": [{"processors": [css("p.count"), pages]}],
        "fields": [{"name": "name", "processors": [css("p.name"), {"type": "trim"}]}],
        "rows": [{
            "dataset": "ratings",
            "select": [css("tr.rating")],
            "fields": [
                {"name": "user", "from": "record", "record_field": "_id"},
                {"name": "item", "processors": [css("a"), {"type": "trim"}]},
                {"name": "stars", "processors": [css("b"), {"type": "number"}]},
            ],
            "key": ["user", "item"],
        }],
    })
}
