//! A date in an RTF, whose parts are given by control words.

const PARTS: [&str; 5] = ["yr", "mo", "dy", "hr", "min"];

/// Year, month, day, hour and minute; 0 if not given.
#[derive(Debug, Default)]
pub(super) struct Date([i32; 5]);

impl Date {
    pub(super) fn set_part(&mut self, word: &str, value: i32) {
        if let Some(part) = PARTS.iter().position(|known| *known == word) {
            self.0[part] = value;
        }
    }

    pub(super) fn to_iso(&self) -> Option<String> {
        let [year, month, day, hour, minute] = self.0;
        let is_date =
            (1..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
        let is_time = (0..24).contains(&hour) && (0..60).contains(&minute);
        (is_date && is_time).then(|| format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}"))
    }
}
