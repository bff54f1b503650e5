//! Names of time zones that mean the same offset wherever they are used.

/// Offsets of time zones in minutes east of Greenwich. Names that several countries use for different offsets are left
/// out: BST (British Summer Time, Bangladesh), CST (America, China, Cuba), IST (India, Ireland, Israel), AST, SST, GST,
/// AMT.
const ZONES: &[(&str, i32)] = &[
    ("Z", 0),
    ("UTC", 0),
    ("GMT", 0),
    ("UT", 0),
    ("WET", 0),
    ("WEST", 60),
    ("CET", 60),
    ("CEST", 120),
    ("MEZ", 60),
    ("MESZ", 120),
    ("EET", 120),
    ("EEST", 180),
    ("MSK", 180),
    ("TRT", 180),
    ("SAST", 120),
    ("WAT", 60),
    ("CAT", 120),
    ("EAT", 180),
    ("PKT", 300),
    ("NPT", 345),
    ("ICT", 420),
    ("WIB", 420),
    ("WITA", 480),
    ("WIT", 540),
    ("HKT", 480),
    ("SGT", 480),
    ("AWST", 480),
    ("JST", 540),
    ("KST", 540),
    ("ACST", 570),
    ("ACDT", 630),
    ("AEST", 600),
    ("AEDT", 660),
    ("NZST", 720),
    ("NZDT", 780),
    ("BRT", -180),
    ("ART", -180),
    ("NST", -210),
    ("NDT", -150),
    ("EST", -300),
    ("EDT", -240),
    ("CDT", -300),
    ("MST", -420),
    ("MDT", -360),
    ("PST", -480),
    ("PDT", -420),
    ("AKST", -540),
    ("AKDT", -480),
    ("HST", -600),
];

/// The offset from UTC in seconds of a zone, given as a name or as `+0100`, `+01:00`, `UTC+1`, `GMT-03:30`.
pub(super) fn parse_offset(zone: &str) -> Option<i32> {
    let upper = zone.to_ascii_uppercase();
    if let Some((_, minutes)) = ZONES.iter().find(|(name, _)| *name == upper) {
        return Some(minutes * 60);
    }
    let is_named = upper.starts_with("UTC") || upper.starts_with("GMT");
    let number = if is_named { &upper[3..] } else { &upper };
    let (sign, digits) = match number.chars().next()? {
        '+' => (1, &number[1..]),
        '-' => (-1, &number[1..]),
        _ => return None,
    };
    let plain = digits.replace(':', "");
    let (hours, minutes) = match (plain.len(), is_named || digits.contains(':')) {
        (1 | 2, _) => (plain.as_str(), "0"),
        (3, true) => plain.split_at(1),
        (4, _) => plain.split_at(2),
        _ => return None,
    };
    let all_digits = plain.bytes().all(|b| b.is_ascii_digit());
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    (all_digits && hours <= 14 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// Replaces zone names in a text with offsets, for a strptime format with `%z`. A name that is unknown, or that several
/// countries use, becomes `unknown`.
pub fn replace_zone_names(text: &str, unknown: &str) -> String {
    let mut put = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(begin) = rest.find(|c: char| c.is_ascii_uppercase()) {
        put.push_str(&rest[..begin]);
        let word = &rest[begin..];
        let letters = word
            .find(|c: char| !c.is_alphabetic())
            .unwrap_or(word.len());
        let follows = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | ':');
        let length = match word[..letters].starts_with("UTC") || word[..letters].starts_with("GMT")
        {
            true => {
                letters
                    + word[letters..]
                        .find(|c| !follows(c))
                        .unwrap_or(word.len() - letters)
            }
            false => letters,
        };
        let (name, behind) = word.split_at(length);
        let is_name =
            (2..=5).contains(&letters) && name[..letters].bytes().all(|b| b.is_ascii_uppercase());
        match parse_offset(name) {
            Some(seconds) => put.push_str(&format_offset(seconds)),
            None if is_name && !matches!(name, "AM" | "PM") => put.push_str(unknown),
            None => put.push_str(name),
        }
        rest = behind;
    }
    put + rest
}

fn format_offset(seconds: i32) -> String {
    let sign = if seconds < 0 { '-' } else { '+' };
    let minutes = seconds.unsigned_abs() / 60;
    format!("{sign}{:02}{:02}", minutes / 60, minutes % 60)
}
