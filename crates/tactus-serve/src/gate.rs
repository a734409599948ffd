//! Decides which clients are let in: on loopback all of them, elsewhere those with the token.

use std::fmt::Write as _;
use std::hint::black_box;

use sha2::{Digest as _, Sha256};
use tactus_watch::http::Request;

/// Bytes of a token that is drawn.
const RANDOM: usize = 16;
/// Least characters of a user's token: 128 bits in letters and digits.
const LEAST: usize = 22;
/// Most of them.
const MOST: usize = 256;

/// The secret that opens the gate: letters, digits, `-` and `_`, so that it fits in an address and in a
/// cookie.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// One of 128 random bits.
    ///
    /// # Errors
    /// When the system has none.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; RANDOM];
        getrandom::fill(&mut bytes)?;
        let mut text = String::new();
        for byte in bytes {
            let _ = write!(text, "{byte:02x}");
        }
        Ok(Self(text))
    }

    /// A token from a file; spaces and lines around it are ignored.
    ///
    /// # Errors
    /// In words, when it could be guessed, or cannot stand in an address.
    pub fn written(text: &str) -> Result<Self, String> {
        let own = text.trim();
        if own.len() < LEAST || own.len() > MOST {
            return Err(format!("a token has {LEAST} to {MOST} characters, this one {}", own.len()));
        }
        match own.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_') {
            true => Ok(Self(own.to_owned())),
            false => Err("a token is letters, digits, `-` and `_`".into()),
        }
    }

    /// As it stands in an address.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// The gate.
pub struct Gate {
    token: Option<(Token, [u8; 32])>,
    cookie: String,
}

/// The decision of the gate on a request.
pub enum Said {
    /// It may pass.
    Pass,
    /// It may, and has this cookie from now on, so that the token stands in one address only.
    Keep(String),
    /// It may not.
    Closed,
}

impl Gate {
    /// A gate that opens by this token; `None` opens it to all. `port` tells its cookie from those of other
    /// servers on the machine, because browsers do not.
    #[must_use]
    pub fn new(token: Option<Token>, port: u16) -> Self {
        let digest = |token: Token| {
            let digest = digest(&token.0);
            (token, digest)
        };
        Self { token: token.map(digest), cookie: format!("tactus-{port}") }
    }

    /// Whether a request may pass: by `?token=`, by the cookie, or by `Authorization: Bearer`.
    pub fn says(&self, request: &Request) -> Said {
        let Some((token, right)) = &self.token else { return Said::Pass };
        let is = |text: &str| alike(&digest(text), right);
        if request.cookies(&self.cookie).any(is) {
            return Said::Pass;
        }
        if request.query("token").is_some_and(is) {
            let (name, token) = (&self.cookie, token.text());
            return Said::Keep(format!("{name}={token}; Path=/; HttpOnly; SameSite=Strict"));
        }
        let bearer = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        if bearer.is_some_and(is) { Said::Pass } else { Said::Closed }
    }
}

fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text).into()
}

/// Whether two digests are the same, in a time that does not reveal where they differ. Digests are compared
/// because a guesser can choose none of their bytes.
fn alike(one: &[u8; 32], other: &[u8; 32]) -> bool {
    let differ = one.iter().zip(other).fold(0, |differ, (one, other)| black_box(differ | (one ^ other)));
    differ == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_is_drawn_is_another_one_each_time_and_one_that_may_be_written() {
        let [one, other] = [Token::random().unwrap(), Token::random().unwrap()];
        assert_ne!(one.text(), other.text());
        assert_eq!(one.text().len(), 2 * RANDOM);
        assert!(Token::written(one.text()).is_ok());
    }

    #[test]
    fn a_token_that_could_be_guessed_or_ends_a_header_is_refused() {
        for text in [
            "",
            "  \n",
            "secret",
            &"x".repeat(MOST + 1),
            &"x y".repeat(10),
            &"x;".repeat(20),
            &"é".repeat(20),
        ] {
            assert!(Token::written(text).is_err(), "{text}");
        }
        let written = Token::written(&format!(" {}\n", "aB3_-".repeat(5))).unwrap();
        assert_eq!(written.text(), "aB3_-".repeat(5));
    }

    #[test]
    fn digests_are_alike_where_no_bit_differs() {
        let one = digest("a");
        assert!(alike(&one, &one));
        for bit in 0..256 {
            let mut other = one;
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(!alike(&one, &other), "{bit}");
        }
    }
}
