//! Runs the common test cases of HTML parsers (html5lib-tests, folder `tokenizer`), which are in the source package of
//! html5lib for Python. The variable `HTML5LIB_TESTS` names their folder.

use std::path::Path;

use html5ever::tokenizer::{Doctype, Tag, TagKind, Token};
use serde_json::{Value, json};

use super::super::input::Input;
use super::super::{Content, Tokenizer};
use super::{Listener, tokens};

#[test]
#[ignore = "needs the cases of html5lib"]
fn the_cases_of_html5lib_yield_the_expected_tokens() {
    let folder = std::env::var("HTML5LIB_TESTS").expect("HTML5LIB_TESTS names their folder");
    let mut passed = 0;
    for file in Path::new(&folder).read_dir().unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "test") {
            continue;
        }
        let cases: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        // The file xmlViolation.test has no `tests`: its cases are about XML.
        for case in cases["tests"].as_array().into_iter().flatten() {
            passed += check_case(case);
        }
    }
    assert!(passed > 6_000, "only {passed} cases");
}

/// Checks a case in each of its initial states, and returns their number.
fn check_case(case: &Value) -> usize {
    let case = match case["doubleEscaped"].as_bool() {
        Some(true) => unescape_case(case),
        _ => Some(case.clone()),
    };
    // The case contains an unpaired surrogate, which cannot be in a text.
    let Some(case) = case else { return 0 };
    // Add a byte order mark, which is dropped, because a mark at the beginning of the case itself must stay.
    let page = format!("\u{feff}{}", case["input"].as_str().unwrap());
    let element = case["lastStartTag"].as_str().unwrap_or("none");
    let data = json!(["Data state"]);
    let states = case.get("initialStates").unwrap_or(&data);
    let states = states.as_array().unwrap();
    for state in states {
        let state = state.as_str().unwrap();
        assert_eq!(
            Value::Array(read(&page, state, element)),
            case["output"],
            "{state}: {case}"
        );
    }
    states.len()
}

/// Resolves the escapes `\uXXXX` of a case once more.
fn unescape_case(case: &Value) -> Option<Value> {
    let mut case = case.clone();
    for key in ["input", "output"] {
        let text = case[key].to_string().replace("\\\\u", "\\u");
        case[key] = serde_json::from_str(&text).ok()?;
    }
    Some(case)
}

fn read(page: &str, state: &str, element: &str) -> Vec<Value> {
    let tokens = match state {
        "Data state" => tokens(page, Content::Data, element),
        "RCDATA state" => tokens(page, Content::Rcdata, element),
        "RAWTEXT state" => tokens(page, Content::Rawtext, element),
        "Script data state" => tokens(page, Content::Script, element),
        "PLAINTEXT state" => tokens(page, Content::Plaintext, element),
        "CDATA section state" => tokens_within_cdata(page),
        _ => panic!("{state} is unknown"),
    };
    let mut written: Vec<Value> = Vec::new();
    for token in &tokens {
        let token = token_as_json(token);
        match written.last_mut() {
            Some(last) if last[0] == "Character" && token[0] == "Character" => {
                let text = [last[1].as_str().unwrap(), token[1].as_str().unwrap()].concat();
                *last = json!(["Character", text]);
            }
            _ if token.is_null() => {}
            _ => written.push(token),
        }
    }
    written
}

fn tokens_within_cdata(page: &str) -> Vec<Token> {
    let page = format!("<![CDATA[{}", page.trim_start_matches('\u{feff}'));
    let listener = Listener {
        is_foreign: true,
        ..Listener::default()
    };
    let input = Input::new(&page);
    Tokenizer::new(&input, &listener, usize::MAX).run();
    listener.tokens.into_inner().0
}

fn token_as_json(token: &Token) -> Value {
    match token {
        Token::DoctypeToken(doctype) => {
            let Doctype {
                name,
                public_id,
                system_id,
                force_quirks,
            } = doctype;
            json!([
                "DOCTYPE",
                name.as_deref(),
                public_id.as_deref(),
                system_id.as_deref(),
                !force_quirks
            ])
        }
        Token::TagToken(tag) if tag.kind == TagKind::EndTag => json!(["EndTag", &*tag.name]),
        Token::TagToken(tag) if tag.self_closing => {
            json!(["StartTag", &*tag.name, attributes(tag), true])
        }
        Token::TagToken(tag) => json!(["StartTag", &*tag.name, attributes(tag)]),
        Token::CommentToken(text) => json!(["Comment", &**text]),
        Token::CharacterTokens(text) => json!(["Character", &**text]),
        Token::NullCharacterToken => json!(["Character", "\0"]),
        Token::EOFToken => Value::Null,
        Token::ParseError(message) => panic!("{message}"),
    }
}

fn attributes(tag: &Tag) -> Value {
    tag.attrs
        .iter()
        .map(|attribute| (attribute.name.local.to_string(), json!(&*attribute.value)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}
