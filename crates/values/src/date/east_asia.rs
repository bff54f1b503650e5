//! Chinese, Japanese and Korean dates in western order: `2024年3月1日(金) 午後3時5分` becomes `Friday 2024-3-1 03:05 PM`,
//! `二〇二四年三月一日` and `2024년 3월 1일` become `2024-3-1`.

use super::clock::InvalidTime;
use super::names;

/// Names of Japanese eras and of the Chinese republic. A date with one of them is an error, because its years are
/// counted from the start of the era.
const ERAS: [&str; 8] = ["明治", "大正", "昭和", "平成", "令和", "民國", "民国", "㋿"];

/// The words for morning and afternoon.
const HALVES: [(&str, &str); 6] = [
    ("오전", "AM"),
    ("오후", "PM"),
    ("午前", "AM"),
    ("上午", "AM"),
    ("午後", "PM"),
    ("下午", "PM"),
];

const UNITS: &str = "年月日号號時时点點分秒";

/// The Korean units, and Japanese units of the same meaning.
const KOREAN_UNITS: [(&str, &str); 6] = [
    ("년", "年"),
    ("월", "月"),
    ("일", "日"),
    ("시", "時"),
    ("분", "分"),
    ("초", "秒"),
];

/// Rewrites a Chinese, Japanese or Korean date in western order and with western marks. Other texts stay unchanged.
pub(super) fn to_western_date(text: &str) -> Result<String, InvalidTime> {
    let text = &convert_korean(text);
    if !text.contains(['年', '月']) {
        return Ok(text.to_owned());
    }
    if ERAS.iter().any(|era| text.contains(era)) {
        return Err(InvalidTime);
    }
    let mut plain = convert_numerals(text);
    let weekday = take_weekday(&mut plain);
    let half = take_am_pm(&mut plain)?;
    let numbers = replace_marks(&plain);
    let numbers = match numbers.split_once('-') {
        // Only a year and a month: the month gets two digits, as in ISO 8601.
        Some((year, month)) if month.len() == 1 => format!("{year}-0{month}"),
        _ => numbers,
    };
    let day = weekday.and_then(names::english_day).unwrap_or_default();
    let parts = [day, &numbers, half.unwrap_or_default()];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    Ok(parts.join(" "))
}

/// Replaces Korean units directly after a number with Japanese ones, and the letter of a weekday in brackets. Korean
/// writes blanks between the parts of a date.
fn convert_korean(text: &str) -> String {
    if !text.contains(['년', '월']) {
        return text.to_owned();
    }
    let mut converted = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let is_after = |kinds: fn(char) -> bool| converted.ends_with(kinds);
        let unit = KOREAN_UNITS.iter().find(|(unit, _)| rest.starts_with(unit));
        let weekday = ('1'..)
            .zip("월화수목금토일".chars())
            .find(|(_, day)| *day == character && is_after(|c| matches!(c, '(' | '[')));
        match (unit, weekday) {
            (_, Some((number, _))) => converted.extend(japanese_day(number)),
            (Some((_, unit)), None) if is_after(|c| c.is_ascii_digit()) => converted.push_str(unit),
            _ => converted.push(character),
        }
        rest = &rest[character.len_utf8()..];
        if converted.ends_with(['年', '月', '時', '分']) {
            rest = rest.trim_start_matches(' ');
        }
    }
    converted
}

fn japanese_day(number: char) -> Option<char> {
    let index = number.to_digit(10)?.checked_sub(1)?;
    "月火水木金土日".chars().nth(index as usize)
}

fn replace_marks(text: &str) -> String {
    let text = text
        .replace(['年', '月'], "-")
        .replace(['日', '号', '號'], " ")
        .replace(['時', '时', '点', '點', '分'], ":")
        .replace('秒', " ");
    let text = text.replace(": ", ":");
    let parts: Vec<String> = text.split_whitespace().map(pad_clock_digits).collect();
    let text = parts.join(" ").replace("- ", "-").replace(" -", "-");
    text.trim_matches('-').to_owned()
}

/// A time with two digits each and with minutes: `3:5:` becomes `03:05`, `10:` becomes `10:00`.
fn pad_clock_digits(part: &str) -> String {
    let end = part.find(|c: char| !c.is_ascii_digit() && c != ':');
    let (clock, behind) = part.split_at(end.unwrap_or(part.len()));
    if !clock.contains(':') || clock.starts_with(':') {
        return part.to_owned();
    }
    let mut numbers: Vec<String> = clock
        .trim_end_matches(':')
        .split(':')
        .map(|number| format!("{number:0>2}"))
        .collect();
    if numbers.len() == 1 {
        numbers.push("00".to_owned());
    }
    let gap = if behind.is_empty() { "" } else { " " };
    format!("{}{gap}{behind}", numbers.join(":"))
}

/// Takes the weekday out of a date, and replaces names of months with their numbers.
fn take_weekday(text: &mut String) -> Option<i8> {
    let mut weekday = None;
    for (name, meaning) in names::east_asian_names() {
        if !text.contains(name) {
            continue;
        }
        let put = meaning
            .month
            .map_or(" ".to_owned(), |month| format!("{month}月"));
        weekday = weekday.or(meaning.weekday);
        *text = text.replace(name, &put);
    }
    for (number, short) in (1..).zip(["月", "火", "水", "木", "金", "土", "日"]) {
        for bracketed in [format!("({short})"), format!("[{short}]")] {
            if text.contains(&bracketed) {
                weekday = Some(number);
                *text = text.replace(&bracketed, " ");
            }
        }
    }
    weekday
}

/// Takes the word for morning or afternoon out of a date. Twelve o'clock is an error except with the Korean words and the
/// Chinese word for afternoon, because writers disagree whether the others mean noon or midnight.
fn take_am_pm(text: &mut String) -> Result<Option<&'static str>, InvalidTime> {
    let Some((name, half)) = HALVES.iter().find(|(name, _)| text.contains(name)) else {
        return Ok(None);
    };
    let behind = text.split(name).nth(1).unwrap_or_default().trim_start();
    if behind.starts_with("12") && !matches!(*name, "下午" | "오전" | "오후") {
        return Err(InvalidTime);
    }
    *text = text.replace(name, " ");
    Ok(Some(half))
}

/// Replaces numbers in Chinese characters with digits, but only where a unit such as 年 (year) follows.
fn convert_numerals(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut run = String::new();
    for character in text.chars() {
        if numeral_value(character).is_some() {
            run.push(character);
            continue;
        }
        match numerals_to_digits(&run).filter(|_| UNITS.contains(character)) {
            Some(number) => plain.push_str(&number),
            None => plain.push_str(&run),
        }
        run.clear();
        plain.push(character);
    }
    plain + &run
}

/// The value of one numeral: 0 to 9, or 10 for the sign of ten (十).
fn numeral_value(character: char) -> Option<u32> {
    let ones = "零一二三四五六七八九十";
    match character {
        '〇' | '○' => Some(0),
        _ => (0..)
            .zip(ones.chars())
            .find_map(|(value, one)| (one == character).then_some(value)),
    }
}

/// The digits of a number in Chinese characters: `二〇二四` is 2024, `二十三` is 23, `十` is 10.
fn numerals_to_digits(run: &str) -> Option<String> {
    let values: Vec<u32> = run.chars().filter_map(numeral_value).collect();
    let number = match values[..] {
        [] => return None,
        [10] => 10,
        [10, one] if one < 10 => 10 + one,
        [tens, 10] if tens < 10 => tens * 10,
        [tens, 10, one] if tens < 10 && one < 10 => tens * 10 + one,
        _ if values.contains(&10) => return None,
        _ => return Some(values.iter().map(u32::to_string).collect()),
    };
    Some(number.to_string())
}
