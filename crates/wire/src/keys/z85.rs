//! Z85, the text form of keys: five characters for four bytes (ZeroMQ RFC 32).

/// The length of a key in bytes.
pub(super) const KEY_BYTES: usize = 32;

/// Why a text is not a key. The error does not contain the text, which may be a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("a key has 40 characters, not {found}")]
    Length { found: usize },
    #[error("it has characters that no key has")]
    Characters,
}

const ALPHABET: &[u8; 85] =
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

const KEY_CHARACTERS: usize = KEY_BYTES / 4 * 5;

pub(super) fn encode(key: &[u8; KEY_BYTES]) -> String {
    let mut text = String::with_capacity(KEY_CHARACTERS);
    for four in key.as_chunks::<4>().0 {
        let mut value = u32::from_be_bytes(*four) as usize;
        let mut five = [0u8; 5];
        for place in five.iter_mut().rev() {
            *place = ALPHABET[value % 85];
            value /= 85;
        }
        text.extend(five.map(char::from));
    }
    text
}

pub(super) fn decode(text: &str) -> Result<[u8; KEY_BYTES], KeyError> {
    if text.chars().count() != KEY_CHARACTERS {
        let found = text.chars().count();
        return Err(KeyError::Length { found });
    }
    let mut key = [0; KEY_BYTES];
    let fives = text.as_bytes().chunks(5);
    for (four, five) in key.as_chunks_mut::<4>().0.iter_mut().zip(fives) {
        let mut value = 0u64;
        for character in five {
            value = value * 85 + digit(*character).ok_or(KeyError::Characters)?;
        }
        // Five characters can express numbers above 32 bits, which are invalid.
        let value = u32::try_from(value).map_err(|_| KeyError::Characters)?;
        *four = value.to_be_bytes();
    }
    Ok(key)
}

/// The value of each character. It is a table for speed, because the sender's key is decoded for every message.
const DIGITS: [u8; 256] = {
    let mut digits = [NO_DIGIT; 256];
    let mut value = 0;
    while value < ALPHABET.len() {
        digits[ALPHABET[value] as usize] = value as u8;
        value += 1;
    }
    digits
};

const NO_DIGIT: u8 = 255;

fn digit(character: u8) -> Option<u64> {
    match DIGITS[usize::from(character)] {
        NO_DIGIT => None,
        value => Some(value.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses the example of RFC 32 four times.
    #[test]
    fn the_example_of_the_standard_is_encoded_as_hello_world() {
        let eight = [0x86, 0x4f, 0xd2, 0x6f, 0xb5, 0x59, 0xf7, 0x5b];
        let key: [u8; KEY_BYTES] = std::array::from_fn(|place| eight[place % 8]);
        assert_eq!(encode(&key), "HelloWorld".repeat(4));
        assert_eq!(decode(&"HelloWorld".repeat(4)), Ok(key));
    }

    #[test]
    fn every_key_has_exactly_one_text() {
        for byte in [0, 1, 84, 85, 127, 254, 255] {
            let key = [byte; KEY_BYTES];
            assert_eq!(decode(&encode(&key)), Ok(key));
        }
    }

    #[test]
    fn a_text_that_is_not_a_key_is_refused() {
        for short in ["", "HelloWorld", &"x".repeat(39), &"x".repeat(41)] {
            assert!(matches!(decode(short), Err(KeyError::Length { .. })));
        }
        // The last text ends with five characters for a number above 2^32 - 1.
        let over = "0".repeat(35) + "#####";
        for wrong in ["ä".repeat(40), " ".repeat(40), "~".repeat(40), over] {
            assert_eq!(decode(&wrong), Err(KeyError::Characters), "{wrong}");
        }
    }
}
