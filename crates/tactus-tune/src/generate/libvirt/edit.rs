//! Changes of a document: one element at a time, everything else stays as it is.

use std::fmt::Write;
use std::ops::Range;

use quick_xml::escape::escape;

use super::tree::{Element, Tree};
use crate::generate::comment::xml_comment;

/// One thing that a domain should say.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The check that it answers; empty: none.
    pub check: &'static str,
    /// Why, in a sentence, without the check's name.
    pub why: String,
    /// The content of the setting.
    pub what: What,
}

/// The wanted content of a domain.
#[derive(Clone, Debug)]
pub enum What {
    /// There is such an element.
    Element(Wanted),
    /// There is no element like this: its name and attributes that it has.
    No(&'static [&'static str], Vec<(&'static str, String)>),
}

/// An element that should be there.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The elements above it, from below the root.
    pub path: &'static [&'static str],
    /// Its name; empty: the root itself.
    pub name: &'static str,
    /// Attributes that tell it from its like; without them it is the only one of its name.
    pub key: Vec<(&'static str, String)>,
    /// Its further attributes; `None`: it has no such attribute.
    pub attributes: Vec<(&'static str, Option<String>)>,
    /// Its text, if that matters.
    pub text: Option<String>,
    /// Whether what is in it would be wrong in the element that it becomes: it is then made anew.
    pub anew: bool,
}

/// The request in which libvirt itself writes the elements of a domain. Any request is good to it; people
/// look for things where they are used to find them.
const ORDER: [&str; 26] = [
    "name",
    "uuid",
    "genid",
    "title",
    "description",
    "metadata",
    "maxMemory",
    "memory",
    "currentMemory",
    "blkiotune",
    "memtune",
    "memoryBacking",
    "vcpu",
    "vcpus",
    "iothreads",
    "iothreadids",
    "cputune",
    "numatune",
    "resource",
    "sysinfo",
    "os",
    "features",
    "cpu",
    "clock",
    "on_poweroff",
    "devices",
];

/// Makes a document say this. Returns what was changed, a phrase each.
///
/// # Errors
/// When the document cannot be read.
pub fn apply(text: &mut String, setting: &Setting) -> Result<Vec<String>, String> {
    let mut said = Vec::new();
    match &setting.what {
        What::No(path, with) => {
            while let Some((span, name)) = doomed(&Tree::parse(text)?, path, with) {
                let span = with_its_line(text, span);
                text.replace_range(span, "");
                said.push(format!("{name} removed"));
            }
        }
        What::Element(wanted) => {
            let mut tree = Tree::parse(text)?;
            let differs = |element: &&Element| {
                wanted.attributes.iter().any(|(name, value)| element.attribute(name) != value.as_deref())
            };
            while wanted.anew
                && let Some(old) = present(&tree, wanted).into_iter().find(differs)
            {
                let span = with_its_line(text, old.span());
                text.replace_range(span, "");
                said.push(format!("{} removed, to be added again", described(wanted)));
                tree = Tree::parse(text)?;
            }
            if let Some(found) = present(&tree, wanted).first() {
                change(text, found, wanted, &mut said);
                remove_others(text, wanted, &mut said)?;
            } else {
                said.push(format!("{} added", described(wanted)));
                insert(text, &tree, setting, wanted);
            }
        }
    }
    Ok(said)
}

/// The elements that a setting is about.
fn present<'a>(tree: &'a Tree, wanted: &Wanted) -> Vec<&'a Element> {
    if wanted.name.is_empty() {
        return vec![tree.root()];
    }
    let Some(parent) = tree.find(wanted.path) else { return Vec::new() };
    let like =
        |element: &&Element| wanted.key.iter().all(|(name, value)| element.attribute(name) == Some(value));
    parent
        .children
        .iter()
        .filter_map(|number| tree.elements.get(*number))
        .filter(|element| element.name == wanted.name)
        .filter(like)
        .collect()
}

fn doomed(tree: &Tree, path: &[&str], with: &[(&str, String)]) -> Option<(Range<usize>, String)> {
    let (name, above) = path.split_last()?;
    let parent = tree.find(above)?;
    let element = tree
        .children(parent, name)
        .find(|element| with.iter().all(|(name, value)| element.attribute(name) == Some(value)))?;
    let with: String = with.iter().map(|(name, value)| format!(" {name}='{value}'")).collect();
    Some((element.span(), format!("{}{with}", path.join("/"))))
}

/// Changes attributes and text of an element where they differ.
fn change(text: &mut String, found: &Element, wanted: &Wanted, said: &mut Vec<String>) {
    // From the end to the beginning, so that places stay valid.
    if let Some(value) = wanted.text.as_ref().filter(|value| found.text.trim() != value.as_str()) {
        said.push(format!("{}: {} -> {value}", described(wanted), found.text.trim()));
        match &found.end {
            Some(end) => text.replace_range(found.start.end..end.start, &escape(value)),
            None => {
                let tag = text[found.start.clone()].trim_end_matches("/>").trim_end().to_owned();
                text.replace_range(found.start.clone(), &format!("{tag}>{}</{}>", escape(value), found.name));
            }
        }
    }
    let close = text[..found.start.end].rfind('>').unwrap_or(found.start.end);
    let mut tag = text[found.start.start..close].to_owned();
    let before = tag.clone();
    for (name, value) in &wanted.attributes {
        let now = found.attribute(name);
        if now == value.as_deref() {
            continue;
        }
        said.push(format!(
            "{} {name}: {} -> {}",
            described(wanted),
            now.unwrap_or("not set"),
            value.as_deref().unwrap_or("not set")
        ));
        set_attribute(&mut tag, name, value.as_deref());
    }
    if tag != before {
        text.replace_range(found.start.start..close, &tag);
    }
}

/// Sets, adds or removes an attribute of a start tag (without its `>`).
pub fn set_attribute(tag: &mut String, name: &str, value: Option<&str>) {
    match (attribute_place(tag, name), value) {
        (Some((_, inside)), Some(value)) => tag.replace_range(inside, &escape(value)),
        (Some((all, _)), None) => tag.replace_range(all, ""),
        (None, Some(value)) => {
            let slash = tag.ends_with('/');
            let end = tag.trim_end_matches('/').trim_end().len();
            tag.truncate(end);
            let _ = write!(tag, " {name}='{}'{}", escape(value), if slash { "/" } else { "" });
        }
        (None, None) => {}
    }
}

/// Where an attribute stands in a start tag, with the blanks before it, and where its value stands.
fn attribute_place(tag: &str, wanted: &str) -> Option<(Range<usize>, Range<usize>)> {
    let mut at = tag.find(|c: char| c.is_ascii_whitespace())?;
    loop {
        let blank = at;
        at += tag[at..].len() - tag[at..].trim_start().len();
        let equal = at + tag[at..].find('=')?;
        let name = tag[at..equal].trim();
        let quote_at = equal + 1 + tag[equal + 1..].find(['\'', '"'])?;
        let quote = tag[quote_at..].chars().next()?;
        let end = quote_at + 1 + tag[quote_at + 1..].find(quote)?;
        if name == wanted {
            return Some((blank..end + 1, quote_at + 1..end));
        }
        at = end + 1;
    }
}

/// Keeps the first element of a kind that should appear once, and removes the others.
fn remove_others(text: &mut String, wanted: &Wanted, said: &mut Vec<String>) -> Result<(), String> {
    loop {
        let tree = Tree::parse(text)?;
        let Some(span) = present(&tree, wanted).get(1).map(|element| element.span()) else { return Ok(()) };
        let span = with_its_line(text, span);
        text.replace_range(span, "");
        said.push(format!("a second {} removed", described(wanted)));
    }
}

/// Puts a new element where it belongs, with its comment, below parents that are made if need be.
fn insert(text: &mut String, tree: &Tree, setting: &Setting, wanted: &Wanted) {
    let (mut parent, mut depth) = (tree.root(), 0);
    for name in wanted.path {
        let Some(next) = tree.children(parent, name).next() else { break };
        (parent, depth) = (next, depth + 1);
    }
    let missing = &wanted.path[depth..];
    let indent = indent_of_children(text, tree, parent);
    let mut new = String::new();
    let step = |n: usize| format!("{indent}{}", "  ".repeat(n));
    for (n, name) in missing.iter().enumerate() {
        let _ = writeln!(new, "{}<{name}>", step(n));
    }
    let own = step(missing.len());
    if !setting.why.is_empty() {
        let why = if setting.check.is_empty() {
            setting.why.clone()
        } else {
            format!("{}: {}", setting.check, setting.why)
        };
        new += &xml_comment(&own, &why);
    }
    let attributes: String = wanted
        .key
        .iter()
        .map(|(name, value)| (*name, value))
        .chain(wanted.attributes.iter().filter_map(|(name, value)| Some((*name, value.as_ref()?))))
        .map(|(name, value)| format!(" {name}='{}'", escape(value.as_str())))
        .collect();
    let name = wanted.name;
    let _ = match &wanted.text {
        Some(words) => writeln!(new, "{own}<{name}{attributes}>{}</{name}>", escape(words.as_str())),
        None => writeln!(new, "{own}<{name}{attributes}/>"),
    };
    for (n, name) in missing.iter().enumerate().rev() {
        let _ = writeln!(new, "{}</{name}>", step(n));
    }
    let new = new.trim_end();
    let first = missing.first().copied().unwrap_or(name);
    let place = |element: &Element| ORDER.iter().position(|name| *name == element.name);
    let before: Vec<&Element> = parent
        .children
        .iter()
        .filter_map(|number| tree.elements.get(*number))
        .filter(|element| {
            depth > 0
                || ORDER
                    .iter()
                    .position(|name| *name == first)
                    .is_none_or(|own| place(element).is_some_and(|p| p < own))
        })
        .collect();
    match (before.last(), &parent.end) {
        (Some(last), _) => text.insert_str(last.span().end, &format!("\n{new}")),
        (None, Some(end)) if parent.children.is_empty() => {
            // The blanks before the end tag go: the tag gets its own line again.
            let outer = &indent[..indent.len().saturating_sub(2)];
            let inside = parent.start.end..end.start;
            let kept = text[inside.clone()].trim_end().to_owned();
            text.replace_range(inside, &format!("{kept}\n{new}\n{outer}"));
        }
        (None, Some(_)) => text.insert_str(parent.start.end, &format!("\n{new}")),
        (None, None) => {
            let outer = indent[..indent.len().saturating_sub(2)].to_owned();
            let tag = text[parent.start.clone()].trim_end_matches("/>").trim_end().to_owned();
            text.replace_range(parent.start.clone(), &format!("{tag}>\n{new}\n{outer}</{}>", parent.name));
        }
    }
}

/// The blanks that stand before the elements in another.
fn indent_of_children(text: &str, tree: &Tree, parent: &Element) -> String {
    let blanks = |at: usize| -> Option<String> {
        let line = &text[text[..at].rfind('\n').map_or(0, |end| end + 1)..at];
        line.trim().is_empty().then(|| line.to_owned())
    };
    let child = parent.children.first().and_then(|number| tree.elements.get(*number));
    child
        .and_then(|child| blanks(child.start.start))
        .unwrap_or_else(|| blanks(parent.start.start).unwrap_or_default() + "  ")
}

/// The span with its whole line, where nothing else stands on it.
fn with_its_line(text: &str, span: Range<usize>) -> Range<usize> {
    let start = text[..span.start].rfind('\n').map_or(0, |end| end + 1);
    let end = text[span.end..].find('\n').map_or(text.len(), |end| span.end + end + 1);
    let alone = text[start..span.start].trim().is_empty() && text[span.end..end].trim().is_empty();
    if alone { start..end } else { span }
}

fn described(wanted: &Wanted) -> String {
    let mut path = wanted.path.join("/");
    if !path.is_empty() {
        path.push('/');
    }
    let key: String = wanted.key.iter().map(|(name, value)| format!(" {name}='{value}'")).collect();
    format!("{path}{}{key}", if wanted.name.is_empty() { "domain" } else { wanted.name })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(path: &'static [&'static str], name: &'static str) -> Wanted {
        Wanted { path, name, ..Wanted::default() }
    }

    fn done(text: &str, what: What) -> (String, Vec<String>) {
        let mut text = text.to_owned();
        let setting = Setting { check: "", why: String::new(), what };
        let said = apply(&mut text, &setting).unwrap();
        let again = apply(&mut text.clone(), &setting).unwrap();
        assert!(again.is_empty(), "a second time changes nothing: {again:?}");
        (text, said)
    }

    #[test]
    fn what_is_there_is_changed_in_its_place() {
        let text = "<domain type=\"kvm\">\n  <vcpu  placement = 'auto'\n   current='1'>2</vcpu> <!-- mine -->\n</domain>";
        let wanted = Wanted {
            attributes: vec![
                ("placement", Some("static".into())),
                ("current", None),
                ("x", Some("<".into())),
            ],
            text: Some("4".into()),
            ..element(&[], "vcpu")
        };
        let (text, said) = done(text, What::Element(wanted));
        assert_eq!(
            text,
            "<domain type=\"kvm\">\n  <vcpu  placement = 'static' x='&lt;'>4</vcpu> <!-- mine -->\n</domain>"
        );
        assert_eq!(said.len(), 4, "{said:?}");
    }

    #[test]
    fn what_is_missing_is_put_where_libvirt_would_write_it() {
        let text = "<domain>\n\t<name>a</name>\n\t<devices>\n\t</devices>\n</domain>\n";
        let (text, _) = done(text, What::Element(element(&["cputune"], "emulatorpin")));
        assert_eq!(
            text,
            "<domain>\n\t<name>a</name>\n\t<cputune>\n\t  <emulatorpin/>\n\t</cputune>\n\t<devices>\n\t</devices>\n</domain>\n"
        );
        let (text, _) = done("<domain><cpu/></domain>", What::Element(element(&["cpu"], "topology")));
        assert!(Tree::parse(&text).unwrap().find(&["cpu", "topology"]).is_some(), "{text}");
        let (text, _) = done("<domain/>", What::Element(element(&["a", "b"], "c")));
        assert!(Tree::parse(&text).unwrap().find(&["a", "b", "c"]).is_some(), "{text}");
    }

    #[test]
    fn of_what_there_should_be_one_the_others_go() {
        let text = "<domain>\n  <a n='1'/>\n  <a n='2'/><b/>\n</domain>";
        let wanted = Wanted { attributes: vec![("n", Some("3".into()))], ..element(&[], "a") };
        assert_eq!(done(text, What::Element(wanted)).0, "<domain>\n  <a n='3'/>\n  <b/>\n</domain>");
        let (text, _) = done(
            "<domain>\n  <a n='1'/>\n  <a n='2'/>\n</domain>",
            What::No(&["a"], vec![("n", "2".into())]),
        );
        assert_eq!(text, "<domain>\n  <a n='1'/>\n</domain>");
    }

    #[test]
    fn an_empty_element_gets_its_text() {
        let wanted = Wanted { text: Some("4".into()), ..element(&[], "vcpu") };
        assert_eq!(
            done("<domain><vcpu a='1' /></domain>", What::Element(wanted)).0,
            "<domain><vcpu a='1'>4</vcpu></domain>"
        );
    }
}
