//! The pages at each address.

use std::ffi::{OsStr, OsString};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tactus_model::text::clean;
use tactus_report::render::RenderError;
use tactus_system::Directory;
use tactus_watch::http::{Answer, Events, Next, Request, Site};

use super::answers::Answers;
use super::catalogue::{Catalogue, Found};
use super::follow::Followed;
use super::gate::{Gate, Said};
use super::live::Live;
use super::name::{decoded, encoded};
use super::pages::{Frame, List, Pages, shown};

const HTML: &str = "text/html; charset=utf-8";
const POLICY: &str = "Content-Security-Policy";
/// How often it is looked whether something is new.
const STEP: Duration = Duration::from_millis(500);
/// A report has its rules for scripts in itself. Beyond that it is isolated, and no frame may show it.
const REPORT: &str = "frame-ancestors 'none'; sandbox allow-scripts";

/// A directory of bundles, for browsers.
pub struct Bundles(Arc<Inner>);

struct Inner {
    gate: Gate,
    directory: String,
    catalogue: Catalogue,
    answers: Answers,
    followed: Followed,
    pages: Pages,
}

/// Reasons for no page.
enum Refused {
    /// There is nothing at this address.
    Nothing,
    /// The page cannot be made: the reason, and the address of what can still be read.
    Cannot(String, Option<String>),
}

impl From<RenderError> for Refused {
    fn from(error: RenderError) -> Self {
        Self::Cannot(error.to_string(), None)
    }
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Self::Cannot(error.to_string(), None)
    }
}

impl Bundles {
    /// The bundles of a directory, for clients that the gate lets in. A thread reads them, one after the
    /// other, when a client asks for the list.
    ///
    /// # Errors
    /// When the templates are invalid, or the thread cannot be started.
    pub fn new(dir: Directory, gate: Gate) -> io::Result<Self> {
        let pages = Pages::new().map_err(io::Error::other)?;
        let directory =
            std::path::absolute(dir.path()).unwrap_or_else(|_| dir.path().to_owned()).display().to_string();
        let (catalogue, answers, followed) = (Catalogue::of(dir), Answers::default(), Followed::default());
        let inner = Arc::new(Inner { gate, directory, catalogue, answers, followed, pages });
        let own = Arc::clone(&inner);
        std::thread::Builder::new()
            .name("answers".into())
            .spawn(move || own.answers.read_on(&own.catalogue))?;
        Ok(Self(inner))
    }
}

impl Site for Bundles {
    fn answer(&self, request: &Request) -> Answer {
        let said = self.0.gate.says(request);
        if matches!(said, Said::Closed) {
            let why = "Open the address that tactus watch --serve printed, which ends with the token. If the \
                       token is in a file (--token-file), add ?token= and the token to the address.";
            return self.0.error(401, "A token is needed", why, &[]).with("WWW-Authenticate", "Bearer");
        }
        let answer = self.route(request).unwrap_or_else(|refused| self.0.refused(refused));
        match said {
            Said::Keep(cookie) => answer.with("Set-Cookie", cookie),
            Said::Pass | Said::Closed => answer,
        }
    }
}

impl Bundles {
    fn route(&self, request: &Request) -> Result<Answer, Refused> {
        let inner = &self.0;
        let page = || request.query("page").and_then(|page| page.parse().ok()).unwrap_or(1);
        let parts: Vec<&str> = request.path.strip_prefix('/').ok_or(Refused::Nothing)?.split('/').collect();
        match parts[..] {
            [""] => inner.list(page()),
            ["events"] => {
                let (own, page) = (Arc::clone(inner), page());
                Ok(Answer::events(Told::new(move || Ok((own.list_part(page)?, false)))))
            }
            ["favicon.ico"] => Ok(Answer::text(204, HTML, String::new())),
            ["bundle", name] => inner.report(&named(name)?, request.query("damaged").is_some()),
            ["bundle", name, "live"] => inner.live(&named(name)?),
            ["bundle", name, "events"] => {
                let (own, name) = (Arc::clone(inner), named(name)?);
                inner.find(&name)?;
                Ok(Answer::events(Told::new(move || {
                    own.live_part(&name).map(|(part, live)| (part, live.ended))
                })))
            }
            _ => Err(Refused::Nothing),
        }
    }
}

fn named(text: &str) -> Result<OsString, Refused> {
    decoded(text).ok_or(Refused::Nothing)
}

impl Inner {
    fn find(&self, name: &OsStr) -> Result<(Found, Directory), Refused> {
        self.catalogue.find(name)?.ok_or(Refused::Nothing)
    }

    fn list(&self, page: usize) -> Result<Answer, Refused> {
        let part = self.list_part(page)?;
        let events = Some(format!("/events?page={page}"));
        self.page(
            200,
            &Frame { title: clean(&self.directory), eyebrow: "tactus watch --serve", events },
            &part,
        )
    }

    fn list_part(&self, page: usize) -> Result<String, Refused> {
        let listing = self.catalogue.listing()?;
        let lacking = |found: &&Found| found.has_ended() && self.answers.told(found).is_none();
        self.answers.want(shown(&listing, page).iter().filter(lacking).cloned());
        Ok(self.pages.list(&List::of(&self.directory, &listing, page, |found| self.answers.told(found)))?)
    }

    fn report(&self, name: &OsStr, damaged: bool) -> Result<Answer, Refused> {
        let (found, dir) = self.find(name)?;
        let page = self.answers.page(&found, &dir, damaged);
        let left = || (!damaged).then(|| format!("/bundle/{}?damaged", encoded(name)));
        let page = page.map_err(|why| Refused::Cannot(why, left()))?;
        Ok(Answer::bytes(200, HTML, page).with(POLICY, REPORT))
    }

    fn live(&self, name: &OsStr) -> Result<Answer, Refused> {
        let (part, live) = self.live_part(name)?;
        let events = (!live.ended).then(|| format!("/bundle/{}/events", encoded(name)));
        self.page(200, &Frame { title: live.plan.clone(), eyebrow: "tactus watch --serve", events }, &part)
    }

    fn live_part(&self, name: &OsStr) -> Result<(String, Arc<Live>), Refused> {
        let (found, dir) = self.find(name)?;
        let live = self.followed.now(name, &dir, self.answers.turn(), &found.whose());
        let live = live.map_err(|why| Refused::Cannot(why, None))?;
        Ok((self.pages.live(&live, &encoded(name))?, live))
    }

    fn page(&self, code: u16, frame: &Frame, part: &str) -> Result<Answer, Refused> {
        let page = self.pages.whole(frame, part)?;
        Ok(Answer::text(code, HTML, page).with(POLICY, self.pages.policy()))
    }

    fn refused(&self, refused: Refused) -> Answer {
        const ALL: (&str, &str) = ("/", "All bundles");
        match refused {
            Refused::Nothing => {
                self.error(404, "There is nothing here", "No bundle of this name is listed.", &[ALL])
            }
            Refused::Cannot(why, left) => {
                let left = left.as_deref().map(|left| (left, "What is left of it"));
                let links: Vec<(&str, &str)> = left.into_iter().chain([ALL]).collect();
                self.error(500, "This cannot be shown", &why, &links)
            }
        }
    }

    fn error(&self, code: u16, title: &str, why: &str, links: &[(&str, &str)]) -> Answer {
        match self.pages.error(title, why, links) {
            Ok(page) => Answer::text(code, HTML, page).with(POLICY, self.pages.policy()),
            Err(error) => Answer::refusal(500, &error.to_string()),
        }
    }
}

/// A part of a page, told when it changes.
struct Told<F> {
    part: F,
    last: Option<String>,
    looked: Option<Instant>,
    ended: bool,
}

impl<F: FnMut() -> Result<(String, bool), Refused> + Send> Told<F> {
    const fn new(part: F) -> Self {
        Self { part, last: None, looked: None, ended: false }
    }
}

impl<F: FnMut() -> Result<(String, bool), Refused> + Send> Events for Told<F> {
    fn next(&mut self) -> Next {
        if self.ended {
            return Next::End;
        }
        if let Some(looked) = self.looked {
            std::thread::sleep(STEP.saturating_sub(looked.elapsed()));
        }
        self.looked = Some(Instant::now());
        // Its bundle may be gone, or in the middle of a change: the client asks again, and gets the reason
        // then.
        let Ok((part, ended)) = (self.part)() else { return Next::End };
        self.ended = ended;
        if self.last.as_ref() == Some(&part) && !ended {
            return Next::Nothing;
        }
        self.last = Some(part.clone());
        Next::Event(if ended { "ended" } else { "state" }, part)
    }
}
