//! The pages of a generated shop, of 10 to 11 KB each. Links lead to every page, most links lead to pages that are
//! already known, and pages have the seven fields of `crawl/catalogue/mapping.json`.

use std::fmt::Write;

/// The number of child pages of each page.
const CHILDREN: usize = 10;

/// The number of further links on each page, to any pages of the shop.
const RELATED: usize = 10;

const WORDS: &[&str] = &[
    "amber", "anvil", "basket", "birch", "bronze", "canvas", "cedar", "copper", "cotton", "drift",
    "ember", "fern", "flint", "garnet", "harbour", "hazel", "indigo", "iron", "juniper", "kettle",
    "lantern", "linen", "maple", "marble", "meadow", "oak", "olive", "paper", "pebble", "pine",
    "quartz", "raven", "reed", "river", "saddle", "sage", "silver", "slate", "spruce", "stone",
    "thistle", "timber", "tin", "velvet", "walnut", "willow", "winter", "wool", "yarrow", "zinc",
];

/// The page of one item. All links lead to numbers below `pages`.
pub fn item_page(number: usize, pages: usize) -> String {
    let children =
        (number * CHILDREN + 1..=number * CHILDREN + CHILDREN).filter(|child| *child < pages);
    let mut draw = Draw::with_seed(number as u64);
    let related: Vec<usize> = (0..RELATED).map(|_| draw.number_below(pages)).collect();
    item_html(number, &children.collect::<Vec<_>>(), &related)
}

/// The page of one item that links to exactly these pages, and to the ten pages of the navigation.
pub fn item_html(number: usize, children: &[usize], related: &[usize]) -> String {
    let mut draw = Draw::with_seed(number as u64 ^ 0x5eed);
    let name = format!("{} {} {number}", draw.draw_word(), draw.draw_word());
    let mut html = String::with_capacity(12_000);
    html.push_str("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    let _ = writeln!(html, "<title>{name} - The Catalogue</title>");
    let _ = writeln!(
        html,
        "<meta name=\"description\" content=\"{}\">",
        draw.draw_words(14)
    );
    let _ = writeln!(
        html,
        "<meta property=\"og:title\" content=\"{name}\">\n<link rel=\"stylesheet\" href=\"/site.css\">\n</head>\n<body>"
    );
    html.push_str("<header><div class=\"logo\">The Catalogue</div>\n<nav><ul>\n");
    for (section, name) in WORDS.iter().enumerate().skip(1).take(10) {
        let _ = writeln!(
            html,
            "<li class=\"nav-item\"><a class=\"nav-link\" href=\"/item/{section}\">{name}</a></li>"
        );
    }
    html.push_str("</ul></nav></header>\n<main>\n<ol class=\"breadcrumb\">\n");
    for step in ancestors(number) {
        let _ = writeln!(
            html,
            "<li><a href=\"/item/{step}\">{}</a></li>",
            WORDS[step % WORDS.len()]
        );
    }
    let _ = writeln!(
        html,
        "</ol>\n<article itemscope itemtype=\"https://schema.org/Product\">\n<h1 itemprop=\"name\">{name}</h1>"
    );
    write_facts(&mut html, number, &mut draw);
    html.push_str("<div id=\"description\">\n");
    for _ in 0..8 {
        let _ = writeln!(
            html,
            "<p>{} <em>{}</em> {}.</p>",
            draw.draw_words(40),
            draw.draw_word(),
            draw.draw_words(25)
        );
    }
    html.push_str("</div>\n<ul class=\"tags\">\n");
    for _ in 0..5 {
        let _ = writeln!(
            html,
            "<li><span class=\"tag\">{}</span></li>",
            draw.draw_word()
        );
    }
    html.push_str("</ul>\n</article>\n");
    write_reviews(&mut html, &mut draw);
    write_list(&mut html, "Below this", children);
    write_list(&mut html, "Seen together with", related);
    html.push_str(
        "</main>\n<footer><p>Prices include what they include.</p></footer>\n</body>\n</html>\n",
    );
    html
}

fn write_facts(html: &mut String, number: usize, draw: &mut Draw) {
    let _ = writeln!(
        html,
        "<p class=\"offer\"><span class=\"price\" itemprop=\"price\">{}.{:02}</span> <span class=\"currency\">EUR</span></p>\n<meta itemprop=\"ratingValue\" content=\"{}.{}\">",
        1 + draw.number_below(900),
        draw.number_below(100),
        1 + draw.number_below(4),
        draw.number_below(10)
    );
    let _ = writeln!(
        html,
        "<table class=\"facts\">\n<tbody>\n<tr><th>Article</th><td>A-{number:06}</td></tr>"
    );
    for row in 0..10 {
        let _ = writeln!(
            html,
            "<tr><th>{} {row}</th><td>{} {}</td></tr>",
            draw.draw_word(),
            draw.draw_word(),
            draw.number_below(1000)
        );
    }
    html.push_str("</tbody>\n</table>\n");
}

fn write_reviews(html: &mut String, draw: &mut Draw) {
    html.push_str("<section class=\"reviews\">\n<h2>Reviews</h2>\n");
    for _ in 0..8 {
        let _ = writeln!(
            html,
            "<div class=\"review\"><h3>{}</h3><p class=\"by\">by <b class=\"author\">{}</b></p><p>{}.</p></div>",
            draw.draw_words(4),
            draw.draw_word(),
            draw.draw_words(40)
        );
    }
    html.push_str("</section>\n");
}

fn write_list(html: &mut String, heading: &str, numbers: &[usize]) {
    let _ = writeln!(html, "<section><h2>{heading}</h2>\n<ul class=\"items\">");
    for number in numbers {
        let _ = writeln!(
            html,
            "<li><a class=\"item\" href=\"/item/{number}\" title=\"item {number}\">{}</a></li>",
            WORDS[number % WORDS.len()]
        );
    }
    html.push_str("</ul></section>\n");
}

/// The numbers of the page's ancestors, from the seed down to its parent.
fn ancestors(mut number: usize) -> Vec<usize> {
    let mut above = Vec::new();
    while number > 0 {
        number = (number - 1) / CHILDREN;
        above.push(number);
    }
    above.reverse();
    above
}

/// Draws words and numbers at random. They depend only on the page number, so a page is the same in every run.
struct Draw(fastrand::Rng);

impl Draw {
    fn with_seed(seed: u64) -> Draw {
        Draw(fastrand::Rng::with_seed(seed))
    }

    fn number_below(&mut self, bound: usize) -> usize {
        self.0.usize(..bound)
    }

    fn draw_word(&mut self) -> &'static str {
        WORDS[self.number_below(WORDS.len())]
    }

    fn draw_words(&mut self, count: usize) -> String {
        let words: Vec<&str> = (0..count).map(|_| self.draw_word()).collect();
        words.join(" ")
    }
}
