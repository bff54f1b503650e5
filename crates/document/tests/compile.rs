//! Invalid expressions and selectors are refused when they are compiled, with position and reason.

use webfill_document::{Selector, XPath, check_xpath};

fn compile_error(expression: &str) -> String {
    match XPath::compile(expression) {
        Ok(_) => panic!("{expression:?} was taken"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn faults_name_their_place_and_reason() {
    let cases = [
        ("", "the expression is empty, at offset 0"),
        (" \n ", "the expression is empty"),
        ("//td[", "the expression ends too early, at offset 5"),
        ("//td[]", "unexpected `]`, at offset 5"),
        ("//td]", "unexpected `]`, at offset 4"),
        ("//", "the expression ends too early, at offset 2"),
        ("//a b", "expected an operator, found `b`, at offset 4"),
        ("'open", "the string has no closing quote, at offset 0"),
        (
            "//a[@href = \"x]",
            "the string has no closing quote, at offset 12",
        ),
        ("//svg:path", "unknown prefix `svg:`"),
        ("//svg:*", "unknown prefix `svg:`"),
        ("//a/@og2:x", "unknown prefix `og2:`"),
        ("//a[$x]", "unknown variable `$x`"),
        (
            "contians(., 'x')",
            "unknown function `contians()`, did you mean `contains`?",
        ),
        ("matches(., 'x')", "unknown function `matches()`"),
        (
            "descendent::a",
            "unknown axis `descendent::`, did you mean `descendant`?",
        ),
        ("contains('a')", "`contains()` takes 2 arguments, 1 given"),
        (
            "concat('a')",
            "`concat()` takes at least 2 arguments, 1 given",
        ),
        (
            "substring('a')",
            "`substring()` takes 2 to 3 arguments, 1 given",
        ),
        (
            "count('a')",
            "the argument must be a path or another set of nodes",
        ),
        (
            "'a' | //b",
            "each side of `|` must be a path or another set of nodes",
        ),
        ("'a'[1]", "the part before `[` or `/` must be a path"),
        ("1 = ", "the expression ends too early, at offset 4"),
        ("#x", "unexpected `#`, at offset 0"),
        ("a/@", "the expression ends too early"),
        ("a b c", "expected an operator, found `b`"),
    ];
    for (expression, expected) in cases {
        let message = compile_error(expression);
        assert!(message.contains(expected), "{expression:?}: {message}");
    }
}

#[test]
fn expressions_are_bounded_in_length_and_nesting() {
    assert!(compile_error(&"a|".repeat(2100)).contains("the limit is 4096"));
    let nested = |levels: usize| format!("{}1{}", "(".repeat(levels), ")".repeat(levels));
    assert!(check_xpath(&nested(63)).is_ok());
    assert!(compile_error(&nested(64)).contains("nests deeper than 64 levels"));
    assert!(compile_error(&"not(".repeat(800)).contains("nests deeper"));
    assert!(compile_error(&"a[".repeat(800)).contains("nests deeper"));
    assert!(compile_error(&"-".repeat(800)).contains("nests deeper"));
    assert!(compile_error(&["1"; 80].join("+")).contains("nests deeper"));
    assert!(check_xpath(&["a"; 256].join("|")).is_ok());
    assert!(compile_error(&["a"; 257].join("|")).contains("more than 256"));
    assert!(compile_error(&["a"; 300].join("/")).contains("more than 256"));
}

#[test]
fn the_deepest_expression_needs_little_stack() {
    let deepest = [
        format!("{}a{}", "not(".repeat(63), ")".repeat(63)),
        format!(
            "{}1{}",
            "string-length(concat('a', ".repeat(31),
            "))".repeat(31)
        ),
        format!("a{}{}", "[b".repeat(63), "]".repeat(63)),
        vec!["translate(., 'a', 'b')"; 60].join("="),
        vec!["position()"; 128].join(" or "),
        format!("{}1", "- ".repeat(62)),
    ];
    let page = "<a><b>x</b></a>";
    std::thread::Builder::new()
        .stack_size(2 << 20)
        .spawn(move || {
            let document = webfill_document::Document::parse_html(page, &Default::default());
            for expression in deepest {
                let xpath = XPath::compile(&expression).unwrap();
                assert!(document.evaluate(&xpath).is_ok(), "{expression}");
            }
        })
        .unwrap()
        .join()
        .unwrap();
}

#[test]
fn faulty_selectors_name_their_place_and_reason() {
    let cases = [
        ("", "expected a name, found the end, at offset 0"),
        ("div >", "expected a name, found the end, at offset 5"),
        ("a[href", "expected `]` or one of"),
        ("a[href='x", "the string has no closing quote, at offset 7"),
        ("a:hover", "unknown pseudo-class `:hover`"),
        ("li:frist-child", "did you mean `:first-child`?"),
        (
            "li:nth-child(x)",
            "expected a position such as `2n+1`, found `x`",
        ),
        ("a::before", "unknown pseudo-element `::before`"),
        (":not(a::text)", "a pseudo-element is not allowed here"),
        ("svg|path", "namespaces are not used here"),
        ("|p", "expected a name, found `|`"),
        ("[xlink|href]", "write `*|` or `xlink\\:`"),
        (
            "a/**/b",
            "expected a combinator or `,`, found `b`, at offset 5",
        ),
        (":lang()", "expected a name, found `)`"),
        (":nth-of-type(2 of p)", "expected `)`, found `o`"),
        (":not()", "expected a name"),
        (":has()", "expected a name"),
        (
            "li:nth-child(of p)",
            "expected a position such as `2n+1`, found ``",
        ),
        ("a,,b", "expected a name, found `,`, at offset 2"),
        (".1a", "expected a name"),
        ("a)", "expected a combinator or `,`, found `)`"),
        (":is(> a)", "a combinator cannot come first here"),
    ];
    for (selector, expected) in cases {
        let message = Selector::compile(selector)
            .err()
            .map(|error| error.to_string());
        let message = message.unwrap_or_else(|| panic!("{selector:?} was taken"));
        assert!(message.contains(expected), "{selector:?}: {message}");
    }
    assert!(Selector::compile(&":is(".repeat(1000)).is_err());
    assert!(Selector::compile(&"a,".repeat(3000)).is_err());
}
