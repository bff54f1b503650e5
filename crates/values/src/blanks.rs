//! Characters that show nothing: Unicode's white space, control characters, and invisible marks.

/// Whether a text shows nothing, and so is not a value.
pub fn is_blank(text: &str) -> bool {
    text.chars().all(|c| is_white_space(c) || is_invisible(c))
}

/// Whether a character is blank: Unicode's property `White_Space`, control characters, the empty Braille pattern, and
/// the Hangul fillers, which pages use as blanks.
pub fn is_white_space(character: char) -> bool {
    character.is_whitespace()
        || character.is_control()
        || matches!(character, '\u{2800}' | '\u{3164}' | '\u{ffa0}')
}

/// Whether a character shows nothing by itself: it has Unicode's property `Default_Ignorable_Code_Point`, or marks an
/// interlinear note. Characters where [`is_white_space`] is true are excluded.
pub fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Whether a character only modifies the one before it: a variation selector, or a tag letter of a region's flag.
pub(crate) fn is_selector(character: char) -> bool {
    is_tag(character)
        || matches!(character, '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

/// Whether a character is a tag letter. Tag letters follow a flag emoji and name its region, such as Scotland.
pub(crate) fn is_tag(character: char) -> bool {
    matches!(character, '\u{e0020}'..='\u{e007f}')
}

fn is_joiner(character: char) -> bool {
    matches!(character, '\u{200c}' | '\u{200d}')
}

/// Whether a character means nothing even inside a word: a mark that allows or forbids a line break, or the byte order
/// mark.
fn is_line_break_mark(character: char) -> bool {
    matches!(character, '\u{ad}' | '\u{200b}' | '\u{2060}' | '\u{feff}')
}

/// The text without white space and invisible marks at its ends. A mark that belongs to a visible character stays: an
/// emoji selector, or a joiner that ends a word in some scripts.
pub fn trim(text: &str) -> &str {
    let text = text.trim_start_matches(|c| is_white_space(c) || is_invisible(c));
    let is_end = |c: char| is_white_space(c) || (is_invisible(c) && !is_selector(c));
    let rest = text.trim_end_matches(is_end);
    let cut = &text[rest.len()..];
    let joins = rest.ends_with(is_letter_changed_by_joiner);
    match cut.chars().next().filter(|c| joins && is_joiner(*c)) {
        Some(joiner) => &text[..rest.len() + joiner.len_utf8()],
        None => rest,
    }
}

/// Whether a joiner after this character changes how the end of a word looks, as in Arabic and the scripts of India.
fn is_letter_changed_by_joiner(character: char) -> bool {
    // All scripts from Hebrew on count. The blocks before Hebrew are Latin, Greek, Cyrillic and Armenian.
    character >= '\u{590}' && !is_white_space(character)
}

/// The text with each run of white space as one space, none at its ends, and without marks for possible line breaks.
pub fn collapse_white_space(text: &str) -> String {
    let mut collapsed = String::with_capacity(text.len());
    let mut has_space = false;
    for character in trim(text).chars().filter(|c| !is_line_break_mark(*c)) {
        if is_white_space(character) {
            has_space = true;
            continue;
        }
        // A mark of text direction has no effect next to white space, so it is dropped.
        if has_space && is_invisible(character) && !is_selector(character) {
            continue;
        }
        if std::mem::take(&mut has_space) {
            let seen = collapsed.trim_end_matches(is_direction).len();
            collapsed.truncate(seen);
            collapsed.push(' ');
        }
        collapsed.push(character);
    }
    collapsed
}

fn is_direction(character: char) -> bool {
    is_invisible(character) && !is_selector(character) && !is_joiner(character)
}
