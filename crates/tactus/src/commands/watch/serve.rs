//! `tactus watch --serve [DIR]`: bundles for a browser. Nothing is written, and nothing is left.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::time::Duration;

use tactus_run::Interrupt;
use tactus_serve::{Bundles, Gate, Token};
use tactus_system::Directory;
use tactus_watch::http::listen;

use crate::cli::Watch;
use crate::exit::{Exit, Failure};
use crate::say::{say, typed};

/// How often it is looked whether somebody wants it to end.
const STEP: Duration = Duration::from_millis(100);
/// Most bytes of a file with a token.
const TOKEN: u64 = 4096;

pub fn serve(arguments: &Watch) -> Result<Exit, Failure> {
    let path = arguments.place.as_deref().unwrap_or(Path::new("."));
    let dir = directory(path)?;
    let written = arguments.token_file.as_deref().map(token_of).transpose()?;
    let drawn = match &written {
        None if !arguments.listen.ip().is_loopback() => Some(Token::random().map_err(|error| {
            Failure::say(
                format!("a token cannot be generated: {error}"),
                "write one to a file, and name it with `--token-file FILE`",
            )
        })?),
        _ => None,
    };
    let interrupt = Interrupt::listen()?;
    let listener = TcpListener::bind(arguments.listen).map_err(|error| unbound(arguments.listen, &error))?;
    let at = listener.local_addr()?;
    let token = drawn.as_ref().map(|token| format!("?token={}", token.text())).unwrap_or_default();
    let gate = Gate::new(written.or(drawn), at.port());
    listen(listener, "serve", Bundles::new(dir, gate)?)?;
    say(format_args!("bundles of {}: http://{}/{token}", path.display(), reached(at)));
    if !at.ip().is_loopback() {
        say("note: the traffic is not encrypted, including the token: `ssh -L` to loopback hides it");
    }
    while !interrupt.asked() {
        std::thread::sleep(STEP);
    }
    Ok(Exit::Good)
}

/// The directory that bundles lie in.
fn directory(path: &Path) -> Result<Directory, Failure> {
    let dir = Directory::open(path).map_err(|error| {
        Failure::say(
            format!("{}: {error}", path.display()),
            "name a directory that contains bundles: where `tactus run` was started, or the parent of its \
                --out",
        )
    })?;
    dir.names().map_err(|error| {
        Failure::say(format!("{}: {error}", path.display()), "serve as a user who may read the directory")
    })?;
    if tactus_bundle::manifest(&dir).is_ok() {
        let above = std::path::absolute(path).ok();
        let above = above.as_deref().and_then(Path::parent).unwrap_or(Path::new(".."));
        return Err(Failure::say(
            format!("{} is a bundle itself", path.display()),
            format!("name its parent directory: `tactus watch --serve {}`", typed(above)),
        ));
    }
    Ok(dir)
}

/// The token in a file that no other user may read.
fn token_of(path: &Path) -> Result<Token, Failure> {
    let wrong = |why: String| {
        Failure::say(
            format!("--token-file {}: {why}", path.display()),
            "make one that only you can read: (umask 077; openssl rand -hex 16 > FILE)",
        )
    };
    let name = path.file_name().ok_or_else(|| wrong("the file is not named".into()))?;
    let above =
        Directory::open(path.parent().unwrap_or(Path::new(""))).map_err(|error| wrong(error.to_string()))?;
    let bytes = above.read_secret(name, TOKEN).map_err(|error| wrong(error.to_string()))?;
    Token::written(&String::from_utf8_lossy(&bytes)).map_err(wrong)
}

fn unbound(at: SocketAddr, error: &io::Error) -> Failure {
    let hint = match error.kind() {
        io::ErrorKind::AddrInUse => {
            "another program uses this port, or another `tactus watch --serve`: name another port, or 0 for \
                a free one: --listen :0"
        }
        io::ErrorKind::PermissionDenied => "ports below 1024 need root: name another one: --listen :9465",
        io::ErrorKind::AddrNotAvailable => "name an address of this machine: `ip address` lists them",
        _ => "name another address: --listen 127.0.0.1:0",
    };
    Failure::say(format!("--listen {at}: {error}"), hint)
}

/// The address for a browser on another machine: the host name, if it listens on all addresses.
fn reached(at: SocketAddr) -> String {
    if !at.ip().is_unspecified() {
        return at.to_string();
    }
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{name}:{}", at.port())
}
