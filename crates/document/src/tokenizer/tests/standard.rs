//! Checks that pages yield the tokens that the HTML standard prescribes. The tokens were derived by hand from its text.

use html5ever::tokenizer::{Tag, TagKind, Token};

use super::super::Content;
use super::tokens;

/// The tokens in a notation that shows where each begins: `<name key=[value] />`.
fn format_tokens(page: &str, content: Content, element: &str) -> String {
    tokens(page, content, element)
        .iter()
        .map(format_token)
        .collect()
}

fn format_token(token: &Token) -> String {
    match token {
        Token::TagToken(tag) => format_tag(tag),
        Token::DoctypeToken(doctype) => {
            let part = |part: &Option<_>| part.as_deref().unwrap_or("none").to_owned();
            format!(
                "(doctype {} {} {}{})",
                part(&doctype.name),
                part(&doctype.public_id),
                part(&doctype.system_id),
                if doctype.force_quirks { " quirks" } else { "" },
            )
        }
        Token::CommentToken(text) => format!("(comment {text})"),
        Token::CharacterTokens(text) => format!("[{text}]"),
        Token::NullCharacterToken => "(nul)".to_owned(),
        Token::EOFToken => String::new(),
        Token::ParseError(message) => format!("(error {message})"),
    }
}

fn format_tag(tag: &Tag) -> String {
    let attributes: String = tag
        .attrs
        .iter()
        .map(|attribute| format!(" {}=[{}]", attribute.name.local, attribute.value))
        .collect();
    let slash = if tag.kind == TagKind::EndTag { "/" } else { "" };
    let end = if tag.self_closing { " /" } else { "" };
    format!("<{slash}{}{attributes}{end}>", tag.name)
}

fn assert_all_read(cases: &[(&str, &str)], content: Content, element: &str) {
    for (page, expected) in cases {
        assert_eq!(format_tokens(page, content, element), *expected, "{page:?}");
    }
}

#[test]
fn tags_and_their_attributes() {
    let cases = [
        ("<A B=C>d</A>", "<a b=[C]>[d]</a>"),
        ("<a b='1' B=2 c>", "<a b=[1] c=[]>"),
        ("<a/><a / b/c=/>", "<a /><a b=[] c=[/]>"),
        ("<a =b=c>", "<a =b=[c]>"),
        ("<a b= >", "<a b=[]>"),
        ("<a b='c'd=\"e\"f>", "<a b=[c] d=[e] f=[]>"),
        ("<a\nb\t=\x0c'c\r\nd'>", "<a b=[c\nd]>"),
        ("<a\0 \0=\0>", "<a\u{fffd} \u{fffd}=[\u{fffd}]>"),
        ("a < b <3 </> <", "[a < b <3  <]"),
        ("<a b", ""),
        ("x</", "[x</]"),
        ("</ a><?php ?>", "(comment  a)(comment ?php ?)"),
        ("a\0b", "[a](nul)[b]"),
        ("\u{feff}a\u{feff}", "[a\u{feff}]"),
    ];
    assert_all_read(&cases, Content::Data, "");
}

#[test]
fn references_to_characters() {
    let cases = [
        ("&amp;&lt&gt;&AMP", "[&<>&]"),
        ("&notit; &notin; &noti", "[¬it; ∉ ¬i]"),
        ("&NotEqualTilde;&fjlig;", "[\u{2242}\u{338}fj]"),
        ("&CounterClockwiseContourIntegral;", "[∳]"),
        (
            "&CounterClockwiseContourIntegral",
            "[&CounterClockwiseContourIntegral]",
        ),
        ("&; & &bogus; &am", "[&; & &bogus; &am]"),
        ("&#65;&#x41&#X41;&#", "[AAA&#]"),
        ("&#;&#x;&#xg", "[&#;&#x;&#xg]"),
        ("&#0;&#xD800;&#x110000;", "[\u{fffd}\u{fffd}\u{fffd}]"),
        ("&#99999999999999999999;", "[\u{fffd}]"),
        ("&#128;&#x81;&#13;", "[€\u{81}\r]"),
        (
            "<a b='&amp;&copy=&copyx&copy;&copy'>",
            "<a b=[&&copy=&copyx©©]>",
        ),
        ("<a b=&lt;&ltx&lt>", "<a b=[<&ltx<]>"),
    ];
    assert_all_read(&cases, Content::Data, "");
}

#[test]
fn comments_and_bogus_comments() {
    let cases = [
        ("<!--a-->b", "(comment a)[b]"),
        ("<!--><!--->", "(comment )(comment )"),
        ("<!----><!----->", "(comment )(comment -)"),
        ("<!--a--!>b", "(comment a)[b]"),
        ("<!--a--!-->b", "(comment a--!)[b]"),
        ("<!--a--b-c-->", "(comment a--b-c)"),
        ("<!--<!--a-->b", "(comment <!--a)[b]"),
        ("<!--a\0-->", "(comment a\u{fffd})"),
        ("<!--a", "(comment a)"),
        ("<!--a-", "(comment a)"),
        ("<!--a--", "(comment a)"),
        ("<!--a---", "(comment a-)"),
        ("<!--a--!", "(comment a)"),
        ("<!x>y<!", "(comment x)[y](comment )"),
        ("<![CDATA[x]]>", "(comment [CDATA[x]])"),
    ];
    assert_all_read(&cases, Content::Data, "");
}

#[test]
fn document_types() {
    let cases = [
        ("<!DOCTYPE HTML>", "(doctype html none none)"),
        ("<!doctype>", "(doctype none none none quirks)"),
        ("<!doctypea", "(doctype a none none quirks)"),
        ("<!doctype a PUBLIC 'b' \"c\">", "(doctype a b c)"),
        ("<!doctype a public'b'>", "(doctype a b none)"),
        ("<!doctype a SYSTEM 'c' d>", "(doctype a none c)"),
        ("<!doctype a PUBLIC>", "(doctype a none none quirks)"),
        (
            "<!doctype a PUBLIC 'b>c'>",
            "(doctype a b none quirks)[c'>]",
        ),
        ("<!doctype a PUBLIC 'b' c>", "(doctype a b none quirks)"),
        ("<!doctype a b 'c'>d", "(doctype a none none quirks)[d]"),
        ("<!doctype \0A\0>", "(doctype \u{fffd}a\u{fffd} none none)"),
    ];
    assert_all_read(&cases, Content::Data, "");
}

#[test]
fn raw_text_ends_with_its_own_end_tag_only() {
    let title = [
        (
            "a&amp;b<c></titles></title\0></title>d",
            "[a&b<c></titles></title\u{fffd}>]</title>[d]",
        ),
        ("</TITLE a>", "</title a=[]>"),
        ("</title", "[</title]"),
        ("</title/>x", "</title />[x]"),
    ];
    assert_all_read(&title, Content::Rcdata, "title");
    let style = [(
        "a&amp;b</title><!--</style>c",
        "[a&amp;b</title><!--]</style>[c]",
    )];
    assert_all_read(&style, Content::Rawtext, "style");
    let plain = [("a&amp;\0</plaintext>", "[a&amp;\u{fffd}</plaintext>]")];
    assert_all_read(&plain, Content::Plaintext, "plaintext");
}

#[test]
fn scripts_hide_end_tags_in_comments() {
    let cases = [
        ("a<b</script>c", "[a<b]</script>[c]"),
        ("<!--</script>x", "[<!--]</script>[x]"),
        (
            "<!--<script></script>x</script>",
            "[<!--<script></script>x]</script>",
        ),
        ("<!--<script>--></script>x", "[<!--<script>-->]</script>[x]"),
        ("<!--<script-></script>x", "[<!--<script->]</script>[x]"),
        (
            "<!--<script></scripts></script>x",
            "[<!--<script></scripts></script>x]",
        ),
        ("<!--><script></script>x", "[<!--><script>]</script>[x]"),
        ("<!-<script></script>x", "[<!-<script>]</script>[x]"),
        ("\0</SCRIPT >x", "[\u{fffd}]</script>[x]"),
    ];
    assert_all_read(&cases, Content::Script, "script");
}
