//! Kinds of true changes: their names, a text of a page before the change, and the text after it.

pub(crate) const CHANGES: &[(&str, &str, &str)] = &[
    (
        "a price",
        "<p class=price>Price: 12.50 EUR",
        "<p class=price>Price: 12.05 EUR",
    ),
    (
        "an hour of closing",
        "<p>Open until 18:00",
        "<p>Open until 19:00",
    ),
    (
        "an odd hour of closing",
        "<p>Open until 18:05",
        "<p>Open until 19:05",
    ),
    ("a departure", "<p>Departs 14:03", "<p>Departs 15:03"),
    ("a kick-off", "<p>Kick-off 6:00 pm", "<p>Kick-off 7:00 pm"),
    ("a score", "<p class=score>2:02", "<p class=score>3:02"),
    (
        "opening hours",
        "<p>From 9:00 to 17:00",
        "<p>From 9:30 to 17:00",
    ),
    (
        "a day of opening",
        "<p>Closed on Monday",
        "<p>Closed on Tuesday",
    ),
    (
        "the date of an event",
        "<p>Concert on 24 January 2027",
        "<p>Concert on 25 January 2027",
    ),
    (
        "a deadline",
        "<p>Apply by 2027-03-01",
        "<p>Apply by 2027-03-15",
    ),
    (
        "a date that is past",
        "<p>Founded 12.05.1998",
        "<p>Founded 12.05.1989",
    ),
    (
        "days of shipping",
        "<p>Ships in 3 days",
        "<p>Ships in 5 days",
    ),
    (
        "stock",
        "<p class=stock>In stock",
        "<p class=stock>Sold out",
    ),
    ("a rating", "<p>Rated 4.5 of 5", "<p>Rated 4.4 of 5"),
    ("a count of rooms", "<p>4 rooms", "<p>3 rooms"),
    (
        "a version",
        "<p>Version 1.9.1 is out",
        "<p>Version 1.9.2 is out",
    ),
    ("a percentage", "<p>Interest 2.5 %", "<p>Interest 2.6 %"),
    ("a sign", "<p>Balance -5", "<p>Balance +5"),
    ("a unit", "<p>Weighs 5 kg", "<p>Weighs 5 lb"),
    ("a currency", "<p>Costs 5 EUR", "<p>Costs 5 USD"),
    ("a telephone", "<p>Call 030 1234567", "<p>Call 030 1234576"),
    (
        "an address of mail",
        "<p>Write to ada@example.org",
        "<p>Write to bob@example.org",
    ),
    (
        "a street",
        "<p>Main Street 5, Springfield",
        "<p>Main Street 7, Springfield",
    ),
    ("a name", "<p>Run by Ada Miller", "<p>Run by Eva Miller"),
    ("a title", "<h2>Lecturer</h2>", "<h2>Professor</h2>"),
    (
        "a negation",
        "<p>Dogs are allowed here",
        "<p>Dogs are not allowed here",
    ),
    (
        "capital letters",
        "<p>it is made by us",
        "<p>it is made by US",
    ),
    ("an accent", "<p>The resume", "<p>The résumé"),
    (
        "a word of a long text",
        "<p>The house at the river has a large garden with old trees and a view of the harbour from every room.",
        "<p>The house at the river has a small garden with old trees and a view of the harbour from every room.",
    ),
    ("a paragraph more", "", "<p>From December we are closed."),
    ("a paragraph less", "<p>Free entry for children.", ""),
    (
        "an item more",
        "<ul><li>Bread<li>Butter</ul>",
        "<ul><li>Bread<li>Butter<li>Cheese</ul>",
    ),
    (
        "an item less",
        "<ul><li>Bread<li>Butter</ul>",
        "<ul><li>Bread</ul>",
    ),
    (
        "an item that is another",
        "<ul><li>Bread<li>Butter</ul>",
        "<ul><li>Bread<li>Jam</ul>",
    ),
    (
        "an item there twice",
        "<ul><li>Bread<li>Milk</ul>",
        "<ul><li>Bread<li>Milk<li>Milk</ul>",
    ),
    (
        "an item first",
        "<ul class=items><li>One</ul>",
        "<ul class=items><li>Zero<li>One</ul>",
    ),
    (
        "a cell",
        "<table><tr><td>Mo<td>8<tr><td>Tu<td>9</table>",
        "<table><tr><td>Mo<td>8<tr><td>Tu<td>10</table>",
    ),
    (
        "a row",
        "<table><tr><td>Mo<td>8</table>",
        "<table><tr><td>Mo<td>8<tr><td>Tu<td>9</table>",
    ),
    (
        "a definition",
        "<dl><dt>Colour<dd>red</dl>",
        "<dl><dt>Colour<dd>blue</dl>",
    ),
    (
        "a caption",
        "<figure><figcaption>The new bridge</figcaption></figure>",
        "<figure><figcaption>The old bridge</figcaption></figure>",
    ),
    (
        "a code sample",
        "<pre>let a = 1;</pre>",
        "<pre>let a = 2;</pre>",
    ),
    (
        "a state",
        "<p>Applications are open",
        "<p>Applications are closed",
    ),
    (
        "an author",
        "<address>by Ada</address>",
        "<address>by Bob</address>",
    ),
    (
        "a link's text",
        "<p><a href=/x>Read part one</a>",
        "<p><a href=/x>Read part two</a>",
    ),
    (
        "a member of a set",
        "<p>Tags: red, green, blue",
        "<p>Tags: red, green, black",
    ),
    (
        "a set that grows",
        "<p>Tags: red, green, blue",
        "<p>Tags: red, green, blue, black",
    ),
    (
        "a price by one cent",
        "<p class=price>19.99 EUR",
        "<p class=price>19.98 EUR",
    ),
    (
        "a price with a comma",
        "<p class=price>1.249,00 €",
        "<p class=price>1.299,00 €",
    ),
    (
        "a word of availability",
        "<p class=stock>Available",
        "<p class=stock>Unavailable",
    ),
    ("how many are left", "<p>Only 3 left", "<p>Only 2 left"),
    (
        "when it was updated last",
        "<p>Last updated: 3 March 2025",
        "<p>Last updated: 9 March 2026",
    ),
    (
        "a row at the end",
        "<table class=fees><tr><th>Adults<td>8 EUR<tr><th>Students<td>5 EUR</table>",
        "<table class=fees><tr><th>Adults<td>8 EUR<tr><th>Students<td>5 EUR<tr><th>Dogs<td>1 EUR</table>",
    ),
    (
        "the order of a ranking",
        "<ol class=ranking><li>Ada<li>Bob<li>Eve</ol>",
        "<ol class=ranking><li>Bob<li>Ada<li>Eve</ol>",
    ),
    (
        "values of two rows",
        "<table class=hours><tr><th>Monday<td>8 to 17<tr><th>Tuesday<td>9 to 18</table>",
        "<table class=hours><tr><th>Monday<td>9 to 18<tr><th>Tuesday<td>8 to 17</table>",
    ),
    (
        "values of two definitions",
        "<dl><dt>Height<dd>20 cm<dt>Width<dd>30 cm</dl>",
        "<dl><dt>Height<dd>30 cm<dt>Width<dd>20 cm</dl>",
    ),
    (
        "an event by one day",
        "<p>Saturday, 5 December 2026, at 20:00",
        "<p>Sunday, 6 December 2026, at 20:00",
    ),
    (
        "a digit of a telephone",
        "<p>Telephone +49 30 901820",
        "<p>Telephone +49 30 901821",
    ),
    (
        "a word that denies",
        "<p>The form must be signed by hand and sent to the office by the end of the month.",
        "<p>The form must not be signed by hand and sent to the office by the end of the month.",
    ),
    (
        "an hour in German",
        "<p>Geöffnet bis 18 Uhr",
        "<p>Geöffnet bis 19 Uhr",
    ),
    (
        "hours until it ships",
        "<p>Ships within 24 hours",
        "<p>Ships within 48 hours",
    ),
    (
        "an age of admission",
        "<p>Admission from 16 years",
        "<p>Admission from 18 years",
    ),
    ("a licence", "<p>Licence: MIT", "<p>Licence: GPL"),
    (
        "vacancies",
        "<p class=vacancies>Vacancies: 3",
        "<p class=vacancies>Vacancies: 0",
    ),
];
