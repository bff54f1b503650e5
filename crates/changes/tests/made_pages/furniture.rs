//! Kinds of page furniture: parts that differ between fetches although the page has not changed.

use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, ToSpan};

use crate::{HOUR_MS, WORDS, random_words};

/// A request for a page of the generated site.
pub(crate) struct Fetch<'r> {
    pub(crate) at_ms: i64,
    pub(crate) page: usize,
    /// The number of requests for this page, including this one.
    pub(crate) visits: u64,
    pub(crate) rng: &'r mut fastrand::Rng,
}

impl Fetch<'_> {
    /// The local time of a server whose time zone is `zone` hours east of UTC.
    fn clock(&self, zone: i8) -> DateTime {
        self.clock_at(self.at_ms, zone)
    }

    fn clock_at(&self, at_ms: i64, zone: i8) -> DateTime {
        let moment = Timestamp::from_millisecond(at_ms).unwrap();
        moment
            .to_zoned(TimeZone::fixed(Offset::constant(zone)))
            .datetime()
    }

    /// A random generator that is the same for all pages in a span of time.
    fn rng_of_span(&self, span_ms: i64) -> fastrand::Rng {
        fastrand::Rng::with_seed((self.at_ms / span_ms) as u64)
    }

    fn format_time(&self, zone: i8, format: &str) -> String {
        self.clock(zone).strftime(format).to_string()
    }

    fn pick<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.rng.usize(..of.len())]
    }
}

/// A kind of page furniture: a part of a page that differs between fetches without meaning.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) html: fn(&mut Fetch<'_>) -> String,
    /// Whether the furniture is between two paragraphs of the text.
    pub(crate) is_between: bool,
}

const fn kind_around(name: &'static str, html: fn(&mut Fetch<'_>) -> String) -> Kind {
    Kind {
        name,
        html,
        is_between: false,
    }
}

const fn kind_between(name: &'static str, html: fn(&mut Fetch<'_>) -> String) -> Kind {
    Kind {
        name,
        html,
        is_between: true,
    }
}

const DAY_MS: i64 = 24 * HOUR_MS;

pub(crate) const KINDS: &[Kind] = &[
    kind_around("a counter of visits", |fetch| {
        format!("<p class=visits>{} visits</p>", fetch.visits)
    }),
    kind_around("a counter behind its label", |fetch| {
        format!("<p>Visitors:{}</p>", fetch.visits)
    }),
    kind_around("a counter beside a list", |fetch| {
        format!(
            "<ul class=facts><li>Fact one<li>Fact two<li>{} views</ul>",
            fetch.visits
        )
    }),
    kind_around("a counter at each item", |fetch| {
        let item = |name: &str, times: u64| format!("<li>{name} ({times})");
        let visits = fetch.visits;
        format!(
            "<ul class=top>{}{}{}</ul>",
            item("Lamp", visits),
            item("Chair", visits * 3),
            item("Desk", visits * 7)
        )
    }),
    kind_around("visitors online", |fetch| {
        format!("<p>{} visitors online</p>", fetch.rng.u32(..900))
    }),
    kind_around("people who look at it", |fetch| {
        let people = fetch.rng.u32(2..40);
        format!("<p>{people} people are looking at this right now</p>")
    }),
    kind_around("time of rendering", |fetch| {
        format!("<footer>Rendered in {} ms</footer>", fetch.rng.u32(..900))
    }),
    kind_around("queries and seconds", |fetch| {
        let (queries, ms) = (fetch.rng.u32(5..90), fetch.rng.u32(..999));
        format!("<footer>{queries} queries in 0.{ms:03} seconds</footer>")
    }),
    kind_around("the id of a session", |fetch| {
        format!("<p>Session {:x}</p>", fetch.rng.u64(..))
    }),
    kind_around("the id of a request", |fetch| {
        format!(
            "<p>Request ID: {:x}-{:x}</p>",
            fetch.rng.u32(..),
            fetch.rng.u32(..)
        )
    }),
    kind_around("the name of a server", |fetch| {
        let server = fetch.pick(&["web-01", "web-02", "web-03", "web-04", "web-05", "web-06"]);
        format!("<footer>Served by {server}</footer>")
    }),
    kind_around("a clock with seconds", |fetch| {
        format!("<p>{}</p>", fetch.format_time(1, "%H:%M:%S"))
    }),
    kind_around("a clock", |fetch| {
        format!("<p>It is {}</p>", fetch.format_time(2, "%H:%M"))
    }),
    kind_around("a clock of twelve hours", |fetch| {
        format!("<p>Server time {}</p>", fetch.format_time(-5, "%I:%M %p"))
    }),
    kind_around("a clock and a date", |fetch| {
        format!(
            "<p>Generated {}</p>",
            fetch.format_time(0, "%Y-%m-%d %H:%M:%S")
        )
    }),
    kind_around("a clock that a cache keeps back", |fetch| {
        let made_ms = fetch.at_ms / 600_000 * 600_000 + 97_000 - 600_000;
        format!(
            "<footer>Page made at {}</footer>",
            fetch.clock_at(made_ms, 0).strftime("%H:%M")
        )
    }),
    kind_around("the date of the day", |fetch| {
        format!("<p>{}</p>", fetch.format_time(1, "%A, %-d %B %Y"))
    }),
    kind_around("the date of the day in America", |fetch| {
        format!("<p>{}</p>", fetch.format_time(-5, "%B %-d, %Y"))
    }),
    kind_around("the date in numbers", |fetch| {
        format!("<p>Stand: {}</p>", fetch.format_time(1, "%d.%m.%Y"))
    }),
    kind_around("the date of ISO 8601", |fetch| {
        format!("<p>{}</p>", fetch.format_time(0, "%Y-%m-%d"))
    }),
    kind_around("the date without its year", |fetch| {
        format!("<p>{}</p>", fetch.format_time(0, "%a %-d %B"))
    }),
    kind_around("the date of tomorrow's delivery", |fetch| {
        let day = fetch.clock(0).date().checked_add(1.day()).unwrap();
        format!("<p>Order now, get it by {}</p>", day.strftime("%-d %B %Y"))
    }),
    kind_around("ages of comments", |fetch| {
        let ages = [3, 20, 75, 200].map(|hours| {
            let hours = hours + (fetch.at_ms - crate::FIRST_MS) / HOUR_MS;
            match hours {
                0..24 => format!(
                    "<div class=comment>{hours} hours ago: fine {}</div>",
                    WORDS[fetch.page % 40]
                ),
                _ => format!(
                    "<div class=comment>{} days ago: fine {}</div>",
                    hours / 24,
                    WORDS[fetch.page % 40]
                ),
            }
        });
        ages.concat()
    }),
    kind_around("ages that become dates", |fetch| {
        let written_ms = crate::FIRST_MS - 6 * DAY_MS;
        let days = (fetch.at_ms - written_ms) / DAY_MS;
        match days {
            0..8 => format!("<p>Posted {days} days ago</p>"),
            _ => format!(
                "<p>Posted {}</p>",
                fetch.clock_at(written_ms, 0).strftime("%b %-d, %Y")
            ),
        }
    }),
    kind_around("a countdown", |fetch| {
        let left = (crate::FIRST_MS + 60 * DAY_MS - fetch.at_ms) / 1_000;
        format!(
            "<p>Starts in {} h {} min {} s</p>",
            left / 3_600,
            left / 60 % 60,
            left % 60
        )
    }),
    kind_around("a greeting by the hour", |fetch| {
        let hour = fetch.clock(0).hour();
        let greeting = match hour {
            5..12 => "Good morning",
            12..18 => "Good afternoon",
            _ => "Good evening",
        };
        format!("<p class=greeting>{greeting}</p>")
    }),
    kind_around("related items at random", |fetch| {
        let items: Vec<String> = (0..4)
            .map(|_| format!("<li>{}", random_words(fetch.rng, 2)))
            .collect();
        format!("<aside class=related><ul>{}</ul></aside>", items.concat())
    }),
    kind_around("new members", |fetch| {
        let members: Vec<String> = (0..3)
            .map(|_| format!("{}{}", fetch.rng.u32(..99), WORDS[fetch.rng.usize(..40)]))
            .collect();
        format!("<p class=members>{}</p>", members.join(", "))
    }),
    kind_around("a testimonial at random", |fetch| {
        format!("<blockquote>{}</blockquote>", random_words(fetch.rng, 12))
    }),
    kind_around("a tip at random", |fetch| {
        let tip = fetch.pick(&[
            "Save water.",
            "Go for a walk.",
            "Call a friend.",
            "Read a book.",
            "Learn a word.",
            "Plant a tree.",
            "Sleep well.",
        ]);
        format!("<p class=tip>{tip}</p>")
    }),
    kind_around("two forms in turn", |fetch| {
        let form = fetch.pick(&["Order now and save.", "Get yours before it is gone."]);
        format!("<p class=call>{form}</p>")
    }),
    kind_around("a captcha", |fetch| {
        format!(
            "<form><label>What is {} plus {}?</label></form>",
            fetch.rng.u32(1..9),
            fetch.rng.u32(1..9)
        )
    }),
    kind_around("a poll", |fetch| {
        let yes = fetch.rng.u32(..100);
        format!(
            "<table class=poll><tr><td>Yes<td>{yes} %<tr><td>No<td>{} %</table>",
            100 - yes
        )
    }),
    kind_around("a ticker", |fetch| {
        format!(
            "<p>Shares {}.{:02} EUR</p>",
            fetch.rng.u32(90..110),
            fetch.rng.u32(..100)
        )
    }),
    kind_around("a set in any order", |fetch| {
        let mut tags = ["red", "green", "blue", "black", "white"];
        fetch.rng.shuffle(&mut tags);
        format!("<p>Tags: {}</p>", tags.join(", "))
    }),
    kind_around("items in any order", |fetch| {
        let mut items = ["<li>red", "<li>green", "<li>blue", "<li>black"];
        fetch.rng.shuffle(&mut items);
        format!("<ul class=colours>{}</ul>", items.concat())
    }),
    kind_around("letters composed or not", |fetch| {
        let name = fetch.pick(&["Caf\u{e9} Z\u{fc}rich", "Cafe\u{301} Zu\u{308}rich"]);
        format!("<p>{name}</p>")
    }),
    kind_around("marks that nobody sees", |fetch| {
        let price = fetch.pick(&[
            "10 EUR",
            "10\u{a0}EUR",
            "10\u{202f}EUR\u{200b}",
            "\u{200e}10 EUR\u{2060}",
        ]);
        format!("<p>{price}</p>")
    }),
    kind_around("white space", |fetch| {
        format!("<p>One {} line</p>", fetch.pick(&["", " ", "\n", "\t "]))
    }),
    kind_around("a script with a nonce", |fetch| {
        format!(
            "<script nonce='{0:x}'>var t={0}</script>",
            fetch.rng.u32(..)
        )
    }),
    kind_around("a dialog about cookies, at times", |fetch| {
        fetch
            .pick(&["", "<div role=dialog>We use cookies</div>"])
            .to_owned()
    }),
    kind_around("a name in the navigation", |fetch| {
        format!("<nav>Hello, visitor {}</nav>", fetch.rng.u32(..))
    }),
    kind_between("an advertisement of its own kind", |fetch| {
        format!(
            "<div class='ad ad-{}'><p>Buy {} now</p></div>",
            fetch.rng.u32(..),
            random_words(fetch.rng, 2)
        )
    }),
    kind_between("an advertisement like a paragraph", |fetch| {
        format!("<p>{}</p>", random_words(fetch.rng, 8))
    }),
    kind_between("a counter like a paragraph", |fetch| {
        format!("<p>Read {} times</p>", fetch.visits)
    }),
    kind_around("the headline of ten days", |fetch| {
        format!(
            "<div class=headline><p>{}</p></div>",
            random_words(&mut fetch.rng_of_span(10 * DAY_MS), 8)
        )
    }),
    kind_around("ages in ten languages", |fetch| {
        let hours = 2 + (fetch.at_ms - crate::FIRST_MS) / HOUR_MS;
        let (days, is_old) = (hours / 24, hours >= 48);
        let ages: [(&str, &str); 10] = [
            ("{} hours ago", "{} days ago"),
            ("vor {} Stunden", "vor {} Tagen"),
            ("il y a {} heures", "il y a {} jours"),
            ("hace {} horas", "hace {} días"),
            ("{} ore fa", "{} giorni fa"),
            ("há {} horas", "há {} dias"),
            ("{} uur geleden", "{} dagen geleden"),
            ("{} godzin temu", "{} dni temu"),
            ("{}時間前", "{}日前"),
            ("{}小时前", "{}天前"),
        ];
        let (of_hours, of_days) = ages[fetch.page % 10];
        let age = match is_old {
            true => of_days.replace("{}", &days.to_string()),
            false => of_hours.replace("{}", &hours.to_string()),
        };
        format!("<p class=age>{age}</p>")
    }),
    kind_around("the date of the day in ten languages", |fetch| {
        let today = fetch.clock(1).date();
        let [year, month, day] = [
            today.year(),
            i16::from(today.month()),
            i16::from(today.day()),
        ];
        // Only November and December have names here, because all ten checks are in these months.
        let named = |november: &str, december: &str| match month {
            11 => november.to_owned(),
            _ => december.to_owned(),
        };
        let text = match fetch.page % 10 {
            0 => format!("{} {day}, {year}", named("November", "December")),
            1 => format!("{day}. {} {year}", named("November", "Dezember")),
            2 => format!("{day} {} {year}", named("novembre", "décembre")),
            3 => format!("{day} de {} de {year}", named("noviembre", "diciembre")),
            4 => format!("{day} {} {year}", named("novembre", "dicembre")),
            5 => format!("{day} de {} de {year}", named("novembro", "dezembro")),
            6 => format!("{day} {} {year}", named("november", "december")),
            7 => format!("{day} {} {year}", named("listopada", "grudnia")),
            8 => format!("{year}年{month}月{day}日"),
            _ => format!("{year}年{month:02}月{day:02}日"),
        };
        format!("<p class=today>{text}</p>")
    }),
    kind_around("a variant of a test", |fetch| {
        fetch
            .pick(&[
                "<div class=hero-a><h2>Try it for free</h2><p>No card needed.</p></div>",
                "<div class=hero-b><h2>Start today</h2><p>Thirty days are free.</p></div>",
            ])
            .to_owned()
    }),
    kind_around("a banner about cookies in plain elements", |fetch| {
        fetch
            .pick(&[
                "",
                "<div class=cookie-banner><p>We value your privacy.</p><p>Accept all cookies or choose which.</p></div>",
            ])
            .to_owned()
    }),
    kind_around("a testimonial with its author", |fetch| {
        let (quote, author) = [
            ("It works.", "Ada, Ulm"),
            ("We saved a week.", "Bob, Bonn"),
            ("Never without it.", "Eve, Jena"),
            ("A good team.", "Max, Kiel"),
        ][fetch.rng.usize(..4)];
        format!(
            "<figure class=quote><blockquote>{quote}</blockquote><figcaption>{author}</figcaption></figure>"
        )
    }),
    kind_around("the currency that was guessed", |fetch| {
        let currency = fetch.pick(&["EUR", "USD", "GBP", "CHF"]);
        format!("<p class=currency>Prices in {currency}</p>")
    }),
    kind_around("visitors of today, in thousands", |fetch| {
        format!(
            "<p class=live><b>{}.{}k</b> people visited us today</p>",
            fetch.rng.u32(1..9),
            fetch.rng.u32(..10)
        )
    }),
    kind_around("recommendations in any order", |fetch| {
        let mut items = [
            "Lamp 12 EUR",
            "Chair 40 EUR",
            "Desk 99 EUR",
            "Shelf 25 EUR",
            "Bed 300 EUR",
        ];
        fetch.rng.shuffle(&mut items);
        let cards = items[..3]
            .iter()
            .map(|item| format!("<div class=card><p>{item}</p></div>"));
        format!(
            "<section class=more>{}</section>",
            cards.collect::<String>()
        )
    }),
    kind_around("a token in the text of a form", |fetch| {
        format!(
            "<form><p class=token>{:016x}{:016x}</p></form>",
            fetch.rng.u64(..),
            fetch.rng.u64(..)
        )
    }),
    kind_between(
        "an advertisement that is missing at times",
        |fetch| match fetch.rng.bool() {
            true => String::new(),
            false => format!(
                "<div class=sponsor><p>Sponsored: {}</p></div>",
                random_words(fetch.rng, 4)
            ),
        },
    ),
    kind_around("the address of the visitor", |fetch| {
        format!(
            "<p>Your IP address is 203.0.113.{}</p>",
            fetch.rng.u32(1..255)
        )
    }),
    kind_around("the end of the session", |fetch| {
        let ends_ms = fetch.at_ms + 20 * 60_000;
        format!(
            "<p>Your session ends at {}</p>",
            fetch.clock_at(ends_ms, 0).strftime("%H:%M")
        )
    }),
    kind_around("how old the copy is", |fetch| {
        format!(
            "<footer>Cached copy, {} seconds old</footer>",
            fetch.rng.u32(1..600)
        )
    }),
    kind_around("a reader's number in a queue", |fetch| {
        format!(
            "<p>You are number {} in the queue.</p>",
            fetch.visits * 3 % 971
        )
    }),
    kind_around("the build of the software", |fetch| {
        let build = fetch.rng_of_span(5 * DAY_MS).u32(..);
        format!("<footer><small>Build {build:08x}</small></footer>")
    }),
];
