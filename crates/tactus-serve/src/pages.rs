//! The pages of the server, except for the reports: the list, a run in progress, and errors. Each has a part
//! that is sent again when something changes, made by the same template.

use minijinja::Environment;
use minijinja::value::Serde;
use serde::Serialize;
use tactus_model::text::{clean, quoted};
use tactus_report::part::Tone;
use tactus_report::render::{RenderError, html};

use super::answers::Told;
use super::catalogue::{Found, Listing, Stage};
use super::live::Live;
use super::name::encoded;
use tactus_model::outcome::RunStatus;

/// Bundles on a page of the list.
pub const ON_A_PAGE: usize = 200;
/// The templates, and what their pages may do.
pub struct Pages {
    templates: Environment<'static>,
    style: String,
    policy: String,
}

/// The head of a page, around its part.
#[derive(Serialize)]
pub struct Frame {
    pub title: String,
    pub eyebrow: &'static str,
    /// The address that reports changes; `None` if nothing changes.
    pub events: Option<String>,
}

/// The list.
#[derive(Serialize)]
pub struct List {
    /// The directory, as the user named it.
    pub directory: String,
    /// A path in it, as a shell takes it.
    first_out: String,
    bundles: Vec<Listed>,
    all: usize,
    first: usize,
    newer: Option<usize>,
    older: Option<usize>,
    closed: usize,
    more: usize,
}

#[derive(Serialize)]
struct Listed {
    name: String,
    link: String,
    plan: String,
    machine: String,
    began: Option<(String, String)>,
    state: &'static str,
    state_class: &'static str,
    live: bool,
    word: Option<String>,
    class: &'static str,
    sentence: String,
    size: String,
}

impl List {
    /// A page of the list, from 1 on, with the answers of its bundles.
    pub fn of(
        directory: &str,
        listing: &Listing,
        page: usize,
        told: impl Fn(&Found) -> Option<Told>,
    ) -> Self {
        let page = page.max(1);
        let first = (page - 1).saturating_mul(ON_A_PAGE);
        let all = listing.bundles.len();
        Self {
            directory: clean(directory),
            first_out: quoted(&clean(&format!("{directory}/first"))),
            bundles: shown(listing, page).iter().map(|found| Listed::of(found, told(found))).collect(),
            all,
            first: first.saturating_add(1),
            newer: (page > 1).then_some(page - 1),
            older: (first.saturating_add(ON_A_PAGE) < all).then_some(page.saturating_add(1)),
            closed: listing.closed,
            more: listing.more,
        }
    }
}

/// The bundles of a page of the list, from 1 on.
pub fn shown(listing: &Listing, page: usize) -> &[Found] {
    listing.bundles.chunks(ON_A_PAGE).nth(page.max(1) - 1).unwrap_or_default()
}

impl Listed {
    fn of(found: &Found, told: Option<Told>) -> Self {
        let (state, state_class) = match &found.stage {
            Stage::Running => ("running", "badge quiet"),
            Stage::Silent => ("no end", "badge inconclusive"),
            Stage::Ended(RunStatus::Complete) => ("ended", ""),
            Stage::Ended(RunStatus::Interrupted) => ("interrupted", ""),
            Stage::Unreadable(_) => ("not read", "badge fail"),
        };
        let (word, tone, sentence) = match (&found.stage, told) {
            (Stage::Unreadable(why), _) => (None, Tone::Bad, why.clone()),
            (Stage::Running, _) => (None, Tone::Quiet, "measured right now".into()),
            (Stage::Silent, _) => {
                (None, Tone::Quiet, "it stopped without an end, or is between two scenarios".into())
            }
            (Stage::Ended(_), Some(told)) => (Some(told.word), told.tone, told.sentence.replace('`', "")),
            (Stage::Ended(_), None) => (None, Tone::Quiet, "loading ...".into()),
        };
        let class = match tone {
            Tone::Good => "badge pass",
            Tone::Bad => "badge fail",
            Tone::Doubt => "badge inconclusive",
            Tone::Quiet | Tone::Heading => "badge quiet",
        };
        Self {
            name: found.shown(),
            link: encoded(&found.name),
            plan: found.plan.clone(),
            machine: found.machine.clone(),
            began: found.began.map(|began| (began.to_string(), began.strftime("%Y-%m-%d %H:%M").to_string())),
            state,
            state_class,
            live: matches!(found.stage, Stage::Running | Stage::Silent),
            word,
            class,
            sentence,
            size: found.bytes.map(size).unwrap_or_default(),
        }
    }
}

impl Pages {
    /// # Errors
    /// None that a test does not exclude.
    pub fn new() -> Result<Self, RenderError> {
        let mut templates = html::escaping()?;
        for (name, text) in [
            ("page", include_str!("pages/page.html")),
            ("list", include_str!("pages/list.html")),
            ("live", include_str!("pages/live.html")),
            ("error", include_str!("pages/error.html")),
        ] {
            templates.add_template(name, text)?;
        }
        let style = format!("{}{}", html::STYLE, include_str!("pages/serve.css"));
        let policy = format!(
            "default-src 'none'; style-src '{}'; script-src '{}'; connect-src 'self'; base-uri 'none'; \
             form-action 'none'; frame-ancestors 'none'",
            html::hash(&style),
            html::hash(SCRIPT)
        );
        Ok(Self { templates, style, policy })
    }

    /// The permissions of these pages, for the header `Content-Security-Policy`.
    pub fn policy(&self) -> &str {
        &self.policy
    }

    /// The part of the list that changes.
    pub fn list(&self, list: &List) -> Result<String, RenderError> {
        Ok(self.templates.get_template("list")?.render(minijinja::context! { list => Serde(list) })?)
    }

    /// The part of a run that changes. `link`: its name in an address.
    pub fn live(&self, live: &Live, link: &str) -> Result<String, RenderError> {
        Ok(self.templates.get_template("live")?.render(minijinja::context! { live => Serde(live), link })?)
    }

    /// Why there is no page, and what can be done: words and addresses.
    pub fn error(&self, title: &str, why: &str, links: &[(&str, &str)]) -> Result<String, RenderError> {
        let part = self.templates.get_template("error")?;
        let part = part.render(minijinja::context! { title, why => clean(why), links => Serde(links) })?;
        self.whole(&Frame { title: title.into(), eyebrow: "tactus watch --serve", events: None }, &part)
    }

    /// A page with its part.
    pub fn whole(&self, frame: &Frame, part: &str) -> Result<String, RenderError> {
        let page = self.templates.get_template("page")?;
        Ok(page.render(minijinja::context! {
            frame => Serde(frame),
            part,
            style => self.style.as_str(),
            script => SCRIPT,
            tactus => env!("CARGO_PKG_VERSION"),
        })?)
    }
}

const SCRIPT: &str = include_str!("pages/serve.js");

/// A size as people say it.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} KB", bytes / 1_000),
        1_000_000..10_000_000 => format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10),
        10_000_000..10_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{} GB", bytes / 1_000_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_few_digits() {
        let sizes = [0, 999, 1_000, 999_999, 1_460_000, 12_000_000, 3_400_000_000, 86_000_000_000];
        let said = ["0 B", "999 B", "1 KB", "999 KB", "1.4 MB", "12 MB", "3400 MB", "86 GB"];
        assert_eq!(sizes.map(size), said);
    }

    #[test]
    fn what_pages_may_do_is_named_and_nothing_is_unsafe() {
        let pages = Pages::new().unwrap();
        assert!(pages.policy().starts_with("default-src 'none'") && !pages.policy().contains("unsafe"));
        let page = pages.error("<script>", "\"><script>x</script>\u{1b}[31m", &[("/", "&")]).unwrap();
        assert!(
            page.contains("&lt;script&gt;") && !page.contains("<script>x") && !page.contains('\u{1b}'),
            "{page}"
        );
        assert!(!page.contains(" style=\"") && !page.contains(" onclick="), "an inline style is refused");
    }
}
