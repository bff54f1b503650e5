use webfill_document::{Document, Limits};

use super::*;

fn copy_html(page: &str) -> Copy {
    copy(
        &Document::parse_html(page, &Limits::default()),
        Bounds::default(),
    )
}

/// The tags of some markup without their attributes, and the names of all attributes.
fn tags_and_attributes(html: &str) -> (Vec<String>, Vec<String>) {
    let (mut tags, mut attributes) = (Vec::new(), Vec::new());
    for piece in html.split('<').skip(1) {
        let (tag, _) = piece.split_once('>').expect("each < begins a tag");
        let mut parts = tag.split(' ');
        tags.push(parts.next().unwrap().trim_start_matches('/').to_owned());
        attributes.extend(parts.map(|part| part.split('=').next().unwrap().to_owned()));
    }
    (tags, attributes)
}

/// Copies a page, and checks that the copy is harmless, however hostile the page: a browser finds only known elements
/// and attributes in it, and no addresses.
fn assert_harmless(page: &str) -> Copy {
    let copy = copy_html(page);
    let (tags, attributes) = tags_and_attributes(&copy.html);
    let allowed = |tag: &str| match display_of(tag) {
        Display::As(same) | Display::Void(same) => same == tag,
        _ => false,
    };
    for tag in &tags {
        assert!(allowed(tag), "{page} gave <{tag}>");
    }
    let known = [
        "id", "class", "colspan", "rowspan", "span", "start", "value", "dir", "lang",
    ];
    for attribute in &attributes {
        assert!(
            known.contains(&attribute.as_str()),
            "{page} gave {attribute}"
        );
    }
    // If the markup is parsed again, it must not contain elements that the copy has not written.
    let again = Document::parse_html(&format!("<body>{}", copy.html), &Limits::default());
    for node in again.root().descendants() {
        let Some(tag) = node.tag() else {
            continue;
        };
        let is_implied = matches!(tag, "html" | "head" | "body" | "tbody" | "colgroup");
        assert!(is_implied || allowed(tag), "{page} is read as <{tag}>");
        for attribute in node.attributes() {
            assert!(known.contains(&attribute.name()), "{page}: {attribute:?}");
        }
    }
    copy
}

#[test]
fn elements_have_their_numbers_and_texts_are_kept() {
    let page = "<title>T &amp; U</title><h1>Ada <b>Lovelace</b></h1><p lang=de>x &lt; y</p>";
    let document = Document::parse_html(page, &Limits::default());
    let copy = copy(&document, Bounds::default());
    let heading = document.elements_by_tag("h1").next().unwrap().position();
    let expected = format!(
        "<h1 id=\"n{heading}\">Ada <b id=\"n{}\">Lovelace</b></h1>",
        heading + 2
    );
    assert!(copy.html.contains(&expected), "{}", copy.html);
    assert!(copy.html.contains("title: T &amp; U"), "{}", copy.html);
    assert!(
        copy.html.contains("lang=\"de\">x &lt; y</p>"),
        "{}",
        copy.html
    );
    assert!(!copy.is_cut);
}

#[test]
fn nothing_of_a_hostile_page_runs_or_loads() {
    for page in HOSTILE {
        assert_harmless(page);
    }
}

/// Pages that a browser must not show unchanged: they run scripts, load or send data, or go to another page.
const HOSTILE: &[&str] = &[
    "<script>alert(1)</script><script src=//evil.example/x.js></script>",
    "<img src=x onerror=alert(1)><body onload=alert(1)><p onclick='alert(1)' ONFOCUS=alert(1) tabindex=0 autofocus>",
    "<a href='javascript:alert(1)'>x</a><a href=' \tjava\nscript:alert(1)'>y</a><area href=javascript:alert(1)>",
    "<iframe src=//evil.example></iframe><iframe srcdoc='<script>alert(1)</script>'></iframe><frameset><frame src=//evil.example>",
    "<object data='data:text/html,<script>alert(1)</script>'><p>in</object><embed src=//evil.example><applet code=x>",
    "<svg><script>alert(1)</script><foreignObject><body onload=alert(1)><img src=//evil.example></foreignObject><use href=//evil.example/#x></svg>",
    "<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=1 onerror=alert(1)&gt;\">",
    "<style>@import url(//evil.example); body{background:url(//evil.example/b)}</style>",
    "<p style=\"background:url(//evil.example/p);width:expression(alert(1));behavior:url(x);-moz-binding:url(x)\">x",
    "<link rel=stylesheet href=//evil.example/c><link rel=preconnect href=//evil.example><link rel=dns-prefetch href=//evil.example>",
    "<meta http-equiv=refresh content='0;url=//evil.example'><base href=//evil.example/ target=_top>",
    "<form action=//evil.example><input type=image src=//evil.example/i><button formaction=//evil.example>go</button></form><isindex action=//evil.example>",
    "<template><img src=//evil.example onerror=alert(1)></template><template shadowrootmode=open><script>alert(1)</script></template>",
    "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\"></noscript>",
    "<textarea></textarea><textarea><img src=x onerror=alert(1)></textarea><title></title><img src=x onerror=alert(1)></title>",
    "<xmp><img src=x onerror=alert(1)></xmp><listing>&lt;img src=x onerror=alert(1)></listing><noembed><p title='</noembed><img src=x onerror=1>'></noembed>",
    "<plaintext><img src=x onerror=alert(1)>",
    "<video src=//evil.example poster=//evil.example/p><source src=//evil.example><track src=//evil.example></video><audio autoplay src=//evil.example>",
    "<picture><source srcset=//evil.example/1x><img srcset='//evil.example/2x 2x' src=data:image/svg+xml,<svg/onload=alert(1)>></picture>",
    "<p id=n1 class='link hidden' name=location>clobber</p><form id=document><input name=body></form>",
    "<a ping=//evil.example href=//evil.example>x</a><body background=//evil.example><table background=//evil.example><td background=//evil.example>",
    "<p lang='\"><img src=x onerror=alert(1)>' dir='\"onclick=alert(1)'><td colspan='1\"onclick=alert(1)'><ol start=-1><li value='9 onclick=1'>",
    "<!--><img src=x onerror=alert(1)>--><![CDATA[<img src=x onerror=alert(1)>]]><?xml-stylesheet href=//evil.example?>",
    // The following markup changes its meaning when a browser parses it again (mutation XSS).
    "<form><math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
    "<svg></p><style><a id=\"</style><img src=1 onerror=alert(1)>\">",
    "<math><annotation-xml encoding='text/html'><svg><title><style><img src=x onerror=alert(1)></style></title>",
    "<select><template><style><!--</style><a rel=\"--></style></template></select><img src onerror=alert(1)>\">",
    "<svg><desc><noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">",
    "a<svg><xss><desc><noscript>&lt;/noscript>&lt;/desc>&lt;s>&lt;/s>&lt;style>&lt;a title=\"&lt;/style>&lt;img src onerror=alert(1)>\">",
    "<p>&lt;script&gt;alert(1)&lt;/script&gt;\u{0}<\u{0}script>alert(1)</script>`${alert(1)}`</p>",
    "<x-custom onclick=alert(1) is=x><slot name=x><dialog open onclose=alert(1)><portal src=//evil.example>",
    "<table><p><table><td><a><a><nobr><nobr><b><i></b></i><form><form><li><table><caption><script>alert(1)</script>",
];

#[test]
fn xml_with_scripts_is_as_harmless() {
    let page = "<?xml version='1.0'?><?xml-stylesheet href='//evil.example'?><x:html xmlns:x='http://www.w3.org/1999/xhtml'><x:script>alert(1)</x:script><script xmlns='http://www.w3.org/2000/svg'>alert(1)</script><a onclick='x' href='javascript:1'>y</a><p><p><p>z</p></p></p></x:html>";
    let document = Document::parse_xml(page, &Limits::default());
    let copy = copy(&document, Bounds::default());
    for word in ["alert", "onclick", "javascript", "evil", "script"] {
        assert!(!copy.html.contains(word), "{word} in {}", copy.html);
    }
    assert!(copy.html.contains(">y</a>"));
}

#[test]
fn deep_long_and_wide_pages_are_cut_and_marked_as_cut() {
    let deep = format!("{}x", "<div>".repeat(200_000));
    let copy = assert_harmless(&deep);
    assert!(copy.elements <= Bounds::default().elements);
    let long = format!("<p>{}", "x".repeat(10 << 20));
    let copy = assert_harmless(&long);
    assert!(copy.is_cut && copy.html.len() < (6 << 20) + 1_000);
    let wide = "<b>x</b>".repeat(150_000);
    let copy = assert_harmless(&wide);
    assert!(copy.is_cut);
    assert_eq!(copy.elements, Bounds::default().elements);
}

#[test]
fn no_copy_nests_deeper_than_browsers_keep() {
    let page = format!("{}x", "<div>".repeat(450));
    let copy = assert_harmless(&page);
    let most = copy.html.matches("<div").count();
    assert!(most <= Bounds::default().depth, "{most}");
    assert!(copy.html.contains('x') && copy.is_cut);
}

#[test]
fn a_text_without_elements_is_shown_as_it_is() {
    let bounds = Bounds {
        bytes: 10,
        ..Bounds::default()
    };
    let copy = copy_of_text("{\"a\": \"</pre><script>\"}", bounds);
    assert_eq!(copy.html, "<pre>\n{&quot;a&quot;: &quot;&lt;/p</pre>");
    assert!(copy.is_cut);
}

#[test]
fn content_hidden_by_browsers_is_marked() {
    let copy = assert_harmless(
        "<p style='color:red; DISPLAY : none'>a<p hidden>b<p style='display:block'>c",
    );
    assert_eq!(copy.html.matches("class=\"hidden\"").count(), 2);
}
