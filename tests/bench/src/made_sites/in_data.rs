//! Layouts with values in linked data, microdata, attributes, `meta` elements and scripts.

use serde_json::json;

use super::frame::{misleading_sentence, wrap_in_page};
use super::thing::{Thing, escape_html, nonempty_values};
use crate::sites::Values;

/// Values in JSON-LD. The classes on the page contain hashes that are new on each page, as on some servers.
pub fn format_as_linked_data(thing: &mut Thing) -> (String, Values) {
    let data = json!({
        "@context": "https://schema.org",
        "@graph": [
            {"@type": "WebSite", "name": "Made Things"},
            {"@type": "BreadcrumbList", "itemListElement": [{"@type": "ListItem", "position": 1, "name": "Things"}]},
            {
                "@type": "Product",
                "name": thing.name,
                "brand": {"@type": "Brand", "name": thing.maker},
                "offers": {"@type": "Offer", "price": thing.plain_price(), "priceCurrency": "EUR"},
                "releaseDate": thing.plain_date(),
                "keywords": thing.tags,
            },
        ],
    });
    let hash = thing.number * 7_919 + 13;
    let body = format!(
        "<div class=\"css-{hash:x}q7\"><div class=\"css-1{hash:x}k\">{}</div><div class=\"css-9{hash:x}z\">{}</div></div>{}",
        escape_html(&thing.name.to_uppercase()),
        thing.english_price(),
        misleading_sentence(thing)
    );
    let head = format!("<title>Shop</title><script type=\"application/ld+json\">{data}</script>");
    let known = nonempty_values([
        ("name", vec![thing.name.clone()]),
        ("maker", vec![thing.maker.clone()]),
        ("price", vec![thing.plain_price()]),
        ("date", vec![thing.plain_date()]),
        ("tags", thing.tags.clone()),
    ]);
    (wrap_in_page(thing, &head, &body), known)
}

/// Values in microdata. The page also has microdata of other things of the same kind.
pub fn format_as_microdata(thing: &mut Thing) -> (String, Values) {
    let others = (0..2).map(|by| {
        let other = thing.other_thing(by);
        format!(
            "<div itemprop=\"isRelatedTo\" itemscope itemtype=\"https://schema.org/Product\"><span itemprop=\"name\">{}\
             </span><meta itemprop=\"price\" content=\"{}\"></div>",
            escape_html(&other.name),
            other.plain_price()
        )
    });
    let authors = thing.people.iter().map(|person| {
        format!(
            "<span itemprop=\"author\" itemscope itemtype=\"https://schema.org/Person\"><b itemprop=\"name\">{}</b></span>",
            escape_html(person)
        )
    });
    let body = format!(
        "<div itemscope itemtype=\"https://schema.org/Product\"><span itemprop=\"name\">{}</span>\
         <div itemprop=\"brand\" itemscope><span itemprop=\"name\">{}</span></div>\
         <div itemprop=\"offers\" itemscope>From <span itemprop=\"price\" content=\"{}\">{}</span></div>\
         <div>By {}</div>{}</div>",
        escape_html(&thing.name),
        escape_html(&thing.maker),
        thing.plain_price(),
        thing.english_price(),
        authors.collect::<Vec<_>>().join(" and "),
        others.collect::<String>(),
    );
    let known = nonempty_values([
        ("name", vec![thing.name.clone()]),
        ("maker", vec![thing.maker.clone()]),
        ("price", vec![thing.plain_price()]),
        ("people", thing.people.clone()),
    ]);
    (wrap_in_page(thing, "<title>Things</title>", &body), known)
}

/// Values in attributes. The visible texts are different.
pub fn format_as_attributes(thing: &mut Thing) -> (String, Values) {
    let body = format!(
        "<h1>{}</h1><img class=\"logo\" src=\"/logos/{}.png\" alt=\"{}\"><time datetime=\"{}\">lately</time>\
         <a class=\"call\" href=\"tel:{}\">Call us</a><a class=\"button\" href=\"https://{}.example/\">Website</a>\
         <div data-price=\"{}\" data-currency=\"EUR\">Ask for the price</div>{}",
        escape_html(&thing.name),
        thing.number,
        escape_html(&thing.maker),
        thing.plain_date(),
        thing.phone.replace(' ', ""),
        thing.slug(),
        thing.plain_price(),
        misleading_sentence(thing)
    );
    let known = nonempty_values([
        ("name", vec![thing.name.clone()]),
        ("maker", vec![thing.maker.clone()]),
        ("date", vec![thing.plain_date()]),
        ("phone", vec![thing.phone.replace(' ', "")]),
        (
            "website",
            vec![format!("https://{}.example/", thing.slug())],
        ),
        ("price", vec![thing.plain_price()]),
    ]);
    (wrap_in_page(thing, "<title>Things</title>", &body), known)
}

/// Values as JSON in the page, which a script shows.
pub fn format_as_data_script(thing: &mut Thing) -> (String, Values) {
    let others: Vec<_> = (0..2)
        .map(|by| json!({"title": thing.other_thing(by).name, "maker": {"label": thing.other_thing(by).maker}}))
        .collect();
    let data = json!({
        "buildId": format!("b{}", thing.number * 7_919),
        "props": {"page": {
            "thing": {
                "title": thing.name,
                "maker": {"label": thing.maker, "city": thing.city},
                "cents": thing.price,
                "tags": thing.tags.iter().map(|tag| json!({"label": tag})).collect::<Vec<_>>(),
            },
            "others": others,
        }},
    });
    let body = format!(
        "<div id=\"root\"></div><script id=\"data\" type=\"application/json\">{data}</script>"
    );
    let known = nonempty_values([
        ("name", vec![thing.name.clone()]),
        ("maker", vec![thing.maker.clone()]),
        ("city", vec![thing.city.clone()]),
        ("cents", vec![thing.price.to_string()]),
        ("tags", thing.tags.clone()),
    ]);
    (wrap_in_page(thing, "<title>Things</title>", &body), known)
}

/// Values in a script that assigns them to a variable.
pub fn format_as_state_script(thing: &mut Thing) -> (String, Values) {
    let state = json!({
        "thing": {"title": thing.name, "maker": thing.maker, "city": thing.city, "cents": thing.price},
        "user": null,
    });
    let body = format!(
        "<div id=\"app\">Loading</div><script>var a = 1; window.__STATE__ = {state}; start('{}');</script>",
        thing.number
    );
    let known = nonempty_values([
        ("name", vec![thing.name.clone()]),
        ("maker", vec![thing.maker.clone()]),
        ("city", vec![thing.city.clone()]),
        ("cents", vec![thing.price.to_string()]),
    ]);
    (wrap_in_page(thing, "<title>Things</title>", &body), known)
}

/// Values that are only in `meta` elements, among other such elements.
pub fn format_as_meta(thing: &mut Thing) -> (String, Values) {
    let head = format!(
        "<title>{0} - Made Things</title><meta property=\"og:title\" content=\"{0} - Made Things\">\
         <meta property=\"og:site_name\" content=\"Made Things\"><meta name=\"author\" content=\"{1}\">\
         <meta property=\"article:published_time\" content=\"{2}T08:00:00+01:00\">{3}",
        escape_html(&thing.name),
        escape_html(&thing.people[0]),
        thing.plain_date(),
        thing
            .tags
            .iter()
            .map(|tag| format!("<meta property=\"article:tag\" content=\"{tag}\">"))
            .collect::<String>(),
    );
    let known = nonempty_values([
        ("name", vec![thing.name.clone()]),
        ("author", vec![thing.people[0].clone()]),
        ("date", vec![thing.plain_date()]),
        ("tags", thing.tags.clone()),
    ]);
    (
        wrap_in_page(thing, &head, &misleading_sentence(thing)),
        known,
    )
}
