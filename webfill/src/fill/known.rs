//! The known values of rows, stored compactly. A table may have millions of rows, and nested lists would take several
//! times the memory of their values.

/// The values of a row's cells by field; a field without values is a gap.
///
/// First stands the number of positions, and each position in four bytes: where the field 64, 128 and so on begins.
/// Without them, each value of a wide row would be searched from the row's beginning.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownValues(Box<[u8]>);

/// The number of fields from one position to the next.
const STEP: usize = 64;

/// Reads the remaining bytes of a [`KnownValues`]. Each field is its number of values, followed by each value after its
/// length.
struct Fields<'k> {
    rest: &'k [u8],
}

impl KnownValues {
    pub fn from_values(fields: impl IntoIterator<Item = Vec<String>>) -> KnownValues {
        let (mut bytes, mut positions) = (Vec::new(), Vec::new());
        for (at, values) in fields.into_iter().enumerate() {
            if at > 0 && at % STEP == 0 {
                // A row of more than 4 GiB is never read.
                positions.push(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
            }
            push_varint(&mut bytes, values.len());
            for value in values {
                push_varint(&mut bytes, value.len());
                bytes.extend_from_slice(value.as_bytes());
            }
        }
        let mut all = Vec::with_capacity(bytes.len() + positions.len() * 4 + 1);
        push_varint(&mut all, positions.len());
        all.extend(positions.iter().flat_map(|position| position.to_le_bytes()));
        all.extend_from_slice(&bytes);
        KnownValues(all.into_boxed_slice())
    }

    /// The positions, and all fields.
    fn parts(&self) -> (&[[u8; 4]], Fields<'_>) {
        let mut fields = Fields { rest: &self.0 };
        let length = fields.read_varint() * 4;
        let (positions, rest) = fields.rest.split_at(length);
        (positions.as_chunks().0, Fields { rest })
    }

    /// How many values each field has.
    pub fn counts(&self) -> impl Iterator<Item = usize> {
        let (_, mut fields) = self.parts();
        std::iter::from_fn(move || fields.next_field(&mut |_| ()))
    }

    /// The values of each field.
    pub fn fields(&self) -> impl Iterator<Item = Vec<String>> {
        let (_, mut fields) = self.parts();
        std::iter::from_fn(move || {
            let mut values = Vec::new();
            fields.next_field(&mut |value| values.push(decode_text(value)))?;
            Some(values)
        })
    }

    pub fn get(&self, field: usize) -> Vec<String> {
        let (positions, mut fields) = self.parts();
        let mut skipped = field;
        if let Some(step) = (field / STEP).checked_sub(1)
            && let Some(position) = positions.get(step)
        {
            let position = u32::from_le_bytes(*position) as usize;
            fields.rest = &fields.rest[position..];
            skipped = field % STEP;
        }
        for _ in 0..skipped {
            fields.next_field(&mut |_| ());
        }
        let mut values = Vec::new();
        fields.next_field(&mut |value| values.push(decode_text(value)));
        values
    }

    pub fn set(&mut self, field: usize, values: Vec<String>) {
        let mut fields: Vec<Vec<String>> = self.fields().collect();
        fields[field] = values;
        *self = KnownValues::from_values(fields);
    }
}

impl Fields<'_> {
    /// Reads the next field: passes each of its values to `take`, and returns their number. `None` after the last
    /// field.
    fn next_field(&mut self, take: &mut dyn FnMut(&[u8])) -> Option<usize> {
        if self.rest.is_empty() {
            return None;
        }
        let count = self.read_varint();
        for _ in 0..count {
            let length = self.read_varint();
            let (value, rest) = self.rest.split_at(length);
            take(value);
            self.rest = rest;
        }
        Some(count)
    }

    fn read_varint(&mut self) -> usize {
        let (mut number, mut shift) = (0, 0);
        while let Some((byte, rest)) = self.rest.split_first() {
            self.rest = rest;
            number |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        number
    }
}

/// Appends a number, seven bits to a byte, the lowest first. All bytes but the last have the eighth bit set.
fn push_varint(bytes: &mut Vec<u8>, mut number: usize) {
    while number > 0x7f {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn decode_text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_in_comes_out() {
        let long = "é".repeat(40_000);
        let fields = vec![
            vec![String::from("a"), long, String::new()],
            Vec::new(),
            vec!["b\u{0}c".repeat(200)],
        ];
        let mut known = KnownValues::from_values(fields.clone());
        assert_eq!(known.fields().collect::<Vec<_>>(), fields);
        assert_eq!(known.counts().collect::<Vec<_>>(), [3, 0, 1]);
        assert_eq!(known.get(0), fields[0]);
        assert_eq!(known.get(2), fields[2]);
        known.set(1, vec![String::from("new")]);
        assert_eq!(known.get(1), ["new"]);
        assert_eq!(known.get(2), fields[2]);
        assert_eq!(KnownValues::from_values(Vec::new()).counts().count(), 0);
        assert_eq!(KnownValues::default().get(70), [""; 0]);
        let wide = || (0..300).map(|at| vec![format!("{at}"); at % 3]);
        let mut known = KnownValues::from_values(wide());
        known.set(64, Vec::new());
        for (at, values) in wide().enumerate() {
            let expected = if at == 64 { Vec::new() } else { values };
            assert_eq!(known.get(at), expected, "{at}");
        }
    }
}
