//! Compares this tokenizer with html5ever's on random markup, which is built from pieces that change a tokenizer's
//! state. The markup is the same in every run. To test more of it: `WEBFILL_TOKENIZER_CASES=1000000 cargo test -p
//! webfill-document random`.

use fastrand::Rng;

use super::super::compare::assert_tokenizers_agree;

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

/// A page of fewer than `limit` pieces. They are drawn from a small selection, so that rare sequences occur as well.
fn random_page(rng: &mut Rng, limit: usize) -> String {
    let palette: Vec<&str> = (0..2 + rng.usize(..14))
        .map(|_| PIECES[rng.usize(..PIECES.len())])
        .collect();
    (0..rng.usize(..limit))
        .map(|_| palette[rng.usize(..palette.len())])
        .collect()
}

#[test]
fn random_markup_is_read_as_html5ever_reads_it() {
    let cases = std::env::var("WEBFILL_TOKENIZER_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(20_000);
    let mut rng = Rng::with_seed(3);
    for _ in 0..cases {
        assert_tokenizers_agree(&random_page(&mut rng, 40));
    }
}

/// Tests raw text (scripts, titles, styles). It has only few special pieces, and their order matters.
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
    let mut rng = Rng::with_seed(4);
    for round in 0..10_000 {
        let start = ["<script>", "<title>", "<style>", "<svg><script>"][round % 4];
        let inside: String = (0..rng.usize(..16))
            .map(|_| pieces[rng.usize(..pieces.len())])
            .collect();
        assert_tokenizers_agree(&format!("{start}{inside}"));
    }
}
