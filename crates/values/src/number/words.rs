//! Words and signs beside a number that change its value: millions, currencies, fractions.

/// Words for powers of ten, without the full stop of an abbreviation, in lower case.
const POWERS: &[(i64, &[&str])] = &[
    (2, &["hundred"]),
    (
        3,
        &[
            "thousand",
            "thousands",
            "tausend",
            "tsd",
            "mille",
            "duizend",
            "tys",
            "tysiąc",
            "tysiące",
            "tysięcy",
            "тыс",
            "тысяч",
            "千",
            "천",
            "tusen",
            "tusind",
            "tuhat",
            "tuhatta",
            "tis",
            "tisíc",
            "ezer",
            "mii",
            "mie",
            "ribu",
            "rb",
            "nghìn",
            "ngàn",
            "พัน",
            "हज़ार",
            "हजार",
            "হাজার",
            "ألف",
            "الف",
            "آلاف",
            "هزار",
            "אלף",
            "אלפים",
            "χιλ",
            "χιλιάδες",
            "хил",
            "хиляди",
            "тис",
            "тисяч",
            "тысяча",
            "тысячи",
            "hiljada",
            "tisuća",
            "tūkst",
        ],
    ),
    (4, &["万", "萬", "만", "หมื่น"]),
    (5, &["lakh", "lakhs", "lac", "แสน", "लाख", "লাখ"]),
    (
        6,
        &[
            "million",
            "millions",
            "millionen",
            "mio",
            "mn",
            "mln",
            "millón",
            "millones",
            "milhão",
            "milhões",
            "milione",
            "milioni",
            "miljoen",
            "milion",
            "miliony",
            "milionów",
            "млн",
            "миллион",
            "миллионов",
            "百万",
            "miljon",
            "miljoner",
            "millioner",
            "milj",
            "miljoona",
            "miljoonaa",
            "milionů",
            "millió",
            "milioane",
            "milyon",
            "juta",
            "jt",
            "triệu",
            "ล้าน",
            "مليون",
            "ملايين",
            "میلیون",
            "מיליון",
            "מליון",
            "εκατ",
            "εκατομμύρια",
            "εκατομμύριο",
            "милион",
            "милиона",
            "мільйон",
            "мільйони",
            "мільйонів",
            "миллиона",
            "миллионы",
            "miliona",
            "milijun",
            "milijuna",
            "milijonov",
        ],
    ),
    (7, &["crore", "crores", "千万", "करोड़", "কোটি"]),
    (8, &["億", "亿", "억"]),
    (
        9,
        &[
            "milliard",
            "milliards",
            "milliarde",
            "milliarden",
            "mrd",
            "mld",
            "miljard",
            "miliard",
            "miliardo",
            "miliardi",
            "miliardy",
            "miliardów",
            "bilhão",
            "bilhões",
            "bn",
            "млрд",
            "miljarder",
            "milliarder",
            "miljardi",
            "miljardia",
            "milliárd",
            "miliarde",
            "miliardů",
            "milyar",
            "miliar",
            "tỷ",
            "tỉ",
            "พันล้าน",
            "مليار",
            "مليارات",
            "میلیارد",
            "מיליארד",
            "מיליארדים",
            "δισ",
            "δισεκατομμύρια",
            "милиард",
            "милиарда",
            "мільярд",
            "мільярди",
            "мільярдів",
            "миллиард",
            "миллиарда",
            "миллиардов",
        ],
    ),
    (
        12,
        &[
            "billionen",
            "biljoen",
            "billón",
            "billones",
            "bilion",
            "biliony",
            "трлн",
            "триллион",
            "триллиона",
            "триллионов",
            "triliun",
            "ล้านล้าน",
        ],
    ),
];

/// Words after a number that leave its value open: readers understand `M` in different ways, and `dozen` is no power of
/// ten.
const DOUBTFUL: &[&str] = &[
    "k",
    "M",
    "MM",
    "B",
    "G",
    "T",
    "K",
    "mil",
    "Mil",
    "Billion",
    "Trillion",
    "tn",
    "trn",
    "cr",
    "Cr",
    "dozen",
    "dozens",
    "兆",
    "조",
    "billiard",
    "Billiarde",
    "score",
    "bin",
    "mill",
    "Mill",
    "mia",
    "Mia",
];

/// The meaning of the word after a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    Power(i64),
    Doubtful,
    Other,
}

/// The meaning of the word that follows a number, perhaps after a space.
pub(super) fn word_after(text: &[char]) -> Word {
    let text = match text {
        [space, rest @ ..] if super::marks::is_space(*space) => rest,
        _ => text,
    };
    let is_of_word = |c: &&char| c.is_alphabetic() || is_mark_of_letter(**c);
    let length = text.iter().take_while(is_of_word).count();
    let word: String = text[..length].iter().collect();
    let after = &text[length..];
    if after.first() == Some(&'€') {
        match word.as_str() {
            "k" | "K" => return Word::Power(3),
            "M" => return Word::Power(6),
            _ => {}
        }
    }
    if word.starts_with(|c: char| "千万萬億亿억만천百兆조".contains(c)) {
        unspaced_power(&word, after).unwrap_or(Word::Doubtful)
    } else if word.starts_with(|c: char| ('\u{e01}'..='\u{e4e}').contains(&c)) {
        unspaced_power(&word, after).unwrap_or(Word::Other)
    } else {
        meaning_of_power_word(&word)
    }
}

/// Whether a character is a vowel sign or another mark of a letter in the scripts of India, in Thai or in Arabic.
/// Unicode does not count these marks as letters.
fn is_mark_of_letter(character: char) -> bool {
    matches!(
        character,
        '\u{64b}'..='\u{65f}' | '\u{93c}' | '\u{94d}' | '\u{9bc}' | '\u{9cd}' | '\u{e47}'..='\u{e4e}'
    )
}

/// The power of ten at the start of a word that continues with a unit: `3万円`, `5 ล้านบาท`. If a second power of ten or
/// more digits follow the first, the word is doubtful.
fn unspaced_power(word: &str, after: &[char]) -> Option<Word> {
    let powers = || {
        let words = POWERS
            .iter()
            .flat_map(|(power, words)| words.iter().map(move |word| (power, word)));
        words.filter(|(_, known)| !known.is_ascii())
    };
    let longest = powers()
        .filter(|(_, known)| word.starts_with(**known))
        .max_by_key(|(_, known)| known.len());
    let (power, known) = longest?;
    let rest = &word[known.len()..];
    let goes_on = rest.starts_with(|c: char| "千万萬億亿억만천百兆조".contains(c))
        || powers().any(|(_, known)| rest.starts_with(*known))
        || (rest.is_empty() && after.first().is_some_and(char::is_ascii_digit));
    Some(match goes_on {
        true => Word::Doubtful,
        false => Word::Power(*power),
    })
}

fn meaning_of_power_word(word: &str) -> Word {
    // Only the lower-case `billion` and these plurals are certainly English. A capital may show the German `Billion`,
    // which is a thousand times as much.
    match word {
        "billion" | "billions" | "Billions" => return Word::Power(9),
        "trillion" | "trillions" | "Trillions" => return Word::Power(12),
        _ if DOUBTFUL.contains(&word) => return Word::Doubtful,
        _ => {}
    }
    let lower = word.to_lowercase();
    let power = POWERS
        .iter()
        .find(|(_, words)| words.contains(&lower.as_str()));
    power.map_or(Word::Other, |(power, _)| Word::Power(*power))
}

/// Whether a character is a currency sign: Unicode's category `Sc`.
pub(super) fn is_currency_sign(character: char) -> bool {
    matches!(
        character,
        '$' | '\u{a2}'..='\u{a5}' | '\u{58f}' | '\u{60b}' | '\u{e3f}' | '\u{17db}' | '\u{20a0}'..='\u{20c0}'
            | '\u{fdfc}' | '\u{fe69}' | '\u{ff04}' | '\u{ffe0}' | '\u{ffe1}' | '\u{ffe5}' | '\u{ffe6}'
    )
}

/// Whether a word is a currency that may be written next to an amount without a space: ISO 4217 codes, and common
/// abbreviations.
pub(super) fn is_currency_word(word: &str) -> bool {
    let is_code = word.len() == 3 && word.bytes().all(|b| b.is_ascii_uppercase());
    is_code
        || matches!(
            word,
            "Rs" | "R"
                | "kr"
                | "Kr"
                | "zł"
                | "Kč"
                | "Ft"
                | "lei"
                | "TL"
                | "Fr"
                | "SFr"
                | "DM"
                | "Euro"
                | "euro"
                | "Rp"
                | "RM"
                | "лв"
                | "руб"
                | "р"
        )
}

/// The numerator and denominator of a fraction that is one character, such as `½`.
pub(super) fn vulgar_fraction(character: char) -> Option<(u32, u32)> {
    Some(match character {
        '½' => (1, 2),
        '¼' => (1, 4),
        '¾' => (3, 4),
        '⅐' => (1, 7),
        '⅑' => (1, 9),
        '⅒' => (1, 10),
        '⅓' => (1, 3),
        '⅔' => (2, 3),
        '⅕' => (1, 5),
        '⅖' => (2, 5),
        '⅗' => (3, 5),
        '⅘' => (4, 5),
        '⅙' => (1, 6),
        '⅚' => (5, 6),
        '⅛' => (1, 8),
        '⅜' => (3, 8),
        '⅝' => (5, 8),
        '⅞' => (7, 8),
        _ => return None,
    })
}

/// The digits after the decimal point of a fraction, such as `5` for 1/2. `None` if there are more than twelve, or if
/// the fraction is one or more.
pub(super) fn decimal_fraction(numerator: u32, denominator: u32) -> Option<String> {
    let denominator = u64::from(denominator);
    if denominator == 0 || u64::from(numerator) >= denominator {
        return None;
    }
    let mut left = u64::from(numerator);
    let mut digits = String::new();
    while left > 0 {
        if digits.len() >= 12 {
            return None;
        }
        left *= 10;
        digits.push(char::from(b'0' + (left / denominator) as u8));
        left %= denominator;
    }
    Some(digits)
}

/// The value of a decimal digit in any script. In Unicode's category `Nd`, the ten digits of a script are consecutive.
pub(super) fn digit_value(character: char) -> Option<u32> {
    if character.is_ascii_digit() {
        return character.to_digit(10);
    }
    let code = character as u32;
    let zero = ZEROS.iter().rev().find(|zero| **zero <= code)?;
    (code - zero < 10).then_some(code - zero)
}

const ZEROS: &[u32] = &[
    0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6,
    0xe50, 0xed0, 0xf20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50,
    0x1bb0, 0x1c40, 0x1c50, 0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10,
    0x104a0, 0x11066, 0x110f0, 0x11136, 0x111d0, 0x112f0, 0x11450, 0x114d0, 0x11650, 0x116c0,
    0x11730, 0x118e0, 0x11c50, 0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6, 0x1e950,
];

/// The value of a superscript digit.
pub(super) fn superscript_digit(character: char) -> Option<u32> {
    match character {
        '¹' => Some(1),
        '²' => Some(2),
        '³' => Some(3),
        '\u{2070}' | '\u{2074}'..='\u{2079}' => Some(character as u32 - 0x2070),
        _ => None,
    }
}
