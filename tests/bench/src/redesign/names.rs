//! Renames or drops classes, ids and other attributes. On all pages, a name is replaced by the same new name.

use super::choices::Choices;
use super::tree::Tree;

const BLOCKS: [&str; 12] = [
    "card", "panel", "entry", "product", "detail", "page", "media", "tile", "hero", "info", "main",
    "unit",
];
const PARTS: [&str; 16] = [
    "title", "body", "label", "value", "heading", "meta", "row", "cell", "list", "content", "item",
    "text", "wrapper", "section", "link", "header",
];
const UTILITIES: [&str; 12] = [
    "flex",
    "mt-4",
    "text-sm",
    "px-2",
    "font-bold",
    "grid",
    "block",
    "w-full",
    "text-gray-700",
    "mb-2",
    "rounded",
    "leading-6",
];

/// How a redesign names classes.
#[derive(Debug, Clone, Copy)]
enum Style {
    /// Other words, such as `card__title-42` for `prod-name`.
    Words,
    /// Names as CSS modules make them: `Detail_name__3fR2x`.
    Modules,
    /// Names as styled-components makes them: `sc-1x2y3z4-0 kWqPzA`.
    Components,
    /// Utility classes, such as `flex mt-4`.
    Utilities,
    /// The same words in another spelling, such as `prod-name` for `prodName`.
    Spelling,
}

const STYLES: [Style; 6] = [
    Style::Words,
    Style::Words,
    Style::Modules,
    Style::Components,
    Style::Utilities,
    Style::Spelling,
];

pub(super) fn rename_classes(tree: &mut Tree, choices: &Choices) {
    let style = *choices.pick("style of classes", &STYLES);
    // Often only a share of the classes is renamed, because sites are not always rebuilt completely.
    let share = *choices.pick("share of classes", &[0.3, 0.7, 1.0]);
    for node in tree.elements() {
        let Some(element) = tree.element_mut(node) else {
            continue;
        };
        let Some(old) = element.get("class") else {
            continue;
        };
        let tokens = old.split_whitespace().map(|token| {
            match choices.decide(&format!("class {token}"), share) {
                true => new_class(token, style, choices),
                false => token.to_owned(),
            }
        });
        let new = tokens.collect::<Vec<_>>().join(" ");
        element.set("class", new);
    }
}

fn new_class(token: &str, style: Style, choices: &Choices) -> String {
    let what = format!("new class {token}");
    let block = choices.pick(&format!("block {what}"), &BLOCKS);
    let part = choices.pick(&format!("part {what}"), &PARTS);
    // The number keeps the new names distinct, because there are fewer words than classes.
    let number = choices.number(&what) % 97;
    match style {
        Style::Words => format!("{block}__{part}-{number}"),
        Style::Modules => format!(
            "{}_{token}__{}",
            capitalise(block),
            draw_letters(choices.number(&what), 5)
        ),
        Style::Components => format!(
            "sc-{}-0 {}",
            draw_letters(choices.number(&what), 7).to_lowercase(),
            draw_letters(choices.number(&format!("second {what}")), 6)
        ),
        Style::Utilities => {
            let second = choices.pick(&format!("second {what}"), &UTILITIES);
            format!("{} {second}", choices.pick(&what, &UTILITIES))
        }
        Style::Spelling => switch_case_style(token),
    }
}

/// Converts `prod-name` and `prod_name` to `prodName`, and `prodName` to `prod-name`.
fn switch_case_style(token: &str) -> String {
    if token.contains(['-', '_']) {
        let mut parts = token.split(['-', '_']);
        let first = parts.next().unwrap_or_default().to_owned();
        return parts.fold(first, |all, part| all + &capitalise(part));
    }
    let mut new = String::new();
    for (at, character) in token.chars().enumerate() {
        if character.is_uppercase() && at > 0 {
            new.push('-');
        }
        new.extend(character.to_lowercase());
    }
    match new == token {
        true => format!("c-{token}"),
        false => new,
    }
}

fn capitalise(word: &str) -> String {
    let mut characters = word.chars();
    let first = characters
        .next()
        .map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + characters.as_str()
}

/// Letters and digits that look like a hash. The same number always gives the same ones.
fn draw_letters(number: u64, count: usize) -> String {
    const OF: &[u8; 62] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    let mut rng = fastrand::Rng::with_seed(number);
    // The first character must not be a digit, because names must not begin with one.
    let digit = |rng: &mut fastrand::Rng, at: usize| OF[rng.usize(..if at == 0 { 52 } else { 62 })];
    (0..count)
        .map(|at| char::from(digit(&mut rng, at)))
        .collect()
}

/// An id without its digits, which may be a counter on the page.
fn without_digits(id: &str) -> String {
    id.chars()
        .filter(|character| !character.is_ascii_digit())
        .collect()
}

fn new_id(old: &str, choices: &Choices) -> Option<String> {
    let what = format!("id {}", without_digits(old));
    let digits: String = old.chars().filter(char::is_ascii_digit).collect();
    match choices.number(&what) % 10 {
        0..4 => None,
        4..7 => Some(format!(
            "{}-{}{digits}",
            choices.pick(&what, &BLOCKS),
            draw_letters(choices.number(&format!("new {what}")), 4)
        )),
        7 => Some(switch_case_style(old)),
        _ => Some(old.to_owned()),
    }
}

/// Drops or renames ids, including references to them.
pub(super) fn rename_ids(tree: &mut Tree, choices: &Choices) {
    for node in tree.elements() {
        let Some(element) = tree.element_mut(node) else {
            continue;
        };
        if let Some(old) = element.get("id") {
            match new_id(old, choices) {
                Some(new) => element.set("id", new),
                None => element.remove("id"),
            }
        }
        if let Some(new) = element.get("for").and_then(|old| new_id(old, choices)) {
            element.set("for", new);
        }
        let fragment = element.get("href").and_then(|href| href.strip_prefix('#'));
        if let Some(new) = fragment.and_then(|old| new_id(old, choices)) {
            element.set("href", format!("#{new}"));
        }
    }
}

/// Drops attributes for presentation. Drops or renames attributes for scripts.
pub(super) fn rename_attributes(tree: &mut Tree, choices: &Choices) {
    const OF_PRESENTATION: [&str; 9] = [
        "style",
        "align",
        "valign",
        "width",
        "height",
        "bgcolor",
        "border",
        "cellpadding",
        "cellspacing",
    ];
    for node in tree.elements() {
        let Some(element) = tree.element_mut(node) else {
            continue;
        };
        element.attributes.retain_mut(|(name, _)| {
            let number = choices.number(&format!("attribute {name}")) % 10;
            if OF_PRESENTATION.contains(&name.as_str()) {
                return number >= 7;
            }
            if let Some(rest) = name.strip_prefix("data-") {
                if number < 3 {
                    return false;
                }
                if number < 5 {
                    *name = format!("data-x-{rest}");
                }
            }
            if name == "title" || name == "rel" {
                return number >= 3;
            }
            true
        });
    }
}
