//! The known values of rows, stored compactly. A table may have millions of rows, and nested lists would take several
//! times the memory of their values.

/// The values of a row's cells by field; a field without values is a gap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownValues(Box<[u8]>);

/// Reads the remaining bytes of a [`KnownValues`]. Each field is its number of values, followed by each value after its
/// length.
struct Fields<'k> {
    rest: &'k [u8],
}

impl KnownValues {
    pub fn from_values(fields: impl IntoIterator<Item = Vec<String>>) -> KnownValues {
        let mut bytes = Vec::new();
        for values in fields {
            push_varint(&mut bytes, values.len());
            for value in values {
                push_varint(&mut bytes, value.len());
                bytes.extend_from_slice(value.as_bytes());
            }
        }
        KnownValues(bytes.into_boxed_slice())
    }

    /// How many values each field has.
    pub fn counts(&self) -> impl Iterator<Item = usize> {
        let mut fields = Fields { rest: &self.0 };
        std::iter::from_fn(move || fields.next_field(&mut |_| ()))
    }

    /// The values of each field.
    pub fn fields(&self) -> impl Iterator<Item = Vec<String>> {
        let mut fields = Fields { rest: &self.0 };
        std::iter::from_fn(move || {
            let mut values = Vec::new();
            fields.next_field(&mut |value| values.push(decode_text(value)))?;
            Some(values)
        })
    }

    pub fn get(&self, field: usize) -> Vec<String> {
        let (mut fields, mut values) = (Fields { rest: &self.0 }, Vec::new());
        for _ in 0..field {
            fields.next_field(&mut |_| ());
        }
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
    }
}
