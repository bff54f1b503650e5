//! `pagination`: computes the URLs of further pages from a count on the first page of a list.

use webfill_urls::{Url, canonical_url};

use crate::entry::{Entry, Example, Family, Input, Kind, Parameter, Presence, Refusal, refusal};
use crate::item::Item;
use crate::parameters::Parameters;
use crate::run::{OutOfTime, Processor, Run};

/// How many pages a list may have.
const MOST_PAGES: i64 = 10_000;
const PAGES_BY_DEFAULT: u64 = 1_000;

/// The placeholder for the page number in a URL template.
const PLACE: &str = "{}";

pub(crate) const PAGINATION: Entry = Entry {
    name: "pagination",
    family: Family::Convert,
    summary: "Makes the URLs of the further pages of a list from a count on its first page; of several counts the largest is used. The further pages themselves yield none, so each list is counted once.",
    parameters: &[
        Parameter {
            name: "parameter",
            kind: Kind::Text,
            presence: Presence::Optional,
            meaning: "the query parameter with the number of the page, in its URL",
        },
        Parameter {
            name: "template",
            kind: Kind::Text,
            presence: Presence::Optional,
            meaning: "instead of parameter: the URL of a page, absolute or from the root, with `{}` for its number",
        },
        Parameter {
            name: "count",
            kind: Kind::Choice(&["hits", "pages"]),
            presence: Presence::Text("hits"),
            meaning: "what the value counts: the hits of the whole list, or its pages",
        },
        Parameter {
            name: "size",
            kind: Kind::Integer(1, 1_000_000),
            presence: Presence::Optional,
            meaning: "how many hits are on a page; needed to count hits; by default step, if that is given",
        },
        Parameter {
            name: "step",
            kind: Kind::Integer(1, 1_000_000),
            presence: Presence::Optional,
            meaning: "the increment of the number from page to page; 1 by default",
        },
        Parameter {
            name: "first",
            kind: Kind::Integer(0, 1_000_000),
            presence: Presence::Optional,
            meaning: "the number of the first page; by default 1 if step is 1, else 0",
        },
        Parameter {
            name: "max",
            kind: Kind::Integer(1, MOST_PAGES),
            presence: Presence::Optional,
            meaning: "how many pages a list has at most, 1000 by default; the rest is left out with a warning",
        },
    ],
    examples: &[
        Example {
            parameters: r#"{"parameter": "start", "step": 20}"#,
            input: Input::Values(&["65"]),
            output: &[
                "https://people.example/list/?start=20",
                "https://people.example/list/?start=40",
                "https://people.example/list/?start=60",
            ],
        },
        Example {
            parameters: r#"{"template": "/list/page/{}", "count": "pages"}"#,
            input: Input::Values(&["1", "2", "3"]),
            output: &[
                "https://people.example/list/page/2",
                "https://people.example/list/page/3",
            ],
        },
    ],
    build: |parameters, _| {
        let place = parse_place(parameters)?;
        let step = parameters.size("step").unwrap_or(1) as u64;
        let by_default = u64::from(step == 1);
        Ok(Box::new(Pagination {
            place,
            page_size: parse_page_size(parameters)?,
            step,
            first: parameters
                .size("first")
                .map_or(by_default, |first| first as u64),
            most: parameters
                .size("max")
                .map_or(PAGES_BY_DEFAULT, |most| most as u64),
        }))
    },
};

fn parse_place(parameters: &Parameters<'_>) -> Result<Place, Vec<Refusal>> {
    let given = (
        parameters.optional_text("parameter"),
        parameters.optional_text("template"),
    );
    match given {
        (Some(name), None) if is_plain(name) => Ok(Place::Parameter(name.to_owned())),
        (Some(_), None) => {
            let why = "a query parameter is made of letters, digits, and `- _ . ~ [ ]`";
            Err(refusal("parameter", why))
        }
        (None, Some(template)) => parse_template(template),
        _ => Err(refusal("", "either `parameter` or `template` is needed")),
    }
}

fn is_plain(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~[]".contains(&byte);
    !name.is_empty() && name.bytes().all(is_plain)
}

fn parse_template(template: &str) -> Result<Place, Vec<Refusal>> {
    let is_absolute = ["/", "http://", "https://"]
        .iter()
        .any(|beginning| template.starts_with(beginning));
    if !is_absolute {
        let why = "a template begins with `/`, `http://` or `https://`; what is relative to a page would grow from page to page";
        return Err(refusal("template", why));
    }
    match template.split_once(PLACE) {
        Some((before, after)) if !after.contains(PLACE) => {
            Ok(Place::Template(before.to_owned(), after.to_owned()))
        }
        _ => Err(refusal("template", "exactly one `{}` is needed")),
    }
}

/// Reads how many hits one page has; `None` if the count is of pages instead of hits.
fn parse_page_size(parameters: &Parameters<'_>) -> Result<Option<u64>, Vec<Refusal>> {
    if parameters.text("count") == "pages" {
        return match parameters.is_given("size") {
            true => Err(refusal("size", "has no effect if pages are counted")),
            false => Ok(None),
        };
    }
    let size = parameters.size("size").or(parameters.size("step"));
    let why = "to count hits, `size` is needed: how many are on a page";
    size.map(|size| Some(size as u64)).ok_or(refusal("", why))
}

/// The part of a URL that contains the page number.
enum Place {
    Parameter(String),
    /// The texts before and after the page number.
    Template(String, String),
}

struct Pagination {
    place: Place,
    page_size: Option<u64>,
    step: u64,
    first: u64,
    /// The greatest number of pages of the list, including the first.
    most: u64,
}

impl Processor for Pagination {
    fn apply<'p>(&self, items: Vec<Item<'p>>, run: &Run<'p>) -> Result<Vec<Item<'p>>, OutOfTime> {
        let mut output = run.new_output();
        let counts = items
            .iter()
            .map(|item| webfill_values::trim(&run.text(item)).parse().ok());
        let counts: Option<Vec<u64>> = counts.collect();
        let Some(counts) = counts else {
            run.warn("pagination: a value is no count; `number` before it reads one");
            return output.finish();
        };
        let is_counted = !counts.is_empty();
        let pages = self.page_count(counts.into_iter().max().unwrap_or_default());
        if pages > self.most {
            run.list.is_cut.set(true);
            run.warn(format_args!(
                "pagination: of {pages} pages only {} are taken",
                self.most
            ));
        }
        let own = run.page.url();
        let mut urls = Vec::new();
        for page in 1..pages.min(self.most) {
            let Some(url) = self.url_of_page(page, own) else {
                run.list.is_cut.set(true);
                break;
            };
            if url == *own {
                // The present page is itself one of the computed further pages.
                run.list.is_further.set(true);
                return output.finish();
            }
            urls.push(url);
        }
        if !self.may_be_first_page(own) {
            run.list.is_further.set(true);
            return output.finish();
        }
        if is_counted {
            run.list.is_counted.set(true);
        }
        for url in urls {
            if !output.push_text(url.into()) {
                break;
            }
        }
        output.finish()
    }
}

impl Pagination {
    fn page_count(&self, count: u64) -> u64 {
        self.page_size.map_or(count, |size| count.div_ceil(size))
    }

    /// The URL of a page of the list. `own` is the URL of the first page, and `page` counts from 0.
    fn url_of_page(&self, page: u64, own: &Url) -> Option<Url> {
        let number = self.first + page * self.step;
        match &self.place {
            Place::Parameter(name) => {
                let mut url = own.clone();
                let query = replace_parameter(own.query().unwrap_or_default(), name, number);
                url.set_query(Some(&query));
                canonical_url(url.as_str(), None).ok()
            }
            Place::Template(before, after) => {
                canonical_url(&format!("{before}{number}{after}"), Some(own)).ok()
            }
        }
    }

    /// Whether `own` may be the URL of the list's first page. A URL with another page number is not, even if the list
    /// has become shorter than that.
    fn may_be_first_page(&self, own: &Url) -> bool {
        let Place::Parameter(name) = &self.place else {
            return true;
        };
        let query = own.query().unwrap_or_default();
        let value = query.split('&').find_map(|pair| value_of_pair(pair, name));
        value.is_none_or(|value| value.is_empty() || value.parse() == Ok(self.first))
    }
}

/// Replaces the value of a query parameter by a number. The rest of the query stays unchanged, byte for byte.
fn replace_parameter(query: &str, name: &str, number: u64) -> String {
    let mut pairs: Vec<String> = Vec::new();
    let mut is_set = false;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        if value_of_pair(pair, name).is_none() {
            pairs.push(pair.to_owned());
        } else if !is_set {
            pairs.push(format!("{name}={number}"));
            is_set = true;
        }
    }
    if !is_set {
        pairs.push(format!("{name}={number}"));
    }
    pairs.join("&")
}

/// The value of a `name=value` pair of a query; `None` if the pair has another name.
fn value_of_pair<'q>(pair: &'q str, name: &str) -> Option<&'q str> {
    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
    let encoded = || name.replace('[', "%5B").replace(']', "%5D");
    (key == name || key.eq_ignore_ascii_case(&encoded())).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_replaced_and_the_others_stay() {
        let with = |query| replace_parameter(query, "page", 3);
        assert_eq!(with(""), "page=3");
        assert_eq!(with("q=a%20b&page=1&sort=up"), "q=a%20b&page=3&sort=up");
        assert_eq!(replace_parameter("p%5bn%5d=1", "p[n]", 2), "p[n]=2");
    }

    #[test]
    fn hits_are_divided_by_the_size_of_a_page() {
        let mut list = Pagination {
            place: Place::Parameter("start".to_owned()),
            page_size: Some(20),
            step: 20,
            first: 0,
            most: 1_000,
        };
        assert_eq!(
            [0, 1, 20, 21, 500].map(|hits| list.page_count(hits)),
            [0, 1, 1, 2, 25]
        );
        list.page_size = None;
        assert_eq!(list.page_count(7), 7);
    }
}
