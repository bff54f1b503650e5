//! Generated rating sites whose true content is known. Each user has a list of several pages. Some rows have no stars,
//! some have no item, and some users have no rows at all.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::site::{Page, Reply, Request, Site, Web, document, page, redirect, status};

/// A rating, which the site shows as a row of a table. The item and the stars may be missing.
#[derive(Debug, Clone, PartialEq)]
struct Rating {
    item: Option<String>,
    stars: Option<u64>,
}

/// A rating site.
#[derive(Debug, Clone, Copy)]
pub struct Ratings {
    pub users: usize,
    /// The number of the site, which is part of its host name.
    pub number: usize,
    pub most_pages: usize,
    /// The number of rows on a full page.
    pub size: usize,
}

impl Ratings {
    /// A site where every user has 1 to 4 pages of up to 5 rows.
    pub const fn small_site(users: usize) -> Ratings {
        Ratings {
            users,
            number: 0,
            most_pages: 4,
            size: 5,
        }
    }

    /// A site where every user has 1 to 40 pages of up to 30 rows.
    pub const fn large_site(users: usize) -> Ratings {
        Ratings {
            users,
            number: 0,
            most_pages: 40,
            size: 30,
        }
    }

    pub fn host(self) -> String {
        match self.number {
            0 => "ratings.example".to_owned(),
            number => format!("ratings{number}.example"),
        }
    }

    pub fn page_count(self, user: usize) -> usize {
        1 + (user + self.number) * 7 % self.most_pages
    }

    /// The number of a user's ratings, which the first paragraph of each page also shows.
    pub fn rating_count(self, user: usize) -> usize {
        match (self.page_count(user), user % 11) {
            (1, 5..) => 0,
            // All pages are full except for the last one, which lacks `user % size` rows.
            (pages, _) => pages * self.size - user % self.size,
        }
    }

    fn ratings(self, user: usize) -> Vec<Rating> {
        let rating = |index: usize| Rating {
            item: (index % 7 != 3).then(|| format!("item{index}")),
            stars: (index % 3 != 1 || index % 7 == 3).then_some(((user + index) % 5 + 1) as u64),
        };
        (0..self.rating_count(user)).map(rating).collect()
    }

    /// Page `number` of a user's list of ratings.
    pub fn page(self, user: usize, number: usize) -> Page {
        let all = self.ratings(user);
        let mut html = format!(
            "<p class=\"name\">Name {user}</p><p class=\"count\">{}</p><table>",
            all.len()
        );
        let on_page = all.iter().enumerate();
        for (index, rating) in on_page.skip((number - 1) * self.size).take(self.size) {
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

    /// The user and the page number in a request; `None` if the request is not for a list.
    pub fn parse_request(request: &Request) -> Option<(usize, usize)> {
        let rest = request.path.strip_prefix("/users/")?;
        let (user, number) = rest.split_once("?page=").unwrap_or((rest, "1"));
        Some((user.parse().ok()?, number.parse().ok()?))
    }

    fn answer(self, request: &Request) -> Reply {
        match Ratings::parse_request(request) {
            Some((user, number)) => self.page(user, number).into(),
            None => status(404).into(),
        }
    }

    pub fn serve(self, web: &Web) -> Site {
        let site = web.site(&self.host());
        site.serve_robots("");
        site.serve_otherwise(move |request| self.answer(request));
        site
    }

    /// Serves the site, but refuses some requests. Of every `of` requests from an address, the last `refused` ones get
    /// a 403, a redirect to another host, or one line of JavaScript, in turn.
    pub fn serve_refusing(self, web: &Web, of: usize, refused: usize) -> Refusals {
        let site = self.serve(web);
        web.site("login.example")
            .serve_otherwise(|_| page("Log in").into());
        let refusals = Refusals::default();
        let reported = refusals.clone();
        site.serve_otherwise(move |request| {
            let number = reported.count_request(request.client);
            if number % of < of - refused {
                return self.answer(request);
            }
            reported.note_refusal();
            match number / of % 3 {
                0 => status(403).into(),
                1 => redirect("http://login.example/wall?captcha=1").into(),
                _ => script_page().into(),
            }
        });
        refusals
    }

    /// The records that must be in the store at the end, by their ids. Each has the stars of a rating and the position
    /// of its row.
    pub fn expected_records(self) -> BTreeMap<String, Value> {
        let mut truth = BTreeMap::new();
        for user in 0..self.users {
            for (index, rating) in self.ratings(user).into_iter().enumerate() {
                let Some(item) = rating.item else { continue };
                let row = json!({
                    "stars": rating.stars,
                    "url": self.url(user, index / self.size + 1),
                    "position": index % self.size,
                    "parent": format!("users/u{user}"),
                });
                truth.insert(format!("u{user}/{item}"), row);
            }
        }
        truth
    }

    pub fn total_page_count(self) -> usize {
        (0..self.users).map(|user| self.page_count(user)).sum()
    }

    /// The seeds: one for each user, with the number of their ratings. The users' names are only on the site.
    pub fn seeds(self) -> Vec<Value> {
        let seed = |user: usize| {
            let fields = json!({"name": null, "city": format!("City {}", user % 3), "count": self.rating_count(user)});
            json!({"id": format!("u{user}"), "urls": [self.url(user, 1)], "fields": fields})
        };
        (0..self.users).map(seed).collect()
    }

    pub fn url(self, user: usize, number: usize) -> String {
        let host = self.host();
        match number {
            1 => format!("http://{host}/users/{user}"),
            _ => format!("http://{host}/users/{user}?page={number}"),
        }
    }

    /// The mapping for all sites of this size. With records, the user of a row is the record that the page was fetched
    /// for. Without records, the user and the site are read from the URL of the page.
    pub fn mapping(self, with_records: bool) -> Value {
        let css = |selector: &str| json!({"type": "css", "parameters": {"selector": selector}});
        let pages =
            json!({"type": "pagination", "parameters": {"parameter": "page", "size": self.size}});
        let user = match with_records {
            true => json!({"name": "user", "from": "record", "record_field": "_id"}),
            false => json!({"name": "user", "from": "url", "processors": [
                {"type": "regex", "parameters": {"pattern": "//([^?]+)", "group": 1}}
            ]}),
        };
        json!({
            "name": "ratings",
            "url_patterns": [{"type": "regex", "pattern": "^http://ratings[0-9]*\\.example/users/"}],
            "url_parsers": [{"processors": [css("p.count"), pages]}],
            "fields": [{"name": "name", "processors": [css("p.name"), {"type": "trim"}]}],
            "rows": [{
                "dataset": "ratings",
                "select": [css("tr.rating")],
                "fields": [
                    user,
                    {"name": "item", "processors": [css("a"), {"type": "trim"}]},
                    {"name": "stars", "processors": [css("b"), {"type": "number"}]},
                ],
                "key": ["user", "item"],
            }],
        })
    }
}

fn script_page() -> Page {
    document(
        "text/html",
        "<script>document.cookie='v=1';location.reload()</script>",
    )
}

/// Counts the requests: how many came from each address, and how many were refused in total.
#[derive(Debug, Clone, Default)]
pub struct Refusals {
    asked: Arc<Mutex<HashMap<IpAddr, usize>>>,
    refused: Arc<Mutex<usize>>,
}

impl Refusals {
    /// Counts a request. Returns its number among the requests from the same address, counted from 0.
    fn count_request(&self, client: IpAddr) -> usize {
        let mut asked = self.asked.lock().expect("nobody panics with it");
        let number = asked.entry(client).or_default();
        *number += 1;
        *number - 1
    }

    fn note_refusal(&self) {
        *self.refused.lock().expect("nobody panics with it") += 1;
    }

    pub fn refused_count(&self) -> usize {
        *self.refused.lock().expect("nobody panics with it")
    }

    /// The number of different addresses that have sent requests.
    pub fn client_count(&self) -> usize {
        self.asked.lock().expect("nobody panics with it").len()
    }
}
