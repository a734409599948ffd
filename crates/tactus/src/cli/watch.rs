//! Arguments of `tactus watch`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

/// Arguments of `watch`.
#[derive(Debug, Args)]
pub struct Watch {
    /// Directory of the bundle that the run writes. Default: your newest run in progress; with --stop your
    /// only run in progress; with --serve the directory with bundles (default: this one)
    #[arg(value_name = "BUNDLE|DIR")]
    pub place: Option<PathBuf>,
    /// Print lines instead of the live screen
    #[arg(long)]
    pub plain: bool,
    /// End the run, as Ctrl-C does, and keep what it measured
    #[arg(long, conflicts_with_all = ["plain", "serve"])]
    pub stop: bool,
    /// Show the bundles of a directory, and the runs in progress, in a browser
    #[arg(long, conflicts_with = "plain")]
    pub serve: bool,
    /// Listen here. Without an address: on this machine only; with port 0: on a free port. Addresses other
    /// than loopback need a token, which tactus makes and prints
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        default_value = "127.0.0.1:9465",
        value_parser = tactus_watch::http::address
    )]
    pub listen: SocketAddr,
    /// Require the token in this file, also on loopback: at least 22 letters and digits, in a file that no
    /// other user can read
    #[arg(long, value_name = "FILE", requires = "serve")]
    pub token_file: Option<PathBuf>,
}
