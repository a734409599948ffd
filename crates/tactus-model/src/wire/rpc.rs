//! The host side's calls to a probe's system: for its files, its programs, and promises to undo changes. An environment
//! inside another one is started with these calls.
//!
//! ```text
//! host   call (id 7: spawn crun run ...)      grants 64 KiB of stdout and of stderr
//! probe  answer (id 7)                        the child bears the call's number
//! probe  output (child 7, stream 1, ...)*     never more than was granted
//! host   call (grant)*, call (input)*         input is answered when the child has taken it
//! probe  exited (child 7)
//! ```
//!
//! A call is sent as a list of words rather than as a variant for each verb: its reader in the probe is then small.

use serde::{Deserialize, Serialize};

use crate::undo::Undo;

/// How much of a child's output may be on its way, for each of its streams, in bytes.
pub const WINDOW: u64 = 64 * 1024;
/// The most bytes of a file or a stream that one message carries.
pub const PIECE: usize = 32 * 1024;
/// The most bytes that one `read` answers: what /proc and /sys say comes in one piece.
pub const READ: usize = 256 * 1024;

/// What is to be done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verb {
    /// The bytes of `path` from `number` on, at most [`READ`]. `number` of the answer: whether there is more.
    #[default]
    Read,
    /// Writes `data` to `path`, made or emptied; `number`: its mode, 0 for the default of the umask.
    Create,
    /// Adds `data` to the end of `path`; `number` 1: it is on the disk when this is answered.
    Append,
    /// Puts a copy of the probe at `path` with the mode `number`.
    Own,
    /// Makes the directory `path` and those above it with the mode `number`.
    MakeDir,
    /// Gives `path` the name `words[0]`.
    Rename,
    /// Names in the directory `path`.
    List,
    /// Whether `path` exists.
    Exists,
    /// Whether `path` opens for reading and writing.
    Opens,
    /// Returns the path of the program `path`.
    Find,
    /// Starts the program `words`, of which the first `number` are variables (`NAME=value`). Answered with
    /// its process id.
    Spawn,
    /// Writes `data` to the stdin of `child`; nothing: closes it.
    Input,
    /// Allows `child` to send `number` further bytes on the stream `words[0]` (1, 2); 0: closes that stream.
    Grant,
    /// Kills `child`.
    Kill,
    /// `undo` is done at the session's end, under the number `child`.
    Promise,
    /// The promise `child` need not be kept any more.
    Settle,
    /// Does `undo` now, once; not for commands and marks.
    Undo,
}

/// Verbs as they travel.
const VERBS: [(&str, Verb); 17] = [
    ("read", Verb::Read),
    ("create", Verb::Create),
    ("append", Verb::Append),
    ("own", Verb::Own),
    ("make_dir", Verb::MakeDir),
    ("rename", Verb::Rename),
    ("list", Verb::List),
    ("exists", Verb::Exists),
    ("opens", Verb::Opens),
    ("find", Verb::Find),
    ("spawn", Verb::Spawn),
    ("input", Verb::Input),
    ("grant", Verb::Grant),
    ("kill", Verb::Kill),
    ("promise", Verb::Promise),
    ("settle", Verb::Settle),
    ("undo", Verb::Undo),
];

/// A request of the host side. Fields that a verb does not use are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Packed", try_from = "Packed")]
pub struct Call {
    /// Its number; a child bears that of its `spawn`.
    pub id: u64,
    /// What is to be done.
    pub verb: Verb,
    /// A child or a promise, by its number.
    pub child: u64,
    /// See [`Verb`].
    pub number: u64,
    /// See [`Verb`].
    pub path: String,
    /// Bytes, as [`encode`] writes them.
    pub data: String,
    /// The undo.
    pub undo: Option<Undo>,
    /// See [`Verb`].
    pub words: Vec<String>,
}

/// A call as it travels: its fields in their order, and its words after them.
#[derive(Serialize, Deserialize)]
struct Packed {
    w: Vec<String>,
}

impl From<Call> for Packed {
    fn from(call: Call) -> Self {
        let verb = VERBS.iter().find(|(_, verb)| *verb == call.verb).map_or("", |(name, _)| name);
        let undo = call.undo.and_then(|undo| serde_json::to_string(&undo).ok()).unwrap_or_default();
        let [id, child, number] = [call.id, call.child, call.number].map(|number| number.to_string());
        let mut w = vec![id, verb.to_owned(), child, number, call.path, call.data, undo];
        w.extend(call.words);
        Self { w }
    }
}

impl TryFrom<Packed> for Call {
    type Error = &'static str;

    fn try_from(packed: Packed) -> Result<Self, Self::Error> {
        let mut w = packed.w.into_iter();
        let mut next = || w.next().ok_or("a call of too few words");
        let number = |word: String| word.parse::<u64>().map_err(|_| "a call with a word that is no number");
        let id = number(next()?)?;
        let verb = next()?;
        let verb = VERBS.iter().find(|(name, _)| *name == verb).ok_or("a call with an unknown verb")?.1;
        let (child, number) = (number(next()?)?, number(next()?)?);
        let (path, data, undo) = (next()?, next()?, next()?);
        let undo = if undo.is_empty() {
            None
        } else {
            Some(serde_json::from_str(&undo).map_err(|_| "a call with something to undo that is not known")?)
        };
        Ok(Self { id, verb, child, number, path, data, undo, words: w.collect() })
    }
}

impl Call {
    /// A call about a path; its number is given when it is made.
    #[must_use]
    pub fn new(verb: Verb, path: &str) -> Self {
        Self { verb, path: path.into(), ..Self::default() }
    }
}

/// How a call went.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Answer {
    /// The call's number.
    pub id: u64,
    /// Why it failed (errno(3)); 0: it did not.
    #[serde(skip_serializing_if = "is_zero_code")]
    pub error: i32,
    /// See [`Verb`]; for questions 1 is yes.
    #[serde(skip_serializing_if = "is_zero")]
    pub number: u64,
    /// See [`Verb`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
    /// Bytes, as [`encode`] writes them.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub data: String,
}

/// The output of a child.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// The child.
    pub child: u64,
    /// 1 is stdout, 2 stderr.
    pub stream: u64,
    /// Bytes, as [`encode`] writes them; empty: the stream has ended.
    pub data: String,
}

/// A child has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exited {
    /// The child.
    pub child: u64,
    /// Its exit code; `None`: a signal ended it.
    pub code: Option<i32>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero_code(number: &i32) -> bool {
    *number == 0
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes as base64 without padding (RFC 4648). Here rather than by a crate, because the probe has no
/// room for one.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..=group.len() {
            text.push(char::from(DIGITS[(bits >> (18 - 6 * digit) & 63) as usize]));
        }
    }
    text
}

/// Decodes the text of [`encode`]; `None` if it is not one.
#[must_use]
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for group in text.as_bytes().chunks(4) {
        let mut bits = 0u32;
        for at in 0..4 {
            let value = match group.get(at) {
                None => 0,
                Some(c @ b'A'..=b'Z') => c - b'A',
                Some(c @ b'a'..=b'z') => c - b'a' + 26,
                Some(c @ b'0'..=b'9') => c - b'0' + 52,
                Some(b'+') => 62,
                Some(b'/') => 63,
                Some(_) => return None,
            };
            bits = bits << 6 | u32::from(value);
        }
        if group.len() == 1 {
            return None;
        }
        bytes.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::{FromProbe, ToProbe};
    use crate::wire::{Decoder, Encoder, Item};

    #[test]
    fn bytes_are_written_as_the_standard_says_but_for_the_padding() {
        let vectors = [
            ("", ""),
            ("f", "Zg"),
            ("fo", "Zm8"),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg"),
            ("foobar", "Zm9vYmFy"),
        ];
        for (bytes, text) in vectors {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).unwrap(), bytes.as_bytes());
        }
        for wrong in ["A", "Zg==", "Zm9v Zm9v", "Zm9vY", "\u{e9}e"] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_call_travels_as_words() {
        let call = ToProbe::Call(Call { id: 3, ..Call::new(Verb::MakeDir, "/x") });
        assert_eq!(
            serde_json::to_string(&call).unwrap(),
            r#"{"t":"call","w":["3","make_dir","0","0","/x","",""]}"#
        );
        for wrong in [
            r#"["3","format_disk","0","0","","",""]"#,
            r#"["3","read","0","0","",""]"#,
            r#"["three","read","0","0","","",""]"#,
            r#"["3","undo","0","0","","","{\"explode\":1}"]"#,
            "[]",
        ] {
            let json = format!(r#"{{"t":"call","w":{wrong}}}"#);
            assert!(serde_json::from_str::<ToProbe>(&json).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_verb_has_its_word() {
        for (_, verb) in VERBS {
            let call = Call { verb, undo: Some(Undo::Remove("/x".into())), ..Call::default() };
            let json = serde_json::to_string(&call).unwrap();
            assert_eq!(serde_json::from_str::<Call>(&json).unwrap(), call);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(bytes: Vec<u8>) {
            prop_assert_eq!(decode(&encode(&bytes)).unwrap(), bytes);
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in ".{0,100}") {
            let _ = decode(&text);
        }

        #[test]
        fn calls_and_outputs_pass_the_wire_whole(
            (id, child, number) in any::<(u64, u64, u64)>(), path in ".{0,60}",
            words in any::<Vec<String>>(), bytes in any::<Vec<u8>>(),
        ) {
            let call = ToProbe::Call(Call {
                id, verb: Verb::Spawn, child, number, path, words, data: encode(&bytes), undo: None,
            });
            let frames = Encoder::new().encode(&call).unwrap();
            prop_assert_eq!(Decoder::new().feed(&frames), vec![Item::Message(call)]);
            let output = FromProbe::Output(Output { child, stream: 1, data: encode(&bytes) });
            let frames = Encoder::new().encode(&output).unwrap();
            prop_assert_eq!(Decoder::new().feed(&frames), vec![Item::Message(output)]);
        }
    }
}
