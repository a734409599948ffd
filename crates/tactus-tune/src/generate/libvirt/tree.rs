//! An XML document as elements with their places in the text, so that one element can be changed and
//! everything else stays byte for byte as it is.

use std::ops::Range;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// The longest document that is read, in bytes: libvirt's own are below 100 KiB.
pub const MAX_BYTES: usize = 1 << 20;
/// The most elements, and the deepest nesting.
const MAX_ELEMENTS: usize = 20_000;
const MAX_DEPTH: usize = 64;

/// An element.
#[derive(Clone, Debug)]
pub struct Element {
    /// Its name with its prefix, if it has one.
    pub name: String,
    /// Its attributes, unescaped.
    pub attributes: Vec<(String, String)>,
    /// The bytes of its start tag.
    pub start: Range<usize>,
    /// The bytes of its end tag; `None`: `<x/>`.
    pub end: Option<Range<usize>>,
    /// Its elements.
    pub children: Vec<usize>,
    /// The text in it, without that of its elements.
    pub text: String,
}

/// A document.
#[derive(Clone, Debug)]
pub struct Tree {
    /// All elements; the first one is the root.
    pub elements: Vec<Element>,
}

impl Element {
    /// The bytes of all of it.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.start.start..self.end.as_ref().unwrap_or(&self.start).end
    }

    /// The value of an attribute.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }
}

impl Tree {
    /// Reads a document.
    ///
    /// # Errors
    /// A sentence: what is wrong and where.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_BYTES {
            return Err(format!("it has {} bytes; a domain has fewer than {MAX_BYTES}", text.len()));
        }
        // The reader leaves it out and counts from behind it, so that every change would be three bytes off.
        if text.starts_with('\u{feff}') {
            return Err("it begins with a byte order mark: save it as UTF-8 without one".into());
        }
        let mut reader = Reader::from_str(text);
        let mut elements: Vec<Element> = Vec::new();
        let mut open: Vec<usize> = Vec::new();
        loop {
            let from = position(&reader);
            let line = || 1 + text.get(..from).unwrap_or_default().matches('\n').count();
            let event = reader.read_event().map_err(|error| format!("line {}: {error}", line()))?;
            let span = from..position(&reader);
            match event {
                Event::Start(tag) | Event::Empty(tag)
                    if elements.len() >= MAX_ELEMENTS || open.len() >= MAX_DEPTH =>
                {
                    let name = name(&tag);
                    return Err(format!(
                        "line {}: <{name}> is too deep, or there are too many elements",
                        line()
                    ));
                }
                Event::Start(tag) => {
                    let number = push(&mut elements, &open, &tag, span, line())?;
                    open.push(number);
                }
                Event::Empty(tag) => {
                    push(&mut elements, &open, &tag, span, line())?;
                }
                Event::End(_) => {
                    let element = open.pop().and_then(|number| elements.get_mut(number));
                    element.ok_or_else(|| format!("line {}: an end tag without a start tag", line()))?.end =
                        Some(span);
                }
                Event::DocType(_) => {
                    return Err(format!("line {}: it has a DOCTYPE, which a domain never has", line()));
                }
                Event::GeneralRef(entity) => {
                    let entity = String::from_utf8_lossy(&entity).into_owned();
                    let text = reference(&entity)
                        .ok_or_else(|| format!("line {}: the entity &{entity}; is not known", line()))?;
                    say(&mut elements, &open, &text);
                }
                Event::Text(words) => {
                    let words = words.decode().map_err(|error| format!("line {}: {error}", line()))?;
                    if open.is_empty() && !words.trim().is_empty() {
                        return Err(format!("line {}: there is text outside of any element", line()));
                    }
                    say(&mut elements, &open, &words);
                }
                Event::CData(words) => say(&mut elements, &open, &String::from_utf8_lossy(&words)),
                Event::Comment(_) | Event::PI(_) | Event::Decl(_) => {}
                Event::Eof => break,
            }
        }
        if let Some(number) = open.last() {
            let name = elements.get(*number).map_or("?", |element| element.name.as_str());
            return Err(format!("it ends within <{name}>: it is cut"));
        }
        if elements.is_empty() {
            return Err("it has no element".into());
        }
        Ok(Self { elements })
    }

    /// The root.
    #[must_use]
    pub fn root(&self) -> &Element {
        &self.elements[0]
    }

    /// The elements of this name directly in another.
    pub fn children<'a, 'n>(
        &'a self,
        parent: &'a Element,
        name: &'n str,
    ) -> impl Iterator<Item = &'a Element> + use<'a, 'n> {
        parent.children.iter().filter_map(|number| self.elements.get(*number)).filter(move |e| e.name == name)
    }

    /// The first element at this path below the root.
    #[must_use]
    pub fn find(&self, path: &[&str]) -> Option<&Element> {
        path.iter().try_fold(self.root(), |element, name| self.children(element, name).next())
    }
}

fn position(reader: &Reader<&[u8]>) -> usize {
    usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX)
}

fn name(tag: &BytesStart<'_>) -> String {
    String::from_utf8_lossy(tag.name().as_ref()).into_owned()
}

fn push(
    elements: &mut Vec<Element>,
    open: &[usize],
    tag: &BytesStart<'_>,
    start: Range<usize>,
    line: usize,
) -> Result<usize, String> {
    let mut attributes = Vec::new();
    for attribute in tag.attributes() {
        let attribute = attribute.map_err(|error| format!("line {line}: <{}>: {error}", name(tag)))?;
        let key = String::from_utf8_lossy(attribute.key.as_ref()).into_owned();
        let raw = String::from_utf8_lossy(&attribute.value).into_owned();
        let value =
            quick_xml::escape::unescape(&raw).map_err(|error| format!("line {line}: {key}: {error}"))?;
        attributes.push((key, value.into_owned()));
    }
    let number = elements.len();
    match open.last().and_then(|parent| elements.get_mut(*parent)) {
        Some(parent) => parent.children.push(number),
        None if number > 0 => return Err(format!("line {line}: there is a second root")),
        None => {}
    }
    elements.push(Element {
        name: name(tag),
        attributes,
        start,
        end: None,
        children: Vec::new(),
        text: String::new(),
    });
    Ok(number)
}

fn say(elements: &mut [Element], open: &[usize], words: &str) {
    if let Some(element) = open.last().and_then(|number| elements.get_mut(*number)) {
        element.text += words;
    }
}

/// The text of one of the five entities that XML itself has, or of a character's number.
fn reference(entity: &str) -> Option<String> {
    quick_xml::escape::unescape(&format!("&{entity};")).ok().map(std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn elements_know_their_places() {
        let text = "<?xml version='1.0'?>\n<!-- a -->\n<domain type='kvm'>\n  <vcpu current=\"2\">4</vcpu><a/>\n</domain>\n";
        let tree = Tree::parse(text).unwrap();
        let vcpu = tree.find(&["vcpu"]).unwrap();
        assert_eq!(&text[vcpu.span()], "<vcpu current=\"2\">4</vcpu>");
        assert_eq!((vcpu.text.as_str(), vcpu.attribute("current")), ("4", Some("2")));
        assert_eq!(&text[tree.find(&["a"]).unwrap().span()], "<a/>");
        assert_eq!(tree.root().attribute("type"), Some("kvm"));
    }

    #[test]
    fn hostile_documents_are_refused_with_their_line() {
        let deep = "<a>".repeat(100);
        let many = format!("<a>{}</a>", "<b/>".repeat(MAX_ELEMENTS + 1));
        let huge = format!("<a>{}</a>", " ".repeat(MAX_BYTES));
        for (text, word) in [
            ("", "no element"),
            ("\u{feff}<a/>", "byte order mark"),
            ("plain", "outside"),
            ("<domain>\n<vcpu>", "cut"),
            ("<domain", "line 1"),
            ("<a></b>", "line 1"),
            ("</a>", "line 1"),
            ("<a/><b/>", "second root"),
            ("<a>\n&bomb;</a>", "line 2: the entity &bomb;"),
            ("<a b='&bomb;'/>", "bomb"),
            ("<a b='1' b='2'/>", "line 1"),
            ("<!DOCTYPE a [<!ENTITY x 'y'>]><a/>", "DOCTYPE"),
            (&deep, "too deep"),
            (&many, "too many"),
            (&huge, "bytes"),
        ] {
            let error = Tree::parse(text).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "([<>/&;'\"= !?\\[-]|a|b|é|<a>|</a>|<!--|-->|<!\\[CDATA\\[){0,40}") {
            if let Ok(tree) = Tree::parse(&text) {
                for element in &tree.elements {
                    prop_assert!(text.get(element.span()).is_some());
                }
            }
        }
    }
}
