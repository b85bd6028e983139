//! The token that a client must show: 256 random bits.

use anyhow::Context;
use secrecy::{ExposeSecret, SecretString};
use std::fmt::Write;
use subtle::ConstantTimeEq;

/// The number of random bytes.
const BYTES: usize = 32;

/// A token: 64 lower-case hexadecimal digits. It is never logged.
#[derive(Debug, Clone)]
pub struct Token(SecretString);

impl Token {
    pub(super) fn random() -> anyhow::Result<Self> {
        let mut bytes = [0; BYTES];
        getrandom::fill(&mut bytes).context("ask the system for random bytes")?;
        let mut digits = String::with_capacity(2 * BYTES);
        for byte in bytes {
            let _infallible = write!(digits, "{byte:02x}");
        }
        Ok(Self(digits.into()))
    }

    /// `None` if the text cannot be a token.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_token = text.len() == 2 * BYTES && text.bytes().all(is_digit);
        is_token.then(|| Self(text.to_owned().into()))
    }

    /// Compares in a time that depends only on the length.
    pub(crate) fn is(&self, shown: &str) -> bool {
        let own = self.0.expose_secret().as_bytes();
        own.ct_eq(shown.as_bytes()).into()
    }

    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_only_its_own_text() {
        let token = Token::random().unwrap();
        let text = token.expose().to_owned();
        assert!(token.is(&text));
        assert!(Token::parse(&text).unwrap().is(&text));
        assert_ne!(text, Token::random().unwrap().expose());
        for other in [
            "",
            &text[1..],
            &format!("{text}0"),
            &text.replace('0', "1").replace('2', "3"),
        ] {
            assert!(!token.is(other), "{other}");
        }
        assert!(!format!("{token:?}").contains(&text), "it is not logged");
        for wrong in ["", "0", &text[1..], &"g".repeat(64), &"A".repeat(64)] {
            assert!(Token::parse(wrong).is_none(), "{wrong}");
        }
    }
}
