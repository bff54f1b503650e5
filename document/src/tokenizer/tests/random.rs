//! Markup at random, made of what steers a tokenizer. The same in every run, and more of it with
//! `WEBFILL_TOKENIZER_CASES=1000000 cargo test -p webfill-document random`.

use super::super::compare::compare;

const PIECES: [&str; 150] = [
    "<",
    ">",
    "/",
    "</",
    "/>",
    "<!",
    "<!-",
    "<!--",
    "-->",
    "--!>",
    "-",
    "--",
    "!",
    "?",
    "<?",
    "=",
    "\"",
    "'",
    " ",
    "\n",
    "\r",
    "\r\n",
    "\t",
    "\x0c",
    "\0",
    "\u{b}",
    "a",
    "A",
    "b",
    "script",
    "SCRIPT",
    "x",
    "ü",
    "\u{feff}",
    "\u{fffd}",
    "é\0",
    "&",
    "&amp;",
    "&amp",
    "&lt",
    "&notit;",
    "&not",
    "&notin;",
    "&nbsp;",
    "&copy=",
    "&copya",
    "&#",
    "&#x",
    "&#X41;",
    "&#65",
    "&#0;",
    "&#128;",
    "&#x9f;",
    "&#xD800;",
    "&#x110000;",
    "&#99999999999;",
    "&#13;",
    "&#10;",
    "&bne;",
    "&NotEqualTilde;",
    "&fjlig;",
    "&CounterClockwiseContourIntegral;",
    "&ThickSpace",
    "&xyzzy;",
    "&;",
    "&&",
    ";",
    "<a",
    "<a ",
    "<a b",
    "<a b=",
    "<a b='",
    "<a b=\"",
    "<a b=c",
    "<A B=C>",
    "<a b b=1 B=2>",
    "<a/b>",
    "<a b/>",
    "<a =b>",
    "<a 'b\"<c=d>",
    "<a\0b\0=\0>",
    "<p>",
    "</p>",
    "<div>",
    "</div>",
    "<br/>",
    "</br>",
    "<svg>",
    "</svg>",
    "<math>",
    "<mi>",
    "<foreignObject>",
    "<desc>",
    "<annotation-xml encoding=text/html>",
    "<![CDATA[",
    "]]>",
    "]",
    "]]",
    "<![cdata[",
    "<title>",
    "</title>",
    "</TITLE ",
    "</title/",
    "<textarea>",
    "</textarea>",
    "<style>",
    "</style>",
    "<xmp>",
    "</xmp>",
    "<iframe>",
    "</iframe>",
    "<noscript>",
    "</noscript>",
    "<noframes>",
    "</noframes>",
    "<noembed>",
    "</noembed>",
    "<script>",
    "</script>",
    "</script ",
    "</SCRIPT\t",
    "</script/",
    "</scrip",
    "<script ",
    "<script/",
    "<script-",
    "<plaintext>",
    "<pre>",
    "<pre>\n",
    "<listing>",
    "<table>",
    "<tr>",
    "<td>",
    "</table>",
    "<select>",
    "<option>",
    "<template>",
    "</template>",
    "<frameset>",
    "<body a=b>",
    "<html c=d>",
    "<!DOCTYPE",
    "<!doctype html>",
    " PUBLIC",
    " SYSTEM",
    "public",
    "\"-//W3C//DTD HTML 3.2//EN\"",
    "<meta charset=utf-8>",
    "<a-long-name data-a-long-name=1 aria-labelledby=2>",
    "</a-long-name x=y>",
];

pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add(0x1234_5678_9abc_def1);
        self.0 ^= self.0 >> 29;
        (self.0 >> 20) as usize % bound
    }

    /// Up to `most` of a few of the pieces: with few, the rare orders come up.
    fn page(&mut self, most: usize) -> String {
        let palette: Vec<&str> = (0..2 + self.below(14))
            .map(|_| PIECES[self.below(PIECES.len())])
            .collect();
        (0..self.below(most))
            .map(|_| palette[self.below(palette.len())])
            .collect()
    }
}

#[test]
fn random_markup_is_read_as_html5ever_reads_it() {
    let cases = std::env::var("WEBFILL_TOKENIZER_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(20_000);
    let mut random = Random(3);
    for _ in 0..cases {
        compare(&random.page(40));
    }
}

/// Within raw text few things matter, and their order much.
#[test]
fn random_raw_text_is_read_as_html5ever_reads_it() {
    let pieces = [
        "<!--",
        "-->",
        "-",
        "--",
        "<script",
        "</script",
        "<scripted",
        "<SCRIPT>",
        "</SCRIPT>",
        ">",
        " ",
        "/",
        "<",
        "</",
        "!",
        "x",
        "\0",
        "\r\n",
        "&lt;",
        "</title>",
        "</titles>",
        "</style >",
    ];
    let mut random = Random(4);
    for round in 0..10_000 {
        let start = ["<script>", "<title>", "<style>", "<svg><script>"][round % 4];
        let inside: String = (0..random.below(16))
            .map(|_| pieces[random.below(pieces.len())])
            .collect();
        compare(&format!("{start}{inside}"));
    }
}
