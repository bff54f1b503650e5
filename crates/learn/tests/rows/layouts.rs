//! Generated listings: how different sites list the same books.
//!
//! `{title}` stands for a value. A part between `[[` and `]]` is left out if the row lacks a value that the part names.
//! The rows of a layout use the templates in `rows` in turn.

use webfill_mapping::PageKind;

pub struct Layout {
    pub name: &'static str,
    pub kind: PageKind,
    pub before: &'static str,
    pub rows: &'static [&'static str],
    pub separator: &'static str,
    /// Content that is inserted on every page before the row with this number.
    pub between: &'static [(usize, &'static str)],
    pub after: &'static str,
    /// The fields that the layout shows.
    pub fields: &'static [&'static str],
    /// How many rows a page has.
    pub count: usize,
}

const ALL: &[&str] = &["author", "link", "price", "stars", "title"];

const HTML: Layout = Layout {
    name: "",
    kind: PageKind::Html,
    before: "",
    rows: &[],
    separator: "\n",
    between: &[],
    after: "",
    fields: ALL,
    count: 10,
};

const NAV: &str = "<title>Books</title><nav><ul><li><a href='/'>Home</a><li><a href='/books/'>Books</a><li><a href='/about'>About</a></ul></nav>";

pub const LAYOUTS: &[Layout] = &[
    Layout {
        name: "table with a head",
        before: "<title>Books</title><table><thead><tr><th>Title<th>Author<th>Price<th>Stars</tr></thead><tbody>",
        rows: &["<tr><td><a href='{link}'>{title}</a><td>{author}<td>${price}<td>{stars}</tr>"],
        after: "</tbody></table><p>All rights reserved",
        ..HTML
    },
    Layout {
        name: "table whose headers are its first row",
        before: "<table border=1><tr><th>Title<th>Author<th>Price<th>Stars</tr>",
        rows: &["<tr><td><a href='{link}'>{title}</a><td>{author}<td>{price}<td>{stars}</tr>"],
        after: "</table>",
        ..HTML
    },
    Layout {
        name: "table whose headers are plain cells",
        before: "<table><tr class=head><td>Title<td>Author<td>Price<td>Stars</tr>",
        rows: &["<tr><td><a href='{link}'>{title}</a><td>{author}<td>{price}<td>{stars}</tr>"],
        after: "</table>",
        ..HTML
    },
    Layout {
        name: "table with headers again in the middle",
        before: "<table><tr><th>Title<th>Author<th>Price<th>Stars</tr>",
        rows: &["<tr><td><a href='{link}'>{title}</a><td>{author}<td>{price}<td>{stars}</tr>"],
        between: &[(5, "<tr><th>Title<th>Author<th>Price<th>Stars</tr>")],
        after: "</table>",
        ..HTML
    },
    Layout {
        name: "table in sections",
        before: "<table class=books><tr><th>Title<th>Author<th>Price<th>Stars</tr><tr><td colspan=4><b>A to L</b></tr>",
        rows: &["<tr><td><a href='{link}'>{title}</a><td>{author}<td>{price}<td>{stars}</tr>"],
        between: &[(4, "<tr><td colspan=4><b>M to Z</b></tr>")],
        after: "</table>",
        ..HTML
    },
    Layout {
        name: "table with spacers and advertisements",
        before: "<table><thead><tr><th>Title<th>Author<th>Price<th>Stars</thead>",
        rows: &["<tr><td><a href='{link}'>{title}</a><td>{author}<td>{price}<td>{stars}</tr>"],
        between: &[
            (2, "<tr class=spacer><td colspan=4>&nbsp;</tr>"),
            (
                4,
                "<tr class=ad-row><td colspan=4><a href='https://ads.example/1'>Buy lamps now</a> from 9.99</tr>",
            ),
            (7, "<tr class=spacer><td colspan=4></tr>"),
        ],
        after: "</table>",
        ..HTML
    },
    Layout {
        name: "table with a total",
        before: "<table><tr><th>Title<th>Author<th>Price<th>Stars</tr>",
        rows: &["<tr><td><a href='{link}'>{title}</a><td>{author}<td>{price}<td>{stars}</tr>"],
        after: "<tfoot><tr class=total><td>Total<td><td>812.00<td></tr></tfoot></table>",
        ..HTML
    },
    Layout {
        name: "cells that span rows",
        before: "<table><tr><th>Series<th>Title<th>Price<th>Stars</tr>",
        rows: &[
            "<tr><td rowspan=2>{series}<td><a href='{link}'>{title}</a><td>{price}<td>{stars}</tr>",
            "<tr><td><a href='{link}'>{title}</a><td>{price}<td>{stars}</tr>",
        ],
        after: "</table>",
        fields: &["link", "price", "series", "stars", "title"],
        ..HTML
    },
    Layout {
        name: "headers in two rows",
        before: "<table><thead><tr><th rowspan=2>Title<th rowspan=2>Author<th colspan=2>Offer</tr><tr><th>Price<th>Stars</tr></thead><tbody>",
        rows: &["<tr><td><a href='{link}'>{title}</a><td>{author}<td>{price}<td>{stars}</tr>"],
        after: "</tbody></table>",
        ..HTML
    },
    Layout {
        name: "several tables of one class",
        before: "<table class=t><tr><th>Shop<th>Town<th>Phone<th>Open</tr><tr><td><a href='/shops/1'>North</a><td>Bath<td>55<td>9</tr>\
            <tr><td><a href='/shops/2'>South</a><td>York<td>56<td>8</tr></table>\
            <table class=t><tr><th>Title<th>Author<th>Price<th>Stars</tr>",
        rows: &["<tr><td><a href='{link}'>{title}</a><td>{author}<td>{price}<td>{stars}</tr>"],
        after: "</table><table class=t><tr><th>Day<th>Event<th>Fee<th>Seats</tr><tr><td><a href='/e/1'>Monday</a><td>Reading<td>3<td>40</tr></table>",
        ..HTML
    },
    Layout {
        name: "two tables of the same things",
        before: "<h2>New</h2><table class=books><tr><th>Title<th>Author<th>Price<th>Stars</tr>",
        rows: &["<tr><td><a href='{link}'>{title}</a><td>{author}<td>{price}<td>{stars}</tr>"],
        between: &[(
            5,
            "</table><h2>Used</h2><table class=books><tr><th>Title<th>Author<th>Price<th>Stars</tr>",
        )],
        after: "</table>",
        ..HTML
    },
    Layout {
        name: "list with classes",
        before: NAV,
        rows: &[
            "<li class=book><a class=title href='{link}'>{title}</a> [[<i class=author>{author}</i>]] [[<b class=price>{price}</b>]] [[<em class=stars>{stars}</em>]]",
        ],
        after: "</ul>",
        between: &[(0, "<ul class=books>")],
        ..HTML
    },
    Layout {
        name: "list without classes beside a menu",
        before: NAV,
        rows: &[
            "<li><a href='{link}'>{title}</a> [[by <i>{author}</i>]] [[for <b>{price}</b>]] [[<em>{stars} stars</em>]]",
        ],
        after: "</ul><ul><li><a href='/imprint'>Imprint</a></ul>",
        between: &[(0, "<h1>Books</h1><ul>")],
        ..HTML
    },
    Layout {
        name: "cards",
        before: "<div class=page><div class=header><a href='/'>Shop</a></div><div class=results>",
        rows: &[
            "<div class=card><h3><a href='{link}'>{title}</a></h3>[[<p class=by>by {author}</p>]]<div class=foot>[[<span class=price>${price}</span>]][[<span class=stars>{stars}</span>]]</div></div>",
        ],
        between: &[(
            3,
            "<div class='card sponsored'><h3><a href='https://ads.example/2'>A better lamp</a></h3><div class=foot><span class=price>$5.00</span></div></div>",
        )],
        after: "</div><div class=footer>Terms</div></div>",
        ..HTML
    },
    Layout {
        name: "cards of utility classes",
        before: "<main><div class='grid gap-4 css-1x2y3z'>",
        rows: &[
            "<div class='flex p-4 css-9k3jf2'><a class='text-lg font-bold' href='{link}'>{title}</a>[[<span class='text-sm text-gray'>{author}</span>]][[<span class='font-mono'>{price}</span>]][[<span class='text-yellow'>{stars}</span>]]</div>",
        ],
        after: "</div></main>",
        ..HTML
    },
    Layout {
        name: "articles with a banner between",
        before: "<main><h1>Reviews</h1>",
        rows: &[
            "<article><header><h2><a href='{link}'>{title}</a></h2></header>[[<p class=meta>{author}</p>]][[<p class=price>{price}</p>]][[<p class=rating>{stars}</p>]]</article>",
        ],
        between: &[
            (
                2,
                "<aside class=banner><a href='/club'>Join the club</a></aside>",
            ),
            (
                6,
                "<div class=promo><h2><a href='/sale'>Sale</a></h2></div>",
            ),
        ],
        after: "</main><footer><a href='/terms'>Terms</a></footer>",
        ..HTML
    },
    Layout {
        name: "lists in lists",
        before: "<ol class=list>",
        rows: &[
            "<li><h4><a href='{link}'>{title}</a></h4><ul><li class=a>{author}</li>[[<li class=p>{price}</li>]][[<li class=s>{stars}</li>]]</ul></li>",
        ],
        after: "</ol>",
        ..HTML
    },
    Layout {
        name: "terms and definitions",
        before: "<dl class=books>",
        rows: &[
            "<dt><a href='{link}'>{title}</a></dt>[[<dd class=author>{author}</dd>]][[<dd class=price>{price}</dd>]][[<dd class=stars>{stars}</dd>]]",
        ],
        after: "</dl>",
        ..HTML
    },
    Layout {
        name: "a term and one definition",
        before: "<dl>",
        rows: &["<dt><a href='{link}'>{title}</a></dt>[[<dd>{author}</dd>]]"],
        after: "</dl>",
        fields: &["author", "link", "title"],
        ..HTML
    },
    Layout {
        name: "definitions in groups",
        before: "<dl>",
        rows: &[
            "<div><dt><a href='{link}'>{title}</a></dt>[[<dd>by {author}</dd>]][[<dd class=price>{price}</dd>]][[<dd class=stars>{stars}</dd>]]</div>",
        ],
        after: "</dl>",
        ..HTML
    },
    Layout {
        name: "lines with labels",
        before: "<div id=list>",
        rows: &[
            "<div class=entry><p><a href='{link}'>{title}</a></p>[[<p><b>Author:</b> {author}</p>]][[<p><b>Price:</b> {price}</p>]][[<p><b>Stars:</b> {stars}</p>]]</div>",
        ],
        after: "</div>",
        ..HTML
    },
    Layout {
        name: "a table in each row",
        before: "<div class=list>",
        rows: &[
            "<div class=entry><h3><a href='{link}'>{title}</a></h3><table>[[<tr><th>Author<td>{author}</tr>]][[<tr><th>Price<td>{price}</tr>]][[<tr><th>Stars<td>{stars}</tr>]]</table></div>",
        ],
        after: "</div>",
        ..HTML
    },
    Layout {
        name: "two table rows for each, with classes",
        before: "<table><tr><th>Book<th>Price</tr>",
        rows: &[
            "<tr class=main><td><a href='{link}'>{title}</a><td>{price}</tr><tr class=detail><td><i class=author>{author}</i><td><u class=stars>{stars}</u></tr>",
        ],
        after: "</table>",
        ..HTML
    },
    Layout {
        name: "two table rows for each, without classes",
        before: "<table>",
        rows: &[
            "<tr><td><a href='{link}'>{title}</a><td>{price}</tr><tr><td colspan=2><i>{author}</i> <u>{stars}</u></tr>",
        ],
        after: "</table>",
        ..HTML
    },
    Layout {
        name: "headings and paragraphs side by side",
        before: "<div id=content><h1>Books</h1>",
        rows: &[
            "<h3><a href='{link}'>{title}</a></h3>[[<p class=author>{author}</p>]][[<p class=price>{price}</p>]][[<p class=stars>{stars}</p>]]",
        ],
        after: "</div>",
        ..HTML
    },
    Layout {
        name: "links that are cards",
        before: "<section class=shelf>",
        rows: &[
            "<a class=tile href='{link}'><strong>{title}</strong>[[<span class=by>{author}</span>]][[<span class=cost>{price}</span>]][[<span class=rate data-stars='{stars}'></span>]]</a>",
        ],
        after: "</section><a class=more href='/more'><strong>More</strong></a>",
        ..HTML
    },
    Layout {
        name: "images alone",
        before: "<div class=wall>",
        rows: &["<div class=cover><a href='{link}'><img alt='{title}' src='{image}'></a></div>"],
        between: &[(4, "<div class=cover></div>")],
        after: "</div>",
        fields: &["image", "link", "title"],
        ..HTML
    },
    Layout {
        name: "JSON list",
        kind: PageKind::Json,
        before: "[",
        rows: &[
            r#"{"title": "{title}", "link": "{link}"[[, "author": "{author}"]][[, "price": {price}]][[, "stars": {stars}]]}"#,
        ],
        separator: ",",
        after: "]",
        ..HTML
    },
    Layout {
        name: "JSON list deep within",
        kind: PageKind::Json,
        before: r#"{"meta": {"pages": 3, "facets": [{"name": "Author", "values": [{"name": "Fay Archer", "count": 2}]}]}, "data": {"items": ["#,
        rows: &[
            r#"{"node": {"title": "{title}", "url": "{link}", "by": {"name": "{author}"} [[, "offers": [{"price": "{price}"}] ]], "format": {"pages": 1}[[, "rating": {"value": {stars}}]]}}"#,
        ],
        separator: ",",
        after: "]}}",
        ..HTML
    },
    Layout {
        name: "linked data",
        before: r#"<h1>Books</h1><script type="application/ld+json">{"@type": "ItemList", "itemListElement": ["#,
        rows: &[
            r#"{"@type": "ListItem", "item": {"@type": "Book", "name": "{title}", "url": "{link}"[[, "author": {"@type": "Person", "name": "{author}"}]][[, "offers": {"@type": "Offer", "price": "{price}"}]][[, "aggregateRating": {"@type": "AggregateRating", "ratingValue": "{stars}"}]]}}"#,
        ],
        separator: ",",
        after: "]}</script>",
        ..HTML
    },
    Layout {
        name: "data in a script",
        before: r#"<div id=app></div><script id=data type="application/json">{"props": {"books": ["#,
        rows: &[
            r#"{"title": "{title}", "link": "{link}"[[, "author": "{author}"]][[, "price": "{price}"]][[, "stars": "{stars}"]]}"#,
        ],
        separator: ",",
        after: "]}}</script>",
        ..HTML
    },
    Layout {
        name: "microdata",
        before: "<div itemscope itemtype='https://schema.org/ItemList'>",
        rows: &[
            "<div itemprop=itemListElement itemscope itemtype='https://schema.org/Book'><a itemprop=url href='{link}'><span itemprop=name>{title}</span></a>[[<span itemprop=author>{author}</span>]][[<meta itemprop=price content='{price}'>]][[<span itemprop=ratingValue>{stars}</span>]]</div>",
        ],
        after: "</div>",
        ..HTML
    },
    Layout {
        name: "attributes of rows",
        before: "<ul id=results>",
        rows: &[
            "<li data-title='{title}' data-price='{price}' data-stars='{stars}'><a href='{link}'>View</a> <span>{author}</span>",
        ],
        after: "</ul>",
        ..HTML
    },
    Layout {
        name: "grid of three columns",
        before: "<div class=container><div class=row>",
        rows: &[
            "<div class=col><div class=box><a href='{link}'>{title}</a>[[<p class=a>{author}</p>]][[<p class=p>{price}</p>]][[<p class=s>{stars}</p>]]</div></div>",
        ],
        between: &[
            (3, "</div><div class=row>"),
            (6, "</div><div class=row>"),
            (9, "</div><div class=row>"),
        ],
        after: "</div></div>",
        ..HTML
    },
    Layout {
        name: "cells that are cards",
        before: "<table class=shelf><tr>",
        rows: &[
            "<td><a href='{link}'>{title}</a><br>[[<i>{author}</i><br>]][[<b>{price}</b>]][[ <em>{stars}</em>]]</td>",
        ],
        between: &[(3, "</tr><tr>"), (6, "</tr><tr>"), (9, "</tr><tr>")],
        after: "</tr></table>",
        ..HTML
    },
    Layout {
        name: "two rows only",
        before: "<h1>Results</h1><ul class=hits>",
        rows: &[
            "<li class=hit><a href='{link}'>{title}</a><span class=by>{author}</span><span class=cost>{price}</span></li>",
        ],
        after: "</ul><ul class=links><li><a href='/help'>Help</a></li></ul>",
        fields: &["author", "link", "price", "title"],
        count: 2,
        ..HTML
    },
    Layout {
        name: "sentences",
        before: "<h1>Books</h1><ul class=lines>",
        rows: &["<li><a href='{link}'>{title}</a> by {author}, ${price}</li>"],
        after: "</ul>",
        fields: &["author", "link", "price", "title"],
        ..HTML
    },
    Layout {
        name: "odd and even",
        before: "<div class=listing>",
        rows: &[
            "<div class='row odd'><span class=t><a href='{link}'>{title}</a></span>[[<span class=a>{author}</span>]][[<span class=p>{price}</span>]][[<span class=s>{stars}</span>]]</div>",
            "<div class='row even'><span class=t><a href='{link}'>{title}</a></span>[[<span class=a>{author}</span>]][[<span class=p>{price}</span>]][[<span class=s>{stars}</span>]]</div>",
        ],
        between: &[(
            0,
            "<div class='row head'><span class=t>Title</span><span class=a>Author</span><span class=p>Price</span></div>",
        )],
        after: "</div>",
        ..HTML
    },
    Layout {
        name: "lists by section",
        before: "<section><h2>Novels</h2><ul>",
        rows: &[
            "<li><a href='{link}'>{title}</a>[[<span class=a>{author}</span>]][[<span class=p>{price}</span>]][[<span class=s>{stars}</span>]]</li>",
        ],
        between: &[
            (4, "</ul></section><section><h2>Poems</h2><ul>"),
            (7, "</ul></section><section><h2>Plays</h2><ul>"),
        ],
        after: "</ul></section>",
        ..HTML
    },
    Layout {
        name: "whose list it is, in the heading and the URL",
        before: "<h1>Shelf of {owner}</h1><p class=owner>{owner}</p><table><tr><th>Title<th>Author<th>Stars</tr>",
        rows: &["<tr><td><a href='{link}'>{title}</a><td>{author}<td>{stars}</tr>"],
        after: "</table>",
        fields: &["author", "link", "owner", "shelf", "stars", "title"],
        ..HTML
    },
    Layout {
        name: "empty cells in place of what is missing",
        before: "<div class=table><div class=tr><div class=th>Title</div><div class=th>Author</div><div class=th>Price</div><div class=th>Stars</div></div>",
        rows: &[
            "<div class=tr><div class=td><a href='{link}'>{title}</a></div><div class=td>{author}</div><div class=td>{price}</div><div class=td>{stars}</div></div>",
        ],
        after: "</div>",
        ..HTML
    },
];
