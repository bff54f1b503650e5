//! One field of a cron schedule: `*`, numbers, names, ranges, steps, and lists of these.

/// The kind of a field, and its allowed values.
pub(super) struct Kind {
    name: &'static str,
    least: u32,
    most: u32,
    /// Names of the values from `least` on.
    names: &'static [&'static str],
}

pub(super) const MINUTE: Kind = Kind {
    name: "minute",
    least: 0,
    most: 59,
    names: &[],
};

pub(super) const HOUR: Kind = Kind {
    name: "hour",
    least: 0,
    most: 23,
    names: &[],
};

pub(super) const DAY: Kind = Kind {
    name: "day of month",
    least: 1,
    most: 31,
    names: &[],
};

pub(super) const MONTH: Kind = Kind {
    name: "month",
    least: 1,
    most: 12,
    names: &[
        "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
    ],
};

/// The day of the week. Sunday is 0 and 7.
pub(super) const WEEKDAY: Kind = Kind {
    name: "day of week",
    least: 0,
    most: 7,
    names: &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"],
};

/// The allowed values of one cron field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    /// A bit for each allowed value: bit 5 for the value 5.
    values: u64,
    /// Whether the field begins with `*`; `*/15` does, too.
    pub(super) is_star: bool,
}

impl Field {
    pub(super) fn parse(kind: &Kind, text: &str) -> Result<Field, String> {
        let mut values = 0;
        for part in text.split(',') {
            values |= kind.parse_part(part)?;
        }
        // 0 and 7 both mean Sunday.
        if kind.most == WEEKDAY.most && values & (1 << 7) != 0 {
            values = (values | 1) & !(1 << 7);
        }
        Ok(Field {
            values,
            is_star: text.starts_with('*'),
        })
    }

    pub(super) fn allows(self, value: u32) -> bool {
        self.values & (1 << value) != 0
    }
}

impl Kind {
    /// The values of one part of a list: `*`, `5`, `MON` or `1-5`, with or without a step such as `/2`. As in vixie
    /// cron, `5/2` continues to the greatest value.
    fn parse_part(&self, part: &str) -> Result<u64, String> {
        let (range, step) = match part.split_once('/') {
            None => (part, 1),
            Some((range, step)) => (range, self.parse_step(part, step)?),
        };
        let (first, last) = match range.split_once('-') {
            _ if range == "*" => (self.least, self.greatest_value()),
            Some((first, last)) => (
                self.parse_value(part, first)?,
                self.parse_value(part, last)?,
            ),
            None if part.contains('/') => (self.parse_value(part, range)?, self.greatest_value()),
            None => {
                let value = self.parse_value(part, range)?;
                (value, value)
            }
        };
        if first > last {
            return Err(self.error_at(part, "the range ends before it begins"));
        }
        Ok((first..=last)
            .step_by(step as usize)
            .fold(0, |values, value| values | 1 << value))
    }

    fn parse_step(&self, part: &str, step: &str) -> Result<u32, String> {
        match parse_number(step) {
            Some(step @ 1..=60) => Ok(step),
            _ => Err(self.error_at(part, "a step is a number from 1 to 60")),
        }
    }

    fn parse_value(&self, part: &str, text: &str) -> Result<u32, String> {
        let mut names = self.names.iter();
        let by_name = names.position(|name| name.eq_ignore_ascii_case(text));
        let by_name = by_name.map(|index| self.least + index as u32);
        match by_name.or_else(|| parse_number(text)) {
            Some(value) if (self.least..=self.most).contains(&value) => Ok(value),
            _ => Err(self.error_at(part, &self.describe_allowed_values())),
        }
    }

    /// The last value of `*`: Sunday is not counted twice.
    fn greatest_value(&self) -> u32 {
        match self.most {
            7 => 6,
            most => most,
        }
    }

    fn describe_allowed_values(&self) -> String {
        let (least, most) = (self.least, self.most);
        match (self.names.first(), self.names.last()) {
            (Some(_), Some(_)) if self.most == 7 => {
                "allowed are 0 to 7 (0 and 7 are Sunday) and SUN to SAT".into()
            }
            (Some(first), Some(last)) => {
                format!("allowed are {least} to {most} and {first} to {last}")
            }
            _ => format!("allowed are {least} to {most}"),
        }
    }

    fn error_at(&self, part: &str, why: &str) -> String {
        let shown: String = part.chars().take(20).collect();
        format!("{} `{shown}`: {why}", self.name)
    }
}

/// Parses a number of one to four digits, without a sign.
fn parse_number(text: &str) -> Option<u32> {
    let is_number = (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}
