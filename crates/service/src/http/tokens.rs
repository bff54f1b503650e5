//! Tokens: how HTTP clients prove who they are. They are listed in a text file with one `NAME TOKEN` per line,
//! optionally followed by the token's [`Rights`]. The list has a token in plain text or, better, as `sha256:` with its
//! digest.
//!
//! A digest is compared with all bytes of all entries, so that the time of the comparison reveals nothing.

use std::fs;
use std::hint::black_box;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use crate::Fault;
use crate::private_file::is_open_to_others;
use sha2::{Digest, Sha256};
use webfill_wire::keys::{Rights, is_valid_name};

/// The first line of every file of tokens; a file without it is refused.
pub const TOKENS_HEADING: &str = "# webfill: tokens for HTTP, one `NAME TOKEN` per line";

/// The prefix of a token's digest in the file of tokens.
const DIGEST_MARK: &str = "sha256:";

/// The minimum length of a token in plain text, in characters.
const LEAST_CHARACTERS: usize = 32;

pub type TokenDigest = [u8; 32];

/// The owner of a token, with the token's rights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bearer {
    pub name: Arc<str>,
    pub rights: Rights,
}

/// The tokens that are valid now.
#[derive(Clone, Default)]
pub struct Tokens(Vec<(TokenDigest, Bearer)>);

impl Tokens {
    /// Reads the file of tokens, which other users must not be able to read.
    pub(crate) fn read(path: &Path) -> Result<Tokens, Fault> {
        let shown = path.display();
        let text = read_private(path, "the tokens")?;
        parse(&text).map_err(|fault| Fault::usage(format!("{shown}: {fault}")))
    }

    /// The owner of a valid token; `None` if the token is not valid.
    pub fn bearer(&self, token: &str) -> Option<&Bearer> {
        self.bearer_by_digest(&digest(token))
    }

    /// Returns the digest of a listed token. As long as the token is listed, [`Tokens::bearer_by_digest`] finds its
    /// owner.
    pub fn digest_of(&self, token: &str) -> Option<TokenDigest> {
        let digest = digest(token);
        self.bearer_by_digest(&digest).map(|_| digest)
    }

    /// The owner of the token with this digest.
    pub fn bearer_by_digest(&self, digest: &TokenDigest) -> Option<&Bearer> {
        let mut found = None;
        for (listed, bearer) in &self.0 {
            if is_same(digest, listed) {
                found = Some(bearer);
            }
        }
        found
    }
}

/// Reads a file that other users must not be able to read.
pub(crate) fn read_private(path: &Path, what: &str) -> Result<String, Fault> {
    let shown = path.display();
    let unreadable = |error| Fault::usage(format!("cannot read {what} {shown}: {error}"));
    let found = fs::metadata(path).map_err(unreadable)?;
    if is_open_to_others(&found) {
        return Err(Fault::usage(format!(
            "{shown} is readable by others than its owner (mode {:03o}): set it to 0400, and replace the tokens if others had access to this machine",
            found.mode() & 0o777
        )));
    }
    fs::read_to_string(path).map_err(unreadable)
}

fn digest(token: &str) -> TokenDigest {
    Sha256::digest(token.as_bytes()).into()
}

fn is_same(one: &TokenDigest, other: &TokenDigest) -> bool {
    let pairs = one.iter().zip(other);
    black_box(pairs.fold(0, |differ, (a, b)| differ | (a ^ b))) == 0
}

/// Parses the text of the file of tokens. Error messages never contain a token.
fn parse(text: &str) -> Result<Tokens, String> {
    if text.lines().next() != Some(TOKENS_HEADING) {
        return Err(format!(
            "not a list of tokens: its first line is not `{TOKENS_HEADING}`"
        ));
    }
    let mut tokens = Tokens::default();
    for (line, content) in text.lines().enumerate() {
        let content = content.trim();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let fault = |reason: String| format!("line {}: {reason}", line + 1);
        let (digest, bearer) = parse_entry(content).map_err(fault)?;
        for (listed, other) in &tokens.0 {
            if other.name == bearer.name || *listed == digest {
                let why = format!("{} has this name or this token already", other.name);
                return Err(fault(why));
            }
        }
        tokens.0.push((digest, bearer));
    }
    match tokens.0.is_empty() {
        true => Err("it has no token, so nobody could ask".into()),
        false => Ok(tokens),
    }
}

fn parse_entry(line: &str) -> Result<(TokenDigest, Bearer), String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [name, token, rights @ ..] = &words[..] else {
        return Err("expected `NAME TOKEN`".into());
    };
    if !is_valid_name(name) {
        return Err(format!(
            "`{name}` is no name: 1 to 64 letters, digits, or - _ ."
        ));
    }
    let digest = match token.strip_prefix(DIGEST_MARK) {
        Some(hex) => digest_of_hex(hex)
            .ok_or_else(|| format!("the digest of {name} is not 64 hexadecimal digits"))?,
        None if token.chars().count() < LEAST_CHARACTERS => {
            return Err(format!(
                "the token of {name} has less than {LEAST_CHARACTERS} characters, which can be guessed"
            ));
        }
        None => digest(token),
    };
    let bearer = Bearer {
        name: (*name).into(),
        rights: Rights::parse(rights)?,
    };
    Ok((digest, bearer))
}

fn digest_of_hex(hex: &str) -> Option<TokenDigest> {
    let mut digest = TokenDigest::default();
    if hex.len() != 2 * digest.len() || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (place, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&hex[2 * place..2 * place + 2], 16).ok()?;
    }
    Some(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "0123456789abcdef0123456789abcdef";
    /// The SHA-256 digest of the text `secret`.
    const DIGEST: &str = "sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";

    fn tokens_text(lines: &[&str]) -> String {
        format!("{TOKENS_HEADING}\n{}\n", lines.join("\n"))
    }

    #[test]
    fn a_token_is_known_by_itself_or_by_its_digest() {
        let plain = format!("shop {PLAIN} apps=shop read-only");
        let hashed = format!("chief {DIGEST}");
        let tokens = parse(&tokens_text(&["# ours", &plain, &hashed])).unwrap();
        let name = |token: &str| tokens.bearer(token).map(|bearer| &*bearer.name);
        assert_eq!(name(PLAIN), Some("shop"));
        assert_eq!(name("secret"), Some("chief"));
        for wrong in ["", "Secret", "secret ", DIGEST, &PLAIN[1..]] {
            assert_eq!(name(wrong), None, "{wrong}");
        }
        let shop = tokens.bearer(PLAIN).unwrap();
        assert!(shop.rights.is_read_only() && !shop.rights.permits_app("news"));
    }

    #[test]
    fn faults_name_their_line_and_no_token() {
        let good = format!("shop {PLAIN}");
        for wrong in [
            "other short-secret".to_owned(),
            format!("other {PLAIN}"),
            format!("shop {DIGEST}"),
            "other sha256:abc".into(),
            format!("other {DIGEST} everything"),
            format!("o:ther {DIGEST}"),
            "other".into(),
        ] {
            let fault = parse(&tokens_text(&[&good, &wrong])).map(drop).unwrap_err();
            assert!(fault.starts_with("line 3: "), "{fault}");
            assert!(
                !fault.contains(PLAIN) && !fault.contains("short-secret"),
                "{fault}"
            );
        }
        assert!(parse("").is_err() && parse(&tokens_text(&[])).is_err());
    }
}
